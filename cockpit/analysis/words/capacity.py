"""Capacity searches as text: progress, conclusion, levels."""

from __future__ import annotations

import math

from cockpit.analysis.capacity.levels import Level
from cockpit.analysis.capacity.result import CapacityResult, capacity_result
from cockpit.analysis.capacity.search import CapacityEstimate
from cockpit.model.state import CapacityState, State
from cockpit.model.text import sanitize

LEVEL_TITLES = ("level", "arrivals/s", "s", "limits", "decisive limit", "beyond it, allowed")
_ENDED = {
    "stopped": "stopped",
    "load ended": "ended with the load",
    "failed": "failed",
}


def rate_words(rate: float) -> str:
    """Return an arrival rate with four significant digits, without the unit: 1,840 or 12.5."""
    return f"{float(f'{rate:.4g}'):,.{0 if rate >= 1000 else 1}f}".removesuffix(".0")


def interval_words(estimate: CapacityEstimate) -> str:
    """Return `1,840/s (95% CI 1,790–1,900)`."""
    return f"{rate_words(estimate.rate)}/s (95% CI {rate_words(estimate.low)}–{rate_words(estimate.high)})"


def brief_words(result: CapacityResult) -> str:
    """Return `1,840/s`, `≥ 1,800/s` for a lower bound; "": unknown."""
    if result.rate is not None:
        return f"{rate_words(result.rate)}/s"
    return f"≥ {rate_words(result.at_least)}/s" if result.at_least else ""


def capacity_words(result: CapacityResult) -> str:
    """Return the conclusion, `capacity 1,840/s (95% CI 1,790–1,900)`, or the conclusion so far."""
    words = "" if result.estimate is None else f"capacity {interval_words(result.estimate)}"
    at_least = f"capacity at least {rate_words(result.at_least)}/s" if result.at_least else ""
    if result.outcome == "generator":
        return f"{at_least or 'capacity unknown'}: the generator is the limit"
    if result.outcome == "lowest":
        lowest = min(result.levels, key=lambda level: level.rate, default=None)
        rate = f" at {rate_words(lowest.rate)}/s: {sanitize(lowest.decisive)}" if lowest else ""
        return f"limits failed at the lowest rate{rate}"
    if result.outcome == "budget":
        return f"{at_least or 'capacity unknown'}: time limit reached"
    if result.outcome in _ENDED:
        detail = f": {sanitize(result.detail)}" if result.detail else ""
        so_far = f"; {words or at_least} so far" if words or at_least else ""
        return f"capacity search {_ENDED[result.outcome]}{detail}{so_far}"
    return words or at_least or "capacity unknown"


def limits_words(result: CapacityResult) -> str:
    return sanitize(", ".join(result.limits), 200)


def progress_words(state: State, search: CapacityState, now: float) -> str:
    """Return `capacity 1,500/s (95% CI 1,300–1,900) so far; level 7: 1,600/s; at most 90 s more`."""
    last = search.levels[-1] if search.levels else None
    level = f"level {last.level}: {rate_words(last.rate)}/s" if last else "starting"
    left = max(0, math.ceil(search.begun.t + search.begun.longest - now))
    return f"{capacity_words(capacity_result(state, search))} so far; {level}; at most {left} s more"


def level_line(number: int, level: Level) -> str:
    """Return `level 7: 1,600/s for 8.0 s: limits fail (p99 < 50ms)`."""
    _, rate, seconds, status, decisive, _ = level_cells(number, level)
    limits = status if level.saturated else f"limits {status}{'' if level.holds else f' ({decisive})'}"
    return f"level {number}: {rate}/s for {seconds} s: {limits}"


def level_cells(number: int, level: Level) -> tuple[str, ...]:
    """Return the cells of a level, by LEVEL_TITLES."""
    status = "generator saturated" if level.saturated else "hold" if level.holds else "fail"
    beyond = f"{level.exceeding:.0f}, {level.allowed:.1f}"
    return (str(number), rate_words(level.rate), f"{level.seconds:.1f}", status, sanitize(level.decisive), beyond)
