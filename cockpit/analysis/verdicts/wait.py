"""Time that a change under load still needs: before it for a baseline, after it for a verdict. Pure."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cockpit.analysis.blocks import BLOCK, block_count, block_sample
from cockpit.analysis.duet import is_settled
from cockpit.analysis.effects import HEADLINE_SHARE
from cockpit.analysis.intervals import ALPHA
from cockpit.analysis.switch import switch
from cockpit.analysis.switch.switch import IN_A_ROW, LEAST
from cockpit.analysis.switch.verdict import switch_scale
from cockpit.analysis.verdicts.outcome import Cause, Design, Outcome, Verdict
from cockpit.analysis.verdicts.segments import duet_segment_verdict, segment_before, segment_verdict
from cockpit.analysis.windows import GUARD, Window, window_between
from cockpit.model.state import Segment, State

# Seconds that must be counted before a change for a verdict on it, and after it for the first one.
BASELINE = LEAST * BLOCK
FIRST = (LEAST + IN_A_ROW - 1) * BLOCK
_RECENT = 4 * BASELINE
# Seconds of a longer baseline, for comparison.
LONGER = 60
# Objections that more data cannot remove.
_FINAL = (Cause.LOAD_DIFFERS, Cause.RUN_FAILED, Cause.PARTIAL)


def baseline_seconds(state: State) -> int:
    """Return the seconds of baseline that a change made now would have; 0 without load."""
    segment = state.segment
    if segment is None or not _is_measured(state, segment):
        return 0
    return len(_baseline(state, segment).seconds)


def baseline_wait(state: State) -> float:
    """Return the seconds until the baseline is long enough for a change; 0: it is, or no constant load runs."""
    segment = state.segment
    if segment is None or state.running is None or segment.plan.ramp_to is not None:
        return 0.0
    if segment.warmup:
        return BASELINE + GUARD + max(0.0, segment.plan.warmup - segment.seconds)
    window = _baseline(state, segment)
    missing = (LEAST - block_count(window)) * BLOCK
    if missing <= 0:
        return 0.0
    # The incomplete block has some of its seconds.
    started = len(window.seconds) % BLOCK
    return max(1.0, missing - started + max(0.0, GUARD - segment.seconds))


class BaselinePower(NamedTuple):
    """Minimum detectable effects (shares, power 80%) on the headline `metric`, `after` seconds after a change made now:
    `present` with the present baseline of `seconds`, `longer` with a baseline of LONGER seconds (None: the baseline is
    that long)."""

    metric: str
    seconds: int
    after: float
    present: float
    longer: float | None


def baseline_power(state: State) -> BaselinePower | None:
    """Return the minimum detectable effects of a change made now, while the run is extended. None without load,
    baseline or extension."""
    segment = state.segment
    if segment is None or not _is_measured(state, segment):
        return None
    after = int(segment.plan.extend // BLOCK)
    blocks = block_sample(_baseline(state, segment)).blocks
    metric = "p99" if segment.plan.open else "rate"
    values = blocks[metric][~np.isnan(blocks[metric])]
    if after < LEAST or len(values) < LEAST or values.mean() <= 0:
        return None
    scale, _ = switch_scale(metric, values, values)
    alpha = ALPHA * HEADLINE_SHARE

    def detectable(number: int) -> float:
        return math.expm1(min(switch.detectable_after(values, number, after, alpha, scale), 700.0))

    now, longest = len(values), LONGER // BLOCK
    longer = detectable(longest) if now < longest else None
    return BaselinePower(metric, now * BLOCK, segment.plan.extend, detectable(now), longer)


def _is_measured(state: State, segment: Segment) -> bool:
    """Return whether a segment of constant load is being measured."""
    return segment.run == state.running and not segment.warmup and segment.plan.ramp_to is None


def _baseline(state: State, segment: Segment) -> Window:
    """Return the window of a segment up to the last complete second: a change spoils the second in which it begins.

    For a long segment it is only the last part, if that is enough, because a screen asks twice per second.
    """
    end = min(segment.last, math.floor(state.t))
    if segment.seconds > 2 * _RECENT:
        recent = window_between(state, end - _RECENT, end, segment.plan)
        if block_count(recent) >= LEAST:
            return recent
    return window_between(state, segment.start, end, segment.plan)


def segment_of_change(state: State, change: str) -> Segment | None:
    return next((segment for segment in reversed(state.segments) if segment.changes == (change,)), None)


def awaited_segment(state: State, change: str) -> Segment | None:
    """Return the segment whose verdict is awaited: after a change, or without one of a duet."""
    if change:
        return segment_of_change(state, change)
    duet = state.segment is not None and state.segment.plan.variants and not state.segment.warmup
    return state.segment if duet else None


def awaits_verdict(state: State, change: str) -> bool:
    """Return whether the run in flight can still bring a verdict on a change that became active in it, or on its
    duet."""
    segment = awaited_segment(state, change)
    if segment is None or segment.run != state.running or segment.end is not None:
        return False
    if not change:
        return is_open(duet_segment_verdict(state, segment))
    base = segment_before(state, segment)
    return base is not None and is_open(segment_verdict(state, segment, base))


def is_open(verdict: Verdict) -> bool:
    """Return whether more seconds can conclude the verdict on one switch, or on a duet."""
    before, after = verdict.values
    if before < LEAST and verdict.design is Design.SWITCH:
        return False
    if verdict.outcome is Outcome.INVALID and verdict.objection is not None:
        return verdict.objection.cause not in _FINAL and after * BLOCK < FIRST
    if verdict.design is Design.DUET:
        return verdict.growing and not is_settled(verdict)
    return verdict.outcome is Outcome.INCONCLUSIVE and verdict.growing
