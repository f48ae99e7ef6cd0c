"""Levels and conclusion of a capacity search of a session. Pure: the same recording gives the same conclusion."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

import msgspec

from cockpit.analysis.capacity import CapacityEstimate, at_least, capacity
from cockpit.analysis.capacity_levels import Level, level_of
from cockpit.analysis.thresholds import Threshold, parse_threshold
from cockpit.metrics.results import segments_result
from cockpit.model.errors import UsageError
from cockpit.model.events import CapacityOutcome
from cockpit.model.state import CapacityState, State

# A search has some tens of levels; a recording may claim more.
_MOST_LEVELS = 200
_cached = lru_cache(64)(capacity)


class CapacityResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a capacity search so far; `outcome`: None while it runs. `found`: the capacity; None: no level
    failed yet, or none held the limits. `at_least`: highest rate that held them, 0: none."""

    limits: tuple[str, ...]
    levels: tuple[Level, ...]
    found: CapacityEstimate | None
    at_least: float
    outcome: CapacityOutcome | None
    detail: str = ""


def limits_of(search: CapacityState) -> tuple[Threshold, ...]:
    """Return the limits; those of a newer cockpit, or written by another program, are left out."""
    limits = []
    for text in search.begun.limits:
        with suppress(UsageError):
            limits.append(parse_threshold(text))
    return tuple(limits)


def levels_of(state: State, search: CapacityState) -> tuple[Level, ...]:
    """Return the complete levels."""
    limits = limits_of(search)
    segments = {segment.number: segment for segment in state.segments if segment.run == search.begun.run}
    return tuple(
        level_of(level.rate, segments_result([segment], segment.plan, segment.seconds), limits)
        for level in search.levels[-_MOST_LEVELS:]
        if level.end is not None and level.rate > 0 and limits and (segment := segments.get(level.segment)) is not None
    )


def capacity_result(state: State, search: CapacityState) -> CapacityResult:
    levels, ended = levels_of(state, search), search.ended
    return CapacityResult(
        limits=search.begun.limits,
        levels=levels,
        found=_cached(levels),
        at_least=at_least(levels),
        outcome=ended.outcome if ended else None,
        detail=ended.detail if ended else "",
    )
