"""Runs of a live session: start, stop, adjustment of the load, and extension until a verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TypedDict

from msgspec.structs import replace

from cockpit.analysis.blocks import BLOCK
from cockpit.analysis.verdicts.wait import awaited_segment, awaits_verdict
from cockpit.load.pool import LoadRun, launch
from cockpit.load.preflight import Preflight
from cockpit.load.workers import LocalLauncher, WorkerLauncher
from cockpit.model.clock import Clock
from cockpit.model.errors import CockpitError, UsageError
from cockpit.model.events import AnyEvent, ExtensionReason
from cockpit.model.load.checks import check_plan
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.session.live_events import LiveEvents


class LiveLoad:
    """Runs of `plan`, one at a time; the load of the active run can be changed.

    `failure`: why the last start failed, "" if it did not.
    """

    def __init__(
        self,
        plan: LoadPlan,
        clock: Clock,
        emit: Callable[[AnyEvent], None],
        launcher: WorkerLauncher | None = None,
        learn: Callable[[LoadPlan], None] = lambda _: None,
    ) -> None:
        """`launcher` starts the load workers; None: on this machine. `learn` gets each plan before its load starts."""
        self._learn = learn
        self.plan = plan
        self.runs = 0
        self.failure = ""
        self._clock = clock
        self._emit = emit
        self._launcher = launcher or LocalLauncher()
        self._launcher.attach(clock, emit)
        self._run: LoadRun | None = None
        self._locked = ""
        self._start_lock = asyncio.Lock()
        self._preflight: asyncio.Task[Preflight] | None = None

    @property
    def plan(self) -> LoadPlan:
        return self._plan

    @plan.setter
    def plan(self, plan: LoadPlan) -> None:
        self._learn(plan)
        self._plan = plan

    @property
    def running(self) -> bool:
        return self._run is not None

    @property
    def active(self) -> LoadPlan | None:
        """The plan of the active run."""
        return self._run.plan if self._run is not None else None

    @property
    def pids(self) -> tuple[int, ...]:
        return self._run.pids if self._run is not None else ()

    @property
    def starting(self) -> bool:
        """Whether the target is being checked before a run."""
        return self._preflight is not None

    async def start(self, plan: LoadPlan | None = None) -> None:
        """Start a run of `plan` (None: the session's plan) once the target has responded; do nothing if a run is active
        or starting. `stop` cancels the start. Raises TargetError.
        """
        plan = plan or self.plan
        if self._run is not None or self._preflight is not None:
            return
        self._learn(plan)
        async with self._start_lock:
            self._preflight = asyncio.get_running_loop().create_task(self._launcher.check(plan))
            try:
                await asyncio.wait([self._preflight])
                if self._preflight.cancelled():
                    return
                checked = self._preflight.result()
                self._run = await launch(plan, self.runs + 1, self._clock, self._emit, checked, self._launcher)
                self.failure = ""
            except CockpitError as error:
                self.failure = error.problem
                raise
            finally:
                self._preflight.cancel()
                self._preflight = None
            self.runs += 1
            self._run_task = asyncio.get_running_loop().create_task(self._wait(self._run))

    async def stop(self) -> None:
        """Stop the run, or its start, and wait for its last tick."""
        if self._preflight is not None:
            self._preflight.cancel()
        async with self._start_lock:
            if self._run is not None:
                self._run.stop()
                await self._run_task

    async def over(self) -> None:
        """Wait until no run is active, so that another can start. Cancelling this does not stop the run."""
        if self._run is not None:
            await asyncio.wait([self._run_task])

    async def wait_undisturbed(self, seconds: float, stopping: asyncio.Event) -> bool:
        """Wait; return whether neither the end of the load nor `stopping` came first."""
        waits = [asyncio.ensure_future(self.over()), asyncio.ensure_future(stopping.wait())]
        try:
            done, _ = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in waits:
                end.cancel()
        return not done

    def extend(self, until: float, awaited: ExtensionReason, change: str = "") -> None:
        """Postpone the end of the active run, if any, to `until` (session time, s) or later; see LoadRun.extend."""
        if self._run is not None:
            self._run.extend(until, awaited, change)

    @contextmanager
    def locked(self, reason: str) -> Iterator[None]:
        """Refuse changes of the load by the user, for `reason`."""
        self._locked = reason
        try:
            yield
        finally:
            self._locked = ""

    def set_rate(self, rate: float) -> None:
        """Change the rate of the active run, if any, but not of the next one."""
        if self._run is not None:
            self._run.adjust(rate=rate)

    def check_lock(self) -> None:
        """Raises UsageError if the load and the settings must not change."""
        if self._locked:
            raise UsageError(self._locked)

    def change(self, more: bool) -> None:
        """Change the load by 10%, at least one connection: of the active run, else of the next run."""
        self.check_lock()
        if self.plan.traffic:
            raise UsageError("users decide the load; it cannot be changed here")
        if self.plan.replay is not None:
            raise UsageError("a replayed log sets the load; start it again with another --speed")
        if self.plan.ramp_to is not None:
            raise UsageError("the load is a ramp; press = to set another load")
        if self.plan.rate is not None:
            self._set(rate=float(f"{self.plan.rate * (1.1 if more else 1 / 1.1):.3g}"))
        else:
            step = max(1, self.plan.concurrency // 10)
            self._set(concurrency=max(1, self.plan.concurrency + (step if more else -step)))

    def set_plan(self, plan: LoadPlan) -> None:
        """Use the plan for the next run; the active run follows its load at once if it can. Raises UsageError."""
        self.check_lock()
        run = self._run
        if run is not None and run.plan.adjustable(plan) and _amount(plan) != _amount(self.plan):
            run.adjust(**_amount(plan))
        self.plan = plan

    def _set(self, *, concurrency: int | None = None, rate: float | None = None) -> None:
        if not (concurrency or rate):
            raise UsageError("load must be greater than 0; stop the run instead")
        if self.plan.stages and self._run is None:
            raise UsageError("the next run has load steps; its load can be changed once it runs")
        plan = replace(self.plan, concurrency=concurrency or self.plan.concurrency, rate=rate or self.plan.rate)
        check_plan(plan)
        if self._run is not None:
            self._run.adjust(concurrency=concurrency, rate=rate)
        self.plan = plan

    async def _wait(self, run: LoadRun) -> None:
        await run.wait()
        self._run = None


class _Amount(TypedDict):
    concurrency: int | None
    rate: float | None
    ramp_to: float | None


def _amount(plan: LoadPlan) -> _Amount:
    """Return the load of a plan without load levels, in the form for LoadRun.adjust."""
    concurrency = plan.concurrency if plan.rate is None else None
    return {"concurrency": concurrency, "rate": plan.rate, "ramp_to": plan.ramp_to}


# Seconds between two verdicts on a running segment: it gains one block in this time.
JUDGE_EVERY = float(BLOCK)
Spawn = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]


class RunExtension:
    """Extends the run until there is a verdict on a change or a duet, or until the maximum extension of its plan.

    Only one change is awaited: a later change, or an undo, replaces the previous one.
    """

    def __init__(self, load: LiveLoad, events: LiveEvents, spawn: Spawn) -> None:
        self._load = load
        self._events = events
        self._spawn = spawn
        self._awaited: ExtensionReason = "verdict"
        self._change = ""
        self._verdict_task: asyncio.Task[None] | None = None

    def extend_by(self, awaited: ExtensionReason, seconds: float, change: str = "") -> None:
        """Extend the run by at least `seconds`, without waiting for a verdict."""
        self._cancel()
        self._extend(awaited, seconds, change)

    def prepare(self) -> None:
        """Extend the run while a change is made."""
        if self._load.plan.extend > 0:
            self.extend_by("verdict", self._load.plan.extend)

    def await_verdict(self, change: str) -> None:
        """Extend the run until the verdict on a change that just became active, or until the maximum extension."""
        limit = self._load.plan.extend
        if not self._load.running or limit <= 0:
            self.release()
            return
        self.extend_by("verdict", limit, change)
        self._verdict_task = self._spawn(self._watch(change))

    def await_duet(self) -> None:
        """Extend a duet that begins until its verdict, or until the maximum extension."""
        plan = self._load.active or self._load.plan
        if plan.extend > 0:
            self.extend_by("verdict", (plan.seconds or 0.0) + plan.extend)
            self._verdict_task = self._spawn(self._watch(""))

    def release(self) -> None:
        """End the extension: the run ends as planned."""
        self._cancel()
        self._extend(self._awaited, 0.0, self._change)

    def _cancel(self) -> None:
        if self._verdict_task is not None and self._verdict_task is not asyncio.current_task():
            self._verdict_task.cancel()
        self._verdict_task = None

    def _extend(self, awaited: ExtensionReason, seconds: float, change: str) -> None:
        self._awaited, self._change = awaited, change
        self._load.extend(self._events.now() + seconds, awaited, change)

    async def _watch(self, change: str) -> None:
        """Release the run once further seconds cannot change the verdict."""
        run = self._load.runs

        def segment_started(state: State) -> bool:
            return awaited_segment(state, change) is not None or state.running != run

        state = await self._events.until(segment_started)
        while state.running == run:
            if not awaits_verdict(state, change):
                self.release()
                return
            state = await self._state_at(run, state.t + JUDGE_EVERY)

    async def _state_at(self, run: int, due: float) -> State:
        """Return the state at `due`, or at the end of the run."""
        return await self._events.until(lambda state: state.t >= due or state.running != run)
