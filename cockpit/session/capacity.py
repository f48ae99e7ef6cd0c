"""Capacity search of a live session: one run of open load whose rate follows the search."""

from __future__ import annotations

import asyncio
import contextlib

from msgspec.structs import replace

from cockpit.analysis.capacity.levels import is_hopeless, level_of, longest_wait, parse_limits, shares
from cockpit.analysis.capacity.result import levels_of
from cockpit.analysis.capacity.search import LONGEST, START, Aim, Step, next_step
from cockpit.analysis.thresholds import Threshold
from cockpit.metrics.results import segments_result
from cockpit.model.capacity import CapacityBegun, CapacityEnded, CapacityLevel, CapacityLevelEnded, CapacityOutcome
from cockpit.model.errors import ChangeRefused, CockpitError, UsageError
from cockpit.model.load.checks import check_plan
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.session.live_events import LiveEvents
from cockpit.session.live_load import LiveLoad

# Time (s) after the end of a level at which its last ticks have arrived.
_TICKS = 0.3
# A level is watched for a hopeless result from this time (s) on, and checked at this interval.
_FIRST, _EVERY = 1.0, 0.5
# A failed level is followed by this share of its rate until the requests in flight are this multiple of those before
# it, or this time (s) is over.
_DRAIN_RATE, _DRAINED, _DRAIN = 0.1, 2, 10.0
# The run lasts longer than the search, which stops it.
_SLACK = 600.0
# Maximum wait (s) for the end of a search when the session closes.
_CLOSING = 5.0


class CapacitySearch:
    """Searches for the highest arrival rate that holds limits, one search at a time, each in a run of its own.
    `longest`: the usual maximum duration (s)."""

    def __init__(self, load: LiveLoad, events: LiveEvents) -> None:
        self.running = False
        self.longest = LONGEST
        self._number = 0
        self._load = load
        self._events = events
        self._stopping = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def stop(self) -> None:
        """Stop the search and its load."""
        self._stopping.set()

    async def close(self) -> None:
        """Stop the search, and wait until its end is reported."""
        self.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING):
                await self._idle.wait()

    async def run(self, text: str, longest: float | None = None) -> None:
        """Search within the limits `text`, for at most `longest` seconds (None: the usual ones). Raises UsageError for
        invalid limits or an unsuitable load, ChangeRefused if a run is active, TargetError."""
        limits = parse_limits(text)
        plan = searchable(self._load.plan)
        if self.running or self._load.running or self._load.starting:
            raise ChangeRefused("a capacity search needs a run of its own; stop the load first")
        longest = longest or self.longest
        aim = Aim(
            start=plan.rate or START,
            share=min(shares(limits), default=1.0),
            settle=1.0 + longest_wait(limits),
            longest=longest,
        )
        self.running = True
        self._idle.clear()
        self._stopping.clear()
        try:
            await self._load.start(replace(plan, duration=longest + _SLACK))
            if self._load.active is not None:
                with self._load.locked("a capacity search sets the load; stop it first"):
                    await self._search(limits, aim)
        finally:
            await self._load.stop()
            self.running = False
            self._idle.set()

    async def _search(self, limits: tuple[Threshold, ...], aim: Aim) -> None:
        self._number += 1
        begun = self._events.now()
        texts = tuple(limit.text for limit in limits)
        number, run = self._number, self._load.runs
        self._events.emit(CapacityBegun(t=begun, number=number, run=run, limits=texts, longest=aim.longest))
        outcome: CapacityOutcome = "failed"
        detail = ""
        try:
            outcome = await self._levels(limits, aim, begun)
        except asyncio.CancelledError:
            outcome, detail = "stopped", "interrupted"
            raise
        except CockpitError as error:
            detail = str(error)
            raise
        finally:
            self._events.emit(CapacityEnded(t=self._events.now(), number=number, outcome=outcome, detail=detail))

    async def _levels(self, limits: tuple[Threshold, ...], aim: Aim, begun: float) -> CapacityOutcome:
        await self._events.until(lambda state: state.running_capacity is not None)
        calm, level = 0, 0
        while isinstance(step := self._next(aim, begun), Step):
            level += 1
            self._load.set_rate(step.rate)
            if not await self._load.wait_undisturbed(step.settle, self._stopping):
                break
            before = _in_flight(self._events.state)
            await self._measure(level, step, limits)
            if not self._undisturbed():
                break
            levels = levels_of(state := self._events.state, state.capacities[-1])
            if levels and levels[-1].holds:
                calm = max(calm, before)
            else:
                await self._drain(step.rate, calm)
        else:
            return step
        return "stopped" if self._stopping.is_set() else "load ended"

    def _next(self, aim: Aim, begun: float) -> Step | CapacityOutcome:
        state = self._events.state
        return next_step(levels_of(state, state.capacities[-1]), aim, self._events.now() - begun)

    async def _measure(self, level: int, step: Step, limits: tuple[Threshold, ...]) -> None:
        """Measure a level, shorter if its result is hopeless."""
        t = self._events.now()
        self._events.emit(CapacityLevel(t=t, number=self._number, level=level, rate=step.rate, until=t + step.seconds))
        while (left := t + step.seconds - self._events.now()) > 0:
            if not await self._load.wait_undisturbed(min(left, _EVERY), self._stopping):
                break
            segment = self._events.state.segments[-1]
            if segment.seconds >= _FIRST and is_hopeless(
                level_of(step.rate, segments_result([segment], segment.plan, segment.seconds), limits), step.seconds
            ):
                break
        if self._undisturbed():
            end = self._events.now()
            self._events.emit(CapacityLevelEnded(t=end, number=self._number))
            await self._load.wait_undisturbed(_TICKS, self._stopping)
            await self._events.until(lambda state: state.t > end or state.running is None)

    async def _drain(self, rate: float, calm: int) -> None:
        """Lower the load until requests in flight are back to normal."""
        self._load.set_rate(max(1.0, rate * _DRAIN_RATE))
        end = self._events.now() + _DRAIN
        while _in_flight(self._events.state) > _DRAINED * (calm + 1) and self._events.now() < end:
            if not await self._load.wait_undisturbed(_TICKS, self._stopping):
                return

    def _undisturbed(self) -> bool:
        return self._load.running and not self._stopping.is_set()


def searchable(plan: LoadPlan) -> LoadPlan:
    """Return the plan as open load for a search, without levels, count and warm-up. Raises UsageError if it cannot be
    open load of any length."""
    if plan.traffic:
        raise UsageError("a capacity search needs a load that cockpit sends, not the traffic of users")
    if plan.variants:
        raise UsageError("a duet has no capacity of its own; search that of one target")
    constant = replace(plan, stages=(), requests=None, warmup=0.0, think_time=None, ramp_to=None)
    if not constant.extendable:
        raise UsageError("a capacity search needs a load of any length, not a log or paths that are used once")
    searched = replace(constant, rate=plan.rate or START, duration=LONGEST)
    check_plan(searched)
    return searched


def _in_flight(state: State) -> int:
    return sum(worker.requests for worker in state.in_flight.values())
