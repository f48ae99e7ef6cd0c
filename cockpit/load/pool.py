"""A run of load: starts the worker processes, turns their messages into events, and supervises them until the end."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from cockpit.load import limits, preflight
from cockpit.load.http import protocol
from cockpit.load.http.protocol import Adjust, Assignment, Done, Extend, Reassign, Start, Stop
from cockpit.load.log_reader import read_log
from cockpit.load.ramp import Ramp, constant
from cockpit.load.workers import LocalLauncher, WorkerHandle, WorkerLauncher
from cockpit.model import events
from cockpit.model.clock import Clock
from cockpit.model.errors import UsageError
from cockpit.model.events import AnyEvent, ExtensionReason, LoadAdjusted, RunEnded, RunExtended, RunStarted
from cockpit.model.generators import WorkerLost
from cockpit.model.load.plan import LoadPlan
from cockpit.model.tick import Tick

EmitEvent = Callable[[AnyEvent], None]

# Timeout (s) for a worker to stop.
_STOP_TIMEOUT = 3.0
# Maximum error (s) of the times of a tick: clocks of machines are compared over the network.
_CLOCK_ERROR = 1.0


class LoadRun:
    """A running load. Emits its events by the `emit` given to `launch`; RunEnded is the last event."""

    def __init__(
        self,
        plan: LoadPlan,
        run: int,
        clock: Clock,
        emit: EmitEvent,
        workers: Sequence[WorkerHandle],
        began: float,
        files: int | None = None,
    ) -> None:
        """`began` is the session time of RunStarted; `files` is as in limits.Capacity."""
        self.plan = plan
        self.run = run
        self._clock = clock
        self._emit = emit
        self._workers = workers
        self._files = files
        # Earliest end of the run by the plan (session time); a number of requests may end it at any time.
        self._earliest_end = math.inf if plan.requests is None else began
        if plan.duration is not None:
            self._earliest_end = min(self._earliest_end, began + plan.warmup + plan.duration)
        self._began = began
        self._extended = False
        self._stopping = False
        self._lost: dict[int, str] = {}
        # Requests assigned to each worker (0 if the plan does not limit them), and requests with a result.
        self._assigned = {worker.assignment.worker: worker.assignment.requests or 0 for worker in workers}
        self._results: Counter[int] = Counter()
        self._counted = sum(self._assigned.values())
        self._over = asyncio.create_task(self._supervise())

    @property
    def running(self) -> bool:
        return not self._over.done()

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers on this machine."""
        return tuple(worker.pid for worker in self._workers if worker.pid is not None)

    async def wait(self) -> None:
        """Wait until RunEnded is emitted and all workers have exited. Cancelling the wait does not stop the run."""
        await asyncio.shield(self._over)

    def stop(self) -> None:
        """Stop the run now: abandon requests in flight. The last ticks and RunEnded follow. Idempotent."""
        if self._stopping or not self.running:
            return
        self._stopping = True
        for worker in self._workers:
            worker.send(Stop())
        asyncio.get_running_loop().call_later(_STOP_TIMEOUT, self._kill_stuck)

    def adjust(
        self, *, concurrency: int | None = None, rate: float | None = None, ramp_to: float | None = None
    ) -> None:
        """Change the load of the run: `concurrency` of a closed run, `rate` (arrivals/s) of an open run. A ramp lasts
        until the planned end of the run.

        Workers apply it immediately; surplus connections finish their request first. The next load level, if any, sets
        its own load again. Emits LoadAdjusted. No effect after the end. Raises UsageError, without effect, if this run
        does not allow the change.
        """
        self._check_adjustment(concurrency, rate, ramp_to)
        if self._stopping or not self.running:
            return
        t, first = self._clock.now(), float(concurrency or rate or 0)
        load = constant(first) if ramp_to is None else Ramp(first, ramp_to, t, self._planned_end(t))
        origin, remaining = self._clock.origin, self._remaining()
        for place, worker in enumerate(remaining):
            # The workers that have sent all their requests take no share.
            worker.send(Reassign(place, len(remaining)))
            worker.send(Adjust(load._replace(start=origin + load.start, end=origin + load.end)))
        self._emit(LoadAdjusted(t=t, run=self.run, concurrency=concurrency, rate=rate, ramp_to=ramp_to))

    def extend(self, until: float, awaited: ExtensionReason, change: str = "") -> None:
        """Delay the planned end, by time or by count, until `until` (session time); a past `until` cancels the delay.

        Emits RunExtended. No effect after the end, for a plan that lasts longer anyway, or for one that cannot be
        extended.
        """
        if self._stopping or not self.running or not self.plan.extendable:
            return
        now = self._clock.now()
        if not self._extended and not now < until > self._earliest_end:
            return
        self._extended = until > now
        for worker in self._workers:
            worker.send(Extend(self._clock.origin + until))
        self._emit(RunExtended(t=now, run=self.run, until=max(now, until), awaited=awaited, change=change))

    def _planned_end(self, t: float) -> float:
        """Return the planned end of the run by time. Raises UsageError if it is not after `t`."""
        duration = self.plan.duration
        end = t if duration is None else self._began + self.plan.warmup + duration
        if end <= t:
            raise UsageError("a ramp lasts until the planned end of the run; this run has none, so use a constant load")
        return end

    def _remaining(self) -> list[WorkerHandle]:
        return [
            worker for worker in self._workers if worker.done is None and worker.assignment.worker not in self._lost
        ]

    def _redistribute(self, lost: int) -> None:
        """Distribute the load of a lost worker over the remaining ones. Its requests of a replayed log, or of paths
        that are each used once, are lost."""
        remaining = self._remaining()
        if not remaining or self.plan.replay is not None:
            return
        each_once = self.plan.paths is not None and self.plan.paths.order == "once"
        rest = 0 if each_once else max(0, self._assigned[lost] - self._results[lost])
        self._assigned[lost] -= rest
        for place, (worker, more) in enumerate(zip(remaining, protocol.share(rest, [1] * len(remaining)), strict=True)):
            self._assigned[worker.assignment.worker] += more
            worker.send(Reassign(place, len(remaining), more))

    def _check_adjustment(self, concurrency: int | None, rate: float | None, ramp_to: float | None) -> None:
        if self.plan.replay is not None:
            raise UsageError("a replayed log sets the load; start it again with another --speed")
        requested, excluded, name = (
            (rate, concurrency, "rate") if self.plan.open else (concurrency, rate, "concurrency")
        )
        if requested is None or excluded is not None:
            raise UsageError(f"this run has a {name}: only the {name} can be changed")
        loads = [requested] if ramp_to is None else [requested, ramp_to]
        for load in loads:
            if not 0 < load < math.inf:
                raise UsageError(f"{name} {load}: must be greater than 0")
        if ramp_to is not None:
            self._planned_end(self._clock.now())
        if concurrency is None:
            return
        workers = len(self._workers)
        counted = self.plan.requests is not None or (self.plan.paths is not None and self.plan.paths.order == "once")
        if counted and min(loads) < workers:
            raise UsageError(f"concurrency is {min(loads):g}; use at least {workers}, one for each worker")
        limits.check_concurrency(int(max(loads)), workers, self._files)

    def _kill_stuck(self) -> None:
        # A generator may already have load workers of the next run, with the same numbers.
        if self.running:
            for worker in self._workers:
                worker.kill()

    async def _supervise(self) -> None:
        await asyncio.gather(*(self._follow(worker) for worker in self._workers))
        await asyncio.gather(*(worker.kill_and_wait() for worker in self._workers))
        self._emit(self._run_ended())

    async def _follow(self, worker: WorkerHandle) -> None:
        """Turn the lines of one worker into events until its output ends."""
        number = worker.assignment.worker
        while line := await worker.line():
            try:
                self._handle_line(line, worker)
            except msgspec.MsgspecError:
                # A killed worker may leave a partial line. A worker that sends an invalid line is killed.
                worker.kill()
                break
        if worker.done is None:
            detail = await worker.exit_reason()
            self._lost[number] = detail
            self._emit(WorkerLost(t=self._clock.now(), run=self.run, worker=number, detail=detail))
            if self.plan.on_loss == "stop":
                self.stop()
            elif not self._stopping:
                self._redistribute(number)

    def _handle_line(self, line: bytes, worker: WorkerHandle) -> None:
        """Handle a line of a worker. Raises msgspec.MsgspecError for one that is no message of this worker and run."""
        if line.startswith(protocol.MESSAGE_START):
            message = protocol.decode_message.decode(line)
            worker.done = message if isinstance(message, Done) else worker.done
            return
        tick = events.decode(line)
        if not isinstance(tick, Tick) or (tick.run, tick.worker) != (self.run, worker.assignment.worker):
            raise msgspec.ValidationError("not a tick of this worker and run")
        t, start = (self._clock.at(worker.here(instant)) for instant in (tick.t, tick.start))
        if not self._began - _CLOCK_ERROR <= start <= t <= self._clock.now() + _CLOCK_ERROR:
            raise msgspec.ValidationError("a tick of another time")
        tick = replace(tick, t=t, start=start)
        if not worker.accepts(tick):
            raise msgspec.ValidationError("a tick that cannot have happened")
        if not tick.warmup:
            self._results[tick.worker] += tick.completed + sum(tick.errors.values()) + tick.dropped
        self._emit(tick)

    def _run_ended(self) -> RunEnded:
        t, total = self._clock.now(), len(self._workers)
        first = next(iter(self._lost.values()), "")
        lost = f"{len(self._lost)} of {total} load workers exited ({first})" if self._lost else ""
        if len(self._lost) == total:
            return RunEnded(t=t, run=self.run, reason="failed", detail=lost)
        stopped = any(worker.done and worker.done.reason == "stopped" for worker in self._workers)
        missing = self._counted - sum(self._results.values())
        never = f"; {missing} of {self._counted} requests have no result" if missing > 0 else ""
        partial = f"metrics are partial: {lost}{never}" if lost else ""
        return RunEnded(t=t, run=self.run, reason="stopped" if stopped else "completed", detail=partial)


