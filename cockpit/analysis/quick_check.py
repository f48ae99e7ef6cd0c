"""A quick check: a few seconds of load, checked against thresholds and a baseline. Pure."""

from __future__ import annotations

from cockpit.analysis.baseline import Baseline
from cockpit.analysis.thresholds import ThresholdResult, check_thresholds, parse_threshold, with_defaults
from cockpit.metrics.results import segments_result
from cockpit.model.state import Segment, State

# Seconds of load that are checked.
QUICK = 15.0


def quick_check(state: State, segment: Segment, baseline: Baseline | None) -> tuple[ThresholdResult, ...]:
    """Check a segment against the session's thresholds, or against the default ones."""
    plan = state.plans[segment.run]
    configured = tuple(parse_threshold(text) for text in (state.started.thresholds if state.started else ()))
    result = segments_result([segment], plan, segment.seconds)
    return check_thresholds(with_defaults(configured, baseline, plan), result, baseline)
