"""Rounds under load: windows of both sides of a change, each after its own set-up, until the verdict.

The base is the side that is active at the start. The other side is measured within a change that is never confirmed, so
that the host rolls it back by itself if this process or the connection is lost. The set-up of a base window is such a
rollback; between two consecutive base windows, a change is made and undone.

On two servers, the first has the new values while its sibling has the old values, and both exchange their roles in the
next window. Both are set up for each window: by a change, by a rollback, or by a change that is made and undone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.analysis.intervals import FIRST_TEST
from cockpit.analysis.rounds import ENDS, UNCOUNTED, RoundsPlan, announcement, other_side, rounds_verdict, sequence
from cockpit.analysis.verdicts.outcome import Outcome, Verdict
from cockpit.model.errors import ChangeRefused, CockpitError
from cockpit.model.events import (
    CONNECTED,
    RoundsBegun,
    RoundsEnded,
    RoundSide,
    RoundsOutcome,
    RoundWindow,
    RoundWindowEnded,
)
from cockpit.model.host.state import HostState
from cockpit.model.knobs import Setting
from cockpit.session.capacity import CapacitySearch
from cockpit.session.live_events import LiveEvents
from cockpit.session.live_load import LiveLoad, RunExtension

# Time (s) allowed for a set-up when the length of the run is computed.
_SET_UP = 180.0
# Time (s) after the planned end of a window at which the host rolls the change back by itself: a capacity search drains
# the queue of its last level.
_ROLLBACK_DELAY = 45.0
# Time (s) after the end of a window at which its last metrics have arrived.
_METRICS_DELAY = 2.0
# A window whose host was lost is repeated when the host is back within _BACK_WITHIN s, _MOST_REPEATS times in all.
_BACK_WITHIN = 60.0
_MOST_REPEATS = 3
# Runs while a change is active; the change is undone when it returns.
Hold = Callable[[], Awaitable[None]]
# Activates values of knobs while a Hold runs, for at most some seconds.
KnobValues = Mapping[str, str | None]
ApplyTemporarily = Callable[[KnobValues, float, Hold], Awaitable[None]]


class ComparedSettings(NamedTuple):
    """The compared settings of a host, old (before) and new (after). `active`: the currently active side; `change`: the
    letter of the change that activated the new values ("": none). The knobs of a `sibling` ("": none) have the old
    values at the start, and always the other side."""

    host: str
    settings: tuple[Setting, ...]
    active: RoundSide
    change: str = ""
    sibling: str = ""
    sibling_settings: tuple[Setting, ...] = ()

    def values(self, side: RoundSide) -> dict[str, str | None]:
        return _values(self.settings, side)

    def final(self, chosen: RoundSide, verdict: Verdict | None) -> dict[str, dict[str, str | None]]:
        """Return the values to activate after the rounds, by host: a sibling gets new values that are better."""
        values = {} if chosen == self.active else {self.host: self.values(chosen)}
        better = chosen == "after" and verdict is not None and verdict.outcome is Outcome.BETTER
        return values | ({self.sibling: _values(self.sibling_settings, "after")} if self.sibling and better else {})

    @property
    def base(self) -> dict[str, str | None]:
        """The values at the start, also of the sibling."""
        return self.values(self.active) | _values(self.sibling_settings, "before")

    def changes(self, side: RoundSide) -> dict[str, str | None]:
        """Return the values of a side that differ from those at the start."""
        own = {} if side == self.active else self.values(side)
        return own | (_values(self.sibling_settings, "after") if side == "before" else {})


def _seconds(plan: RoundsPlan) -> float:
    """Return the length of a window."""
    return plan.seconds + (ENDS if plan.washout else UNCOUNTED)


def _values(settings: Sequence[Setting], side: RoundSide) -> dict[str, str | None]:
    return {setting.knob: setting.old if side == "before" else setting.new for setting in settings}


class SideSwitch(NamedTuple):
    """The set-up of a window: `change` makes and undoes `unchanged`, and makes `values` active during the window."""

    change: ApplyTemporarily
    unchanged: KnobValues
    values: KnobValues


class Conclusion(NamedTuple):
    """The outcome of rounds, and their verdict (None: no round was complete)."""

    outcome: RoundsOutcome
    verdict: Verdict | None


class Rounds:
    """Runs rounds, one at a time, under the active run or a run of their own."""

    def __init__(
        self,
        load: LiveLoad,
        extension: RunExtension,
        events: LiveEvents,
        capacity: CapacitySearch,
        ask: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`ask` waits until the user permits a switch, or stops the rounds; None: not asked."""
        self.number = 0
        self.running = False
        self._begun = False
        self._own_load = False
        self._repeats = 0
        self._load = load
        self._extension = extension
        self._events = events
        self._capacity = capacity
        self._ask = ask
        self._stopping = asyncio.Event()

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Count as running during the block: from the first plan until the chosen side is active."""
        self.running = True
        self._stopping.clear()
        try:
            yield
        finally:
            self.running = False

    def stop(self) -> None:
        """Stop the rounds and undo the current change at once."""
        self._stopping.set()
        self._capacity.stop()

    def check(self) -> None:
        """Raises ChangeRefused if the load is not suitable for rounds."""
        if self._load.starting:
            raise ChangeRefused("the load is starting; press the key again once it runs")
        plan = self._load.active or self._load.plan
        if plan.variants:
            raise ChangeRefused("a duet compares two targets; start a load of one target for rounds")
        # The load of an active run may have been changed to a ramp.
        if plan.stages or self._load.plan.ramp_to is not None:
            raise ChangeRefused("rounds need a constant load; remove the load levels or the ramp")
        if not plan.extendable:
            raise ChangeRefused(
                "rounds need a load that can be extended, not a ramp, a log or paths that are used once"
            )

    async def run(self, subject: ComparedSettings, plan: RoundsPlan, change: ApplyTemporarily) -> Conclusion:
        """Measure until the verdict; the base is active afterwards. The caller must then call `end` and `release`.

        Exceptions of `change` and of the load end the rounds and are raised.
        """
        self.check()
        if plan.until and self._load.running:
            raise ChangeRefused("a capacity search needs a run of its own; stop the load first")
        self._own_load = not self._load.running
        try:
            # Each capacity search has a run of its own.
            if self._own_load and not plan.until:
                await self._load.start(replace(self._load.plan, requests=None, duration=self._longest(plan)))
                # Limits are checked only in a run that the state shows.
                await self._events.until(lambda state: state.runs >= self._load.runs)
            elif not self._own_load:
                self._extension.extend_by("rounds", _SET_UP)
            self._begin(subject, plan)
            outcome = await self._measure(subject, plan, change)
            return Conclusion(outcome, self._verdict())
        except BaseException as error:
            self.interrupted(subject, error)
            await self.release()
            raise

    async def release(self) -> None:
        """Stop the run of these rounds; the run that they extended ends as planned."""
        if self._own_load:
            await self._load.stop()
        else:
            self._extension.release()

    def interrupted(self, subject: ComparedSettings, error: BaseException) -> None:
        """Report that an error or a cancellation ended the rounds; the base is active."""
        failed = isinstance(error, CockpitError)
        self.end("failed" if failed else "stopped", subject.active, str(error) if failed else "interrupted")

    def end(self, outcome: RoundsOutcome, active: RoundSide, detail: str = "", sibling: str = "") -> None:
        """Report the end of the rounds, the active side, and a `sibling` with the new values; once, and only if they
        began."""
        if self._begun:
            self._begun = False
            now, number = self._events.now(), self.number
            self._events.emit(
                RoundsEnded(t=now, number=number, outcome=outcome, active=active, detail=detail, sibling=sibling)
            )

    def _longest(self, plan: RoundsPlan) -> float:
        return 2 * plan.rounds * (_seconds(plan) + 2 * _SET_UP)

    def _begin(self, subject: ComparedSettings, plan: RoundsPlan) -> None:
        first = plan.first_sides
        announced = announcement(self._events.state, first, plan.seconds)
        self.number += 1
        self._begun = True
        self._events.emit(
            RoundsBegun(
                t=self._events.now(),
                number=self.number,
                run=self._load.runs + bool(plan.until),
                host=subject.host,
                settings=subject.settings,
                first=first,
                seconds=plan.seconds,
                longest=announced.seconds,
                active=subject.active,
                change=subject.change,
                seed=plan.seed,
                detectable=None if plan.until else announced.detectable,
                until=plan.until,
                sibling=subject.sibling,
                sibling_settings=subject.sibling_settings,
            )
        )

    async def _measure(self, subject: ComparedSettings, plan: RoundsPlan, change: ApplyTemporarily) -> RoundsOutcome:
        last: KnobValues = {}
        self._repeats = 0
        for number, side in enumerate(sequence(plan.first_sides)):
            values, others = subject.changes(side), subject.changes(other_side(side))
            # What the last window changed is rolled back, without a new switch.
            unchanged = {knob: value for knob, value in others.items() if knob not in values and knob not in last}
            switch = SideSwitch(change, unchanged, values)
            if not await self._repeated(partial(self._switched_window, switch, number // 2 + 1, side, plan)):
                return "stopped" if self._stopping.is_set() else "load ended"
            last = values
            if number % 2 and await self._is_concluded(number // 2 + 1, plan):
                return "verdict"
        return "budget"

    async def _repeated(self, window: Callable[[], Awaitable[bool]]) -> bool:
        """Measure a window; measure it again if its host was lost, and is back. Raises CockpitError."""
        while not self._stopping.is_set():
            try:
                return await window()
            except CockpitError as error:
                self._repeats += 1
                if not error.is_loss or self._repeats > _MOST_REPEATS or not await self._is_connected():
                    raise
        return False

    async def _is_connected(self) -> bool:
        """Wait until all hosts have sent a sample since now; return whether they have within _BACK_WITHIN seconds."""
        now = self._events.now()

        def is_back(host: HostState) -> bool:
            # The loss may not be in the state yet.
            return host.condition in CONNECTED and (host.seen or 0.0) > now

        with suppress(TimeoutError):
            async with asyncio.timeout(_BACK_WITHIN):
                await self._events.until(lambda state: all(map(is_back, state.hosts.values())))
                return True
        return False

    async def _switched_window(self, switch: SideSwitch, number: int, side: RoundSide, plan: RoundsPlan) -> bool:
        """Set the values of a side and measure its window; return whether it is complete."""
        if not plan.until:
            if not self._load.running:
                return False
            self._extension.extend_by("rounds", plan.washout + _seconds(plan) + 2 * _SET_UP)
        if self._ask is not None and (switch.values or switch.unchanged):
            await self._ask()
            if self._stopping.is_set():
                return False
        if switch.unchanged:
            await switch.change(switch.unchanged, _ROLLBACK_DELAY, _nothing)
        if switch.values:
            return await self._window_in_change(partial(switch.change, switch.values), number, side, plan)
        return await self._window(number, side, plan)

    async def _window_in_change(
        self, change: Callable[[float, Hold], Awaitable[None]], number: int, side: RoundSide, plan: RoundsPlan
    ) -> bool:
        """Measure a window within a change; return whether it reached its full length."""
        complete = False

        async def hold() -> None:
            nonlocal complete
            complete = await self._window(number, side, plan)

        await change(plan.washout + _seconds(plan) + _ROLLBACK_DELAY, hold)
        return complete

    async def _window(self, number: int, side: RoundSide, plan: RoundsPlan) -> bool:
        """Measure a window; return whether it is complete, without a stop or the end of the load."""
        if plan.washout and not await self._load.wait_undisturbed(plan.washout, self._stopping):
            return False
        t, seconds = self._events.now(), _seconds(plan)
        self._events.emit(RoundWindow(t=t, number=self.number, round=number, side=side, until=t + seconds))
        complete = await (self._searched(plan) if plan.until else self._load.wait_undisturbed(seconds, self._stopping))
        if complete:
            self._events.emit(RoundWindowEnded(t=self._events.now(), number=self.number))
        return complete

    async def _searched(self, plan: RoundsPlan) -> bool:
        """Search the capacity; return whether the search was not stopped."""
        if not self._stopping.is_set():
            await self._capacity.run(plan.until, plan.seconds)
        return not self._stopping.is_set()

    async def _is_concluded(self, number: int, plan: RoundsPlan) -> bool:
        """Return whether the sequential test concludes after a round, once its metrics have arrived."""
        if number < FIRST_TEST:
            return False
        due = self._events.now() + _METRICS_DELAY
        state = await self._events.until(lambda state: state.t >= due or state.running is None)
        verdict = rounds_verdict(state, state.rounds[-1])
        return verdict is not None and plan.concluded(verdict)

    def _verdict(self) -> Verdict | None:
        state = self._events.state
        return rounds_verdict(state, state.rounds[-1]) if state.rounds else None


async def _nothing() -> None:
    """Hold a change for no time: making and undoing it is the set-up."""