async def launch(
    plan: LoadPlan,
    run: int,
    clock: Clock,
    emit: EmitEvent,
    checked: preflight.Preflight | None = None,
    launcher: WorkerLauncher | None = None,
) -> LoadRun:
    """Start the workers of the launcher (default: on this machine), and the run when all are ready. Emits RunStarted.

    `checked` is the result of a preflight; None: only resolve the name, without contacting the target.
    Raises UsageError, TargetError, or CockpitError if a worker does not start.
    """
    launcher = launcher or LocalLauncher()
    capacity = launcher.capacity
    limits.check(plan, capacity)
    log = await asyncio.to_thread(read_log, plan) if plan.replay is not None else None
    if log is not None:
        requests = log.total if plan.requests is None else min(plan.requests, log.total)
        plan = replace(plan, requests=requests, replay=replace(log.replay, seconds=log.seconds))
    plan, lowered = limits.fit_in_flight(plan, capacity)
    if checked is None:
        if plan.http == "auto":
            checked = await preflight.preflight(plan, capacity)
        else:
            checked = await preflight.resolved(plan, (*lowered, *limits.warnings(plan, capacity)))
    plan = replace(plan, http=checked.http)
    address, opposite = checked.address, checked.opposite

    def assigned(machines: int) -> list[Assignment]:
        shares = protocol.assignments(replace(plan, workers=plan.workers * machines), run, address, opposite)
        return shares if log is None else [replace(each, log=log.share(each.worker, each.workers)) for each in shares]

    workers = await launcher.workers(assigned)
    now = clock.now() + launcher.lead
    for worker in workers:
        worker.send(Start(clock.origin + now))
    if launcher.lead:
        await asyncio.sleep(launcher.lead)
    shown = plan.without_secrets()
    emit(
        RunStarted(
            t=now, run=run, plan=shown, addresses=checked.shown, warnings=checked.warnings, machines=launcher.machines
        )
    )
    return LoadRun(plan, run, clock, emit, workers, now, capacity.files)
