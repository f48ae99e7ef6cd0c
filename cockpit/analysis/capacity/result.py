"""Levels and conclusion of a capacity search of a session. Pure: the same recording gives the same conclusion."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from cockpit.analysis.capacity.levels import Level, level_of
from cockpit.analysis.capacity.search import CapacityEstimate, at_least, capacity
from cockpit.analysis.thresholds import Threshold, parse_threshold
from cockpit.analysis.windows import DiscardReason, Window, unread, window_between
from cockpit.metrics.results import segments_result
from cockpit.model.capacity import CapacityOutcome
from cockpit.model.errors import UsageError
from cockpit.model.state import CapacityState, Segment, State

# A search has some tens of levels; a recording may claim more.
_MOST_LEVELS = 200
_cached = lru_cache(64)(capacity)


class CapacityResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a capacity search so far; `outcome`: None while it runs. `estimate`: the capacity; None: no level
    failed yet, or none held the limits. `at_least`: highest rate that held them, 0: none."""

    limits: tuple[str, ...]
    levels: tuple[Level, ...]
    estimate: CapacityEstimate | None
    at_least: float
    outcome: CapacityOutcome | None
    detail: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether the search ended by itself, with or without a capacity."""
        return self.outcome in ("found", "generator", "lowest", "budget")

    @property
    def rate(self) -> float | None:
        """The capacity (arrivals/s) if the search found it; a lower bound is none."""
        return self.estimate.rate if self.estimate is not None and self.outcome == "found" else None


def limits_of(search: CapacityState) -> tuple[Threshold, ...]:
    """Return the limits; those of a newer cockpit, or written by another program, are left out."""
    limits = []
    for text in search.begun.limits:
        with suppress(UsageError):
            limits.append(parse_threshold(text))
    return tuple(limits)


def levels_of(state: State, search: CapacityState) -> tuple[Level, ...]:
    """Return the complete levels with ticks."""
    return tuple(level for level, _ in _measured(state, search))


def _measured(state: State, search: CapacityState) -> Iterator[tuple[Level, Segment]]:
    limits = limits_of(search)
    run = [segment for segment in state.segments if segment.run == search.begun.run]
    segments = {segment.number: segment for segment in run if segment.seconds > 0}
    for level in search.levels[-_MOST_LEVELS:]:
        if level.end is not None and 0 < level.rate < math.inf and limits and (segment := segments.get(level.segment)):
            yield level_of(level.rate, segments_result([segment], segment.plan, segment.seconds), limits), segment


def capacity_result(state: State, search: CapacityState) -> CapacityResult:
    levels, ended = levels_of(state, search), search.ended
    return CapacityResult(
        limits=search.begun.limits,
        levels=levels,
        estimate=_cached(levels),
        at_least=at_least(levels),
        outcome=ended.outcome if ended else None,
        detail=ended.detail if ended else "",
    )


def search_of(state: State, run: int) -> CapacityState | None:
    """Return the last capacity search in a run; None: there is none."""
    known = reversed(state.capacities)
    return next((search for search in known if search.begun.run == run and run in state.plans), None)


def search_between(state: State, start: float, end: float) -> CapacityState | None:
    """Return the capacity search that began in a time range; None: there is none."""
    known = (search for search in state.capacities if start <= search.begun.t <= end)
    return next((search for search in known if search.begun.run in state.plans), None)


def result_of(state: State, run: int) -> CapacityResult | None:
    """Return the result of the last capacity search in a run; None: there is none."""
    search = search_of(state, run)
    return None if search is None else capacity_result(state, search)


def search_window(state: State, search: CapacityState) -> Window:
    """Return the window of a search, whose value is its capacity: the levels with an unsaturated generator."""
    segments = [segment for level, segment in _measured(state, search) if not level.saturated]
    start, end = (segments[0].start, segments[-1].last) if segments else (search.begun.t, search.begun.t)
    window = window_between(state, start, end, state.plans[search.begun.run])
    seconds = tuple(
        second
        for second in window.seconds
        if any(segment.start <= second.second and second.second + 1 <= segment.last for segment in segments)
    )
    return replace(
        window,
        seconds=seconds,
        segments=tuple(segments),
        flawed={flaw: count for flaw, count in window.flawed.items() if flaw is not DiscardReason.SATURATED},
        saturated=(),
        unread={name: missing for name, points in window.hosts.items() if (missing := unread(points, seconds))},
        capacity=capacity_result(state, search).rate,
    )
