"""Return whether more time after a change under load can still bring its verdict. Pure."""

from __future__ import annotations

import math

from cockpit.analysis.blocks import BLOCK, block_count
from cockpit.analysis.outcome import Cause, Outcome, Verdict
from cockpit.analysis.row_verdicts import row_before, row_verdict
from cockpit.analysis.switch import IN_A_ROW, LEAST
from cockpit.analysis.windows import GUARD, Window, window_between
from cockpit.model.state import Segment, State

# Seconds that must be counted before a change for a verdict on it, and after it for the first one.
BASELINE = LEAST * BLOCK
FIRST = (LEAST + IN_A_ROW - 1) * BLOCK
_RECENT = 4 * BASELINE
# Objections that no further second can take away.
_FINAL = (Cause.LOAD_ALTERED, Cause.LOAD_DIFFERS, Cause.RUN_FAILED, Cause.PARTIAL)


def baseline_seconds(state: State) -> int:
    """Return how many seconds a change that is made now has before it to be compared with; 0 without load."""
    row = state.segment
    if row is None or state.running is None or row.run != state.running or row.warmup:
        return 0
    return len(_baseline(state, row).seconds)


def baseline_wait(state: State) -> float:
    """Return how many seconds more it takes until a change has enough seconds before it; 0: none, or no load runs."""
    row = state.segment
    if row is None or state.running is None:
        return 0.0
    if row.warmup:
        return BASELINE + GUARD + max(0.0, row.plan.warmup - row.seconds)
    window = _baseline(state, row)
    missing = (LEAST - block_count(window)) * BLOCK
    if missing <= 0:
        return 0.0
    # The block that is being filled has some of its seconds.
    started = len(window.seconds) % BLOCK
    return max(1.0, missing - started + max(0.0, GUARD - row.seconds))


def _baseline(state: State, row: Segment) -> Window:
    """Return the window of a segment until the last second that is over: a change spoils the second in which it begins.

    Of a long segment its last part, if that is enough: a screen asks twice a second.
    """
    end = min(row.last, math.floor(state.t))
    if row.seconds > 2 * _RECENT:
        recent = window_between(state, end - _RECENT, end, row.plan)
        if block_count(recent) >= LEAST:
            return recent
    return window_between(state, row.start, end, row.plan)


def change_row(state: State, change: str) -> Segment | None:
    return next((row for row in reversed(state.segments) if row.changes == (change,)), None)


def awaits_verdict(state: State, change: str) -> bool:
    """Return whether the run in flight can still bring a verdict on a change that became active in it."""
    row = change_row(state, change)
    if row is None or row.run != state.running or row.end is not None:
        return False
    base = row_before(state, row)
    return base is not None and is_open(row_verdict(state, row, base))


def is_open(verdict: Verdict) -> bool:
    """Return whether more seconds after the change can conclude the verdict on one switch."""
    before, after = verdict.values
    if before < LEAST:
        return False
    if verdict.outcome is Outcome.INVALID and verdict.objection is not None:
        return verdict.objection.cause not in _FINAL and after * BLOCK < FIRST
    return verdict.outcome is Outcome.INCONCLUSIVE and verdict.growing
