"""Extends the run in flight until the verdict on a change is in, or until the cap that its plan names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from cockpit.analysis.awaited import awaits_verdict, change_row
from cockpit.analysis.blocks import BLOCK
from cockpit.model.clock import Clock
from cockpit.model.events import Awaited
from cockpit.model.state import State
from cockpit.session.latest import Latest
from cockpit.session.live_load import LiveLoad

# Seconds between two judgements: a growing row gains a block in this time.
LOOK_EVERY = float(BLOCK)
Spawn = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]


class Extending:
    """One change at a time: a later one, or an undo, takes the place of the one before."""

    def __init__(self, load: LiveLoad, clock: Clock, latest: Latest, spawn: Spawn) -> None:
        self._load = load
        self._clock = clock
        self._latest = latest
        self._spawn = spawn
        self._awaited: Awaited = "verdict"
        self._change = ""
        self._watching: asyncio.Task[None] | None = None

    def hold(self, awaited: Awaited, seconds: float, change: str = "") -> None:
        """Let the run in flight go on for at least so many seconds; nothing is judged meanwhile."""
        self._cancel()
        self._extend(awaited, seconds, change)

    def prepare(self) -> None:
        """Let the run go on while a change is made."""
        if self._load.plan.extend > 0:
            self.hold("verdict", self._load.plan.extend)

    def await_verdict(self, change: str) -> None:
        """Let the run go on until the verdict on the change that is active from now on is in, or the cap is reached."""
        cap = self._load.plan.extend
        if not self._load.running or cap <= 0:
            self.release()
            return
        self.hold("verdict", cap, change)
        self._watching = self._spawn(self._watch(change))

    def release(self) -> None:
        """Nothing is awaited: the end of the plan takes effect."""
        self._cancel()
        self._extend(self._awaited, 0.0, self._change)

    def _cancel(self) -> None:
        if self._watching is not None and self._watching is not asyncio.current_task():
            self._watching.cancel()
        self._watching = None

    def _extend(self, awaited: Awaited, seconds: float, change: str) -> None:
        self._awaited, self._change = awaited, change
        self._load.extend(self._clock.now() + seconds, awaited, change)

    async def _watch(self, change: str) -> None:
        """Release the run once no further second can change the verdict."""
        run = self._load.runs

        def row_known(state: State) -> bool:
            return change_row(state, change) is not None or state.running != run

        state = await self._latest.until(row_known)
        while state.running == run:
            if not awaits_verdict(state, change):
                self.release()
                return
            state = await self._observed(run, state.t + LOOK_EVERY)

    async def _observed(self, run: int, due: float) -> State:
        """Return the state at `due`, or at the end of the run."""
        return await self._latest.until(lambda state: state.t >= due or state.running != run)
