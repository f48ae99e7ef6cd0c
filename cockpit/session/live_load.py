"""Starting and stopping runs in a live session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from cockpit.load.pool import LoadRun, launch
from cockpit.load.preflight import Preflight, preflight
from cockpit.model.clock import Clock
from cockpit.model.errors import UsageError
from cockpit.model.events import AnyEvent, Awaited
from cockpit.model.load import LoadPlan
from cockpit.model.units import parse_count, parse_rate
from cockpit.profiles.plan import Wrong, check_plan


class LiveLoad:
    """One run at a time of `plan`, whose load can be changed while it runs."""

    def __init__(self, plan: LoadPlan, clock: Clock, emit: Callable[[AnyEvent], None]) -> None:
        self.plan = plan
        self.runs = 0
        self._clock = clock
        self._emit = emit
        self._run: LoadRun | None = None
        self._beginning = asyncio.Lock()
        self._asking: asyncio.Task[Preflight] | None = None

    @property
    def running(self) -> bool:
        return self._run is not None

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers of the run."""
        return self._run.pids if self._run is not None else ()

    @property
    def starting(self) -> bool:
        """Whether the target is being asked, before a run."""
        return self._asking is not None

    async def start(self, plan: LoadPlan | None = None) -> None:
        """Begins a run, of `plan` or of the session's own, once the target has answered; does nothing while one is
        under way, or when it is stopped meanwhile. Raises TargetError.
        """
        plan = plan or self.plan
        if self._run is not None or self._asking is not None:
            return
        async with self._beginning:
            self._asking = asyncio.get_running_loop().create_task(preflight(plan))
            try:
                await asyncio.wait([self._asking])
                if self._asking.cancelled():
                    return
                found = self._asking.result()
                self._run = await launch(plan, self.runs + 1, self._clock, self._emit, found)
            finally:
                self._asking.cancel()
                self._asking = None
            self.runs += 1
            self._waiting = asyncio.get_running_loop().create_task(self._wait(self._run))

    async def stop(self) -> None:
        """Ends the run, or its beginning, and waits for its last tick."""
        if self._asking is not None:
            self._asking.cancel()
        async with self._beginning:
            if self._run is not None:
                self._run.stop()
                await self._waiting

    async def over(self) -> None:
        """Until no run is under way and another can begin. Being cancelled here does not stop it."""
        if self._run is not None:
            await asyncio.wait([self._waiting])

    def extend(self, until: float, awaited: Awaited, change: str = "") -> None:
        """Let the run in flight, if there is one, end no sooner than `until` (session time); see LoadRun.extend."""
        if self._run is not None:
            self._run.extend(until, awaited, change)

    def change(self, more: bool) -> None:
        """A tenth more or less load, at least one connection: at once, or for the next run where none is under way."""
        if self.plan.rate is not None:
            self._set(rate=float(f"{self.plan.rate * (1.1 if more else 1 / 1.1):.3g}"))
        else:
            step = max(1, self.plan.concurrency // 10)
            self._set(concurrency=max(1, self.plan.concurrency + (step if more else -step)))

    def set(self, text: str) -> None:
        """Exactly `40` connections or `2000/s` arrivals. Raises UsageError."""
        try:
            if self.plan.rate is not None:
                self._set(rate=parse_rate(text))
            else:
                self._set(concurrency=parse_count(text))
        except ValueError as error:
            raise UsageError(str(error)) from None

    def _set(self, *, concurrency: int | None = None, rate: float | None = None) -> None:
        if not (concurrency or rate):
            raise UsageError("load must be more than 0; press space to stop")
        if self.plan.stages and self._run is None:
            raise UsageError("the next run climbs its ladder; its load can be altered once it runs")
        plan = replace(self.plan, concurrency=concurrency or self.plan.concurrency, rate=rate or self.plan.rate)
        try:
            check_plan(plan)
        except Wrong as error:
            raise UsageError(str(error)) from None
        if self._run is not None:
            self._run.adjust(concurrency=concurrency, rate=rate)
        self.plan = plan

    async def _wait(self, run: LoadRun) -> None:
        await run.wait()
        self._run = None
