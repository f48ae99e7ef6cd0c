"""A run of load: worker processes, their messages as events, and their end."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from cockpit.load import limits, preflight, protocol
from cockpit.load.log_reader import read_log
from cockpit.load.protocol import Adjust, Assignment, Done, Extend, Ready, Start, Stop
from cockpit.model import events
from cockpit.model.clock import Clock
from cockpit.model.errors import CockpitError, UsageError
from cockpit.model.events import (
    AnyEvent,
    Awaited,
    LoadAdjusted,
    RunEnded,
    RunExtended,
    RunStarted,
    Tick,
    WorkerLost,
)
from cockpit.model.load import LoadPlan

Emit = Callable[[AnyEvent], None]

# A tick of a run with every latency there is stays far below this.
_LINE_LIMIT = 32 * 1024 * 1024
# Timeout (s) for a worker to start or stop.
_STOPPING = 3.0
_STARTING = 30.0


class WorkerProcess:
    """One worker process and the two pipes to it."""

    def __init__(self, assignment: Assignment, process: asyncio.subprocess.Process) -> None:
        self.assignment = assignment
        self.process = process
        self.done: Done | None = None
        self._last_words: deque[str] = deque(maxlen=1)
        self._errors = asyncio.create_task(self._read_errors())

    @classmethod
    async def spawn(cls, assignment: Assignment) -> WorkerProcess:
        process = await asyncio.create_subprocess_exec(
            # -P: the directory the cockpit was started in is no place to find modules in.
            *(sys.executable, "-P", "-m", "cockpit.load.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_LIMIT,
            # Ctrl-C in the terminal is for the cockpit alone.
            start_new_session=True,
        )
        worker = cls(assignment, process)
        worker.tell(assignment)
        return worker

    async def _read_errors(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            if line.strip():
                self._last_words.append(line.decode(errors="replace").strip())

    def tell(self, message: Assignment | Start | Adjust | Extend | Stop) -> None:
        """Send a message, if the worker still runs."""
        assert self.process.stdin is not None
        if not self.process.stdin.is_closing():
            self.process.stdin.write(protocol.encode(message) + b"\n")

    async def line(self) -> bytes:
        """The next line; empty when the worker is gone."""
        assert self.process.stdout is not None
        return await self.process.stdout.readline()

    async def ready(self) -> None:
        """Wait until it can begin. Raises CockpitError when it never will."""
        try:
            async with asyncio.timeout(_STARTING):
                line = await self.line()
        except TimeoutError:
            raise CockpitError(f"a load worker did not start within {_STARTING:.0f} s") from None
        if not line or not isinstance(protocol.decode_saying.decode(line), Ready):
            raise CockpitError(f"a load worker did not start: {await self.death()}")

    async def death(self) -> str:
        code = await self.process.wait()
        await self._errors
        words = f": {self._last_words[-1]}" if self._last_words else ""
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"killed by {signal.Signals(-code).name}{words}"
        return f"exit status {code}{words}"

    def kill(self) -> None:
        """End it at once. By os.kill: Popen's would collect the exit status that asyncio's watcher waits for."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)

    async def reap(self) -> None:
        self.kill()
        await self.process.wait()
        await self._errors
        if self.process.stdin is not None:
            self.process.stdin.close()
            with contextlib.suppress(OSError):
                await self.process.stdin.wait_closed()


