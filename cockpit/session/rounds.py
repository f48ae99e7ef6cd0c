"""Rounds under load: both settings of a change, each window after its own set-up, until the verdict is in.

The side that is active at the start is the base. Windows of the other side lie within a change that is never confirmed,
so that the host rolls it back by itself if this process or the connection is lost. A base window follows such a
rollback, which is its set-up: a side that follows itself is left and entered again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.analysis.intervals import FIRST_TEST
from cockpit.analysis.outcome import Verdict
from cockpit.analysis.rounds import UNCOUNTED, RoundsPlan, announcement, rounds_verdict, sequence
from cockpit.model.clock import Clock
from cockpit.model.errors import ChangeRefused, CockpitError
from cockpit.model.events import AnyEvent, RoundsBegun, RoundsEnded, RoundsOutcome, RoundWindow, RoundWindowEnded, Side
from cockpit.model.knobs import Setting
from cockpit.session.changes import Hold
from cockpit.session.live_load import LiveLoad, RunExtension
from cockpit.session.loop import Latest

# Seconds that a set-up may take, for the length of the run alone.
_SET_UP = 180.0
# Seconds beyond a window after which the host rolls the change back by itself.
_SPARE = 30.0
# Seconds after the end of a window until its last metrics have arrived.
_ARRIVED = 2.0
MakeAndUndo = Callable[[float, Hold], Awaitable[None]]


class Subject(NamedTuple):
    """The compared settings of a host, from old (before) to new (after). `active` is the currently active side,
    `change` the letter of the change that made the new values active ("": none did)."""

    host: str
    settings: tuple[Setting, ...]
    active: Side
    change: str = ""

    def values(self, side: Side) -> dict[str, str | None]:
        return {one.knob: one.old if side == "before" else one.new for one in self.settings}


class Conclusion(NamedTuple):
    """How rounds ended, and their verdict (None: no round was complete)."""

    outcome: RoundsOutcome
    verdict: Verdict | None


class Rounds:
    """Rounds one at a time, under the current run or their own."""

    def __init__(
        self,
        load: LiveLoad,
        extension: RunExtension,
        clock: Clock,
        emit: Callable[[AnyEvent], None],
        latest: Latest,
    ) -> None:
        self.number = 0
        self.running = False
        self._begun = False
        self._load = load
        self._extension = extension
        self._clock = clock
        self._emit = emit
        self._latest = latest
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End them and undo the current change at once."""
        self._stopping.set()

    def check(self) -> None:
        """Raises ChangeRefused if this load cannot be used for rounds."""
        if self._load.starting:
            raise ChangeRefused("the load is starting; press the key again once it runs")
        plan = self._load.active or self._load.plan
        if plan.stages:
            raise ChangeRefused("this load has load levels: rounds need one load that stays")
        if not plan.extendable:
            raise ChangeRefused("this load uses each path once: rounds need one that can go on")

    async def run(self, subject: Subject, plan: RoundsPlan, change: MakeAndUndo) -> Conclusion:
        """Measure until the verdict is in; the base is active again then. `end` has to follow.

        Raises what `change` and the load raise, the rounds ended.
        """
        self.check()
        self.running = True
        self._stopping.clear()
        own = not self._load.running
        try:
            if own:
                await self._load.start(replace(self._load.plan, requests=None, duration=self._longest(plan)))
            else:
                self._extension.hold("rounds", _SET_UP)
            self._begin(subject, plan)
            outcome = await self._measure(subject, plan, change)
            return Conclusion(outcome, self._verdict())
        except BaseException as error:
            self.interrupted(subject, error)
            raise
        finally:
            if own:
                await self._load.stop()
            else:
                self._extension.release()

    def interrupted(self, subject: Subject, error: BaseException) -> None:
        """Report that an error or a cancellation ended them: the side of the start is active."""
        failed = isinstance(error, CockpitError)
        self.end("failed" if failed else "stopped", subject.active, str(error) if failed else "interrupted")

    def end(self, outcome: RoundsOutcome, active: Side, detail: str = "") -> None:
        """Report their end, and which side is active; once, and only if they began."""
        self.running = False
        if self._begun:
            self._begun = False
            self._emit(
                RoundsEnded(t=self._clock.now(), number=self.number, outcome=outcome, active=active, detail=detail)
            )

    def _longest(self, plan: RoundsPlan) -> float:
        return 2 * plan.rounds * (plan.seconds + UNCOUNTED + 2 * _SET_UP)

    def _begin(self, subject: Subject, plan: RoundsPlan) -> None:
        first = plan.first
        announced = announcement(self._latest.state, first, plan.seconds)
        self.number += 1
        self._begun = True
        self._emit(
            RoundsBegun(
                t=self._clock.now(),
                number=self.number,
                run=self._load.runs,
                host=subject.host,
                settings=subject.settings,
                first=first,
                seconds=plan.seconds,
                longest=announced.seconds,
                active=subject.active,
                change=subject.change,
                seed=plan.seed,
                detectable=announced.detectable,
            )
        )

    async def _measure(self, subject: Subject, plan: RoundsPlan, change: MakeAndUndo) -> RoundsOutcome:
        whole = plan.seconds + UNCOUNTED
        before = subject.active
        for number, side in enumerate(sequence(plan.first)):
            if not self._load.running:
                return "load ended"
            self._extension.hold("rounds", whole + 2 * _SET_UP)
            if side != subject.active:
                complete = await self._within(change, number // 2 + 1, side, whole)
            else:
                if before == subject.active:
                    await change(_SPARE, _nothing)
                complete = await self._window(number // 2 + 1, side, whole)
            if not complete:
                return "stopped" if self._stopping.is_set() else "load ended"
            before = side
            if number % 2 and await self._is_concluded(number // 2 + 1, plan):
                return "verdict"
        return "budget"

    async def _within(self, change: MakeAndUndo, number: int, side: Side, seconds: float) -> bool:
        """Measure a window within a change; return whether it has its full length."""
        complete = False

        async def hold() -> None:
            nonlocal complete
            complete = await self._window(number, side, seconds)

        await change(seconds + _SPARE, hold)
        return complete

    async def _window(self, number: int, side: Side, seconds: float) -> bool:
        """Measure; return whether the window has its full length: nobody stopped it, and the load went on."""
        t = self._clock.now()
        self._emit(RoundWindow(t=t, number=self.number, round=number, side=side, until=t + seconds))
        ends = [asyncio.ensure_future(self._load.over()), asyncio.ensure_future(self._stopping.wait())]
        try:
            done, _ = await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
        if not done:
            self._emit(RoundWindowEnded(t=self._clock.now(), number=self.number))
        return not done

    async def _is_concluded(self, number: int, plan: RoundsPlan) -> bool:
        """Judge after a round, once its metrics have arrived."""
        if number < FIRST_TEST:
            return False
        arrived = self._clock.now() + _ARRIVED
        state = await self._latest.until(lambda state: state.t >= arrived or state.running is None)
        verdict = rounds_verdict(state, state.rounds[-1])
        return verdict is not None and plan.concluded(verdict)

    def _verdict(self) -> Verdict | None:
        state = self._latest.state
        return rounds_verdict(state, state.rounds[-1]) if state.rounds else None


async def _nothing() -> None:
    """The set-up is all that the change was made for."""
