"""Capacity searches in reports: JSON, conclusions and levels, and the comparison of two capacities."""

from __future__ import annotations

import math

import msgspec

from cockpit.analysis.capacity.result import CapacityResult, capacity_result
from cockpit.analysis.words.capacity import LEVEL_TITLES, capacity_words, interval_words, level_cells, limits_words
from cockpit.document.model import Block, Paragraph, Table
from cockpit.model.capacity import CapacityOutcome
from cockpit.model.state import State
from cockpit.report.encoding import struct_from


class CapacityLevelJson(msgspec.Struct, frozen=True, kw_only=True):
    """A level of a capacity search: `rate` arrivals/s for `seconds`. `exceeding`: number of requests beyond the limit
    `decisive`, `allowed`: the number that may be. `stable`: the queue did not grow. `saturated`: the generator was the
    bottleneck, so the level shows nothing about the target."""

    rate: float
    seconds: float
    holds: bool
    stable: bool
    saturated: bool
    decisive: str
    exceeding: float
    allowed: float


class CapacityJson(msgspec.Struct, frozen=True, kw_only=True):
    """A search for the highest arrival rate that holds `limits`: `rate` with its 95% interval, null if it is unknown.
    `at_least`: highest rate that held the limits; 0: none. `outcome` is null while the search runs."""

    limits: tuple[str, ...]
    outcome: CapacityOutcome | None
    rate: float | None
    low: float | None
    high: float | None
    at_least: float
    levels: list[CapacityLevelJson]
    detail: str
    text: str


def capacities_json(state: State, run: int) -> list[CapacityJson]:
    """Return the searches in a run."""
    return [capacity_json(result) for result in results_of(state, run)]


def results_of(state: State, run: int | None = None) -> list[CapacityResult]:
    """Return the results of the searches in a run; None: of the session."""
    return [capacity_result(state, search) for search in state.capacities if run in (None, search.begun.run)]


def capacity_blocks(state: State, run: int | None = None) -> list[list[Block]]:
    """Return the conclusion and the levels of each search in a run; None: of the session."""
    return [
        [
            Paragraph(f"{capacity_words(result)}; {limits_words(result)}"),
            Table(LEVEL_TITLES, [level_cells(number, level) for number, level in enumerate(result.levels, 1)]),
        ]
        for result in results_of(state, run)
    ]


def compared_words(before: CapacityResult, after: CapacityResult) -> str:
    """Return `capacity 1,840/s (…) → 2,100/s (…): +14.1% (95% CI 9.8–18.6%)`; "" unless both were found within the same
    limits."""
    old, new = before.estimate, after.estimate
    if old is None or new is None or None in (before.rate, after.rate) or before.limits != after.limits:
        return ""
    error = math.hypot(*(math.log(each.high / each.low) / 2 for each in (old, new)))
    ratio = new.rate / old.rate
    change, low, high = (100 * (ratio * math.exp(shift) - 1) for shift in (0.0, -error, error))
    change_words = f"{change:+.1f}% (95% CI {low:+.1f} to {high:+.1f}%)"
    return f"capacity {interval_words(old)} → {interval_words(new)}: {change_words}; {limits_words(after)}"


def capacity_json(result: CapacityResult) -> CapacityJson:
    estimate = result.estimate if result.outcome != "generator" else None
    return struct_from(
        CapacityJson,
        result,
        **{name: getattr(estimate, name) if estimate else None for name in ("rate", "low", "high")},
        levels=[struct_from(CapacityLevelJson, level) for level in result.levels],
        text=capacity_words(result),
    )