class LoadRun:
    """A run that has begun. Its events go to the `emit` given to `launch`; RunEnded is the last of them."""

    def __init__(
        self, plan: LoadPlan, run: int, clock: Clock, emit: Emit, workers: Sequence[WorkerProcess], began: float
    ) -> None:
        """`began` is the session time of its RunStarted."""
        self.plan = plan
        self.run = run
        self._clock = clock
        self._emit = emit
        self._workers = workers
        # Session time before which the plan does not end the run, as far as that is known beforehand.
        self._lasts = math.inf if plan.requests is None else began
        if plan.duration is not None:
            self._lasts = min(self._lasts, began + plan.warmup + plan.duration)
        self._extended = False
        self._stopping = False
        self._lost: list[str] = []
        self._over = asyncio.create_task(self._supervise())

    @property
    def running(self) -> bool:
        return not self._over.done()

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(worker.process.pid for worker in self._workers)

    async def wait(self) -> None:
        """Until RunEnded was emitted and all workers are gone. Being cancelled here does not stop the run."""
        await asyncio.shield(self._over)

    def stop(self) -> None:
        """End it now: requests in flight are given up, the last ticks and RunEnded still come. Twice does no harm."""
        if self._stopping or not self.running:
            return
        self._stopping = True
        for worker in self._workers:
            worker.tell(Stop())
        asyncio.get_running_loop().call_later(_STOPPING, self._kill_stuck)

    def adjust(self, *, concurrency: int | None = None, rate: float | None = None) -> None:
        """Alter the load in flight: `concurrency` of a closed run, `rate` (arrivals/s) of an open one.

        Workers follow at once; connections that close finish their request first. Emits LoadAdjusted. With load levels,
        the next stage sets its own load again. After the end it does nothing. Raises UsageError, without any effect, if
        this run cannot be altered so.
        """
        self._check_adjustment(concurrency, rate)
        if self._stopping or not self.running:
            return
        workers = len(self._workers)
        shares: list[int] | list[None] = [None] * workers
        if concurrency is not None:
            shares = protocol.share(concurrency, [1] * workers)
        for worker, own in zip(self._workers, shares, strict=True):
            worker.tell(Adjust(own, rate))
        self._emit(LoadAdjusted(t=self._clock.now(), run=self.run, concurrency=concurrency, rate=rate))

    def extend(self, until: float, awaited: Awaited, change: str = "") -> None:
        """Let the end of the plan, by time or by count, take effect no sooner than `until` (session time); if that has
        passed, now. Emits RunExtended. Does nothing after the end, and for a plan that lasts longer anyway or cannot
        be extended."""
        if self._stopping or not self.running or not self.plan.extendable:
            return
        now = self._clock.now()
        if not self._extended and not now < until > self._lasts:
            return
        self._extended = until > now
        for worker in self._workers:
            worker.tell(Extend(self._clock.origin + until))
        self._emit(RunExtended(t=now, run=self.run, until=max(now, until), awaited=awaited, change=change))

    def _check_adjustment(self, concurrency: int | None, rate: float | None) -> None:
        if self.plan.replay is not None:
            raise UsageError("a replayed log sets the load; start it again with another --speed")
        asked, other, name = (rate, concurrency, "rate") if self.plan.open else (concurrency, rate, "concurrency")
        if asked is None or other is not None:
            raise UsageError(f"this run has a fixed {name}: only that can be altered")
        if not 0 < asked < math.inf:
            raise UsageError(f"{name} is {asked}; it must be more than 0")
        if concurrency is None:
            return
        workers = len(self._workers)
        counted = self.plan.requests is not None or (self.plan.paths is not None and self.plan.paths.order == "once")
        if counted and concurrency < workers:
            raise UsageError(f"concurrency is {concurrency}; each of the {workers} workers has requests left for one")
        limits.check_concurrency(concurrency, workers)

    def _kill_stuck(self) -> None:
        for worker in self._workers:
            worker.kill()

    async def _supervise(self) -> None:
        await asyncio.gather(*(self._follow(worker) for worker in self._workers))
        await asyncio.gather(*(worker.reap() for worker in self._workers))
        self._emit(self._ending())

    async def _follow(self, worker: WorkerProcess) -> None:
        """Turn one worker's lines into events until there are no more."""
        number = worker.assignment.worker
        while line := await worker.line():
            try:
                if line.startswith(protocol.SAYING):
                    message = protocol.decode_saying.decode(line)
                    worker.done = message if isinstance(message, Done) else worker.done
                else:
                    self._tick(events.decode(line))
            except msgspec.MsgspecError:
                # A killed worker may leave half a line.
                break
        if worker.done is None:
            detail = await worker.death()
            self._lost.append(detail)
            self._emit(WorkerLost(t=self._clock.now(), run=self.run, worker=number, detail=detail))

    def _tick(self, event: AnyEvent) -> None:
        if isinstance(event, Tick):
            at = self._clock.at
            self._emit(replace(event, t=at(event.t), start=at(event.start)))

    def _ending(self) -> RunEnded:
        t, total = self._clock.now(), len(self._workers)
        lost = f"{len(self._lost)} of {total} load workers died ({self._lost[0]})" if self._lost else ""
        if len(self._lost) == total:
            return RunEnded(t=t, run=self.run, reason="failed", detail=lost)
        stopped = any(worker.done and worker.done.reason == "stopped" for worker in self._workers)
        partial = f"figures are partial: {lost}" if lost else ""
        return RunEnded(t=t, run=self.run, reason="stopped" if stopped else "completed", detail=partial)


async def launch(
    plan: LoadPlan,
    run: int,
    clock: Clock,
    emit: Emit,
    found: preflight.Preflight | None = None,
) -> LoadRun:
    """Start the workers and, once all are ready, the run. Emits RunStarted before it returns.

    `found` is the result of a preflight; without it the name is resolved here and the target is not contacted.
    Raises UsageError, TargetError, or CockpitError if a worker does not start.
    """
    limits.check(plan)
    log = await asyncio.to_thread(read_log, plan) if plan.replay is not None else None
    if log is not None:
        requests = log.total if plan.requests is None else min(plan.requests, log.total)
        plan = replace(plan, requests=requests, replay=replace(log.replay, seconds=log.seconds))
    plan, lowered = limits.fitted(plan)
    if found is None:
        addresses = await preflight.resolve(plan)
        names = tuple(dict.fromkeys(str(address[0]) for address in addresses))
        found = preflight.Preflight(address=addresses[0], addresses=names, warnings=(*lowered, *limits.warnings(plan)))
    assignments = protocol.assignments(plan, run, found.address)
    if log is not None:
        assignments = [replace(each, log=log.share(each.worker, each.workers)) for each in assignments]
    workers = await _raise_workers(assignments)
    now = clock.now()
    emit(RunStarted(t=now, run=run, plan=plan.without_secrets(), addresses=found.addresses, warnings=found.warnings))
    for worker in workers:
        worker.tell(Start(clock.origin + now))
    return LoadRun(plan, run, clock, emit, workers, now)


async def _raise_workers(assignments: list[Assignment]) -> list[WorkerProcess]:
    """All workers, ready; or none, and the error of the first that failed."""
    spawning = asyncio.gather(*map(WorkerProcess.spawn, assignments), return_exceptions=True)
    try:
        workers: list[Any] = await asyncio.shield(spawning)
    except asyncio.CancelledError:
        # A process whose start is broken off would be waited for without an end: it has to be there to be ended.
        await asyncio.gather(*(worker.reap() for worker in await spawning if isinstance(worker, WorkerProcess)))
        raise
    raised = [worker for worker in workers if isinstance(worker, WorkerProcess)]
    try:
        for worker in workers:
            if isinstance(worker, OSError):
                raise CockpitError(f"a load worker did not start: {worker.strerror or worker}")
            if isinstance(worker, BaseException):
                raise worker
        await asyncio.gather(*(worker.ready() for worker in raised))
    except BaseException:
        await asyncio.gather(*(worker.reap() for worker in raised))
        raise
    return raised
