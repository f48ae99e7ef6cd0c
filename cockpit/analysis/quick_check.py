"""A quick check: some seconds of load against thresholds and a baseline. Pure."""

from __future__ import annotations

from cockpit.analysis.baseline import Baseline
from cockpit.analysis.thresholds import ThresholdResult, hold, parse_threshold, with_defaults
from cockpit.model.metrics import segments_result
from cockpit.model.state import Segment, State

# Seconds of load that are checked.
QUICK = 15.0


def quick_check(state: State, segment: Segment, baseline: Baseline | None) -> tuple[ThresholdResult, ...]:
    """Return the results of the session's thresholds, or of the default ones, for a segment of its runs."""
    plan = state.plans[segment.run]
    own = tuple(parse_threshold(text) for text in (state.started.thresholds if state.started else ()))
    result = segments_result([segment], plan, segment.seconds)
    return hold(with_defaults(own, baseline, plan), result, baseline)
