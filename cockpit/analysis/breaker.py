"""Thresholds that are checked during a run, to end it as soon as one fails."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.analysis.baseline import Baseline
from cockpit.analysis.thresholds import Status, Threshold, ThresholdResult, hold
from cockpit.model.errors import UsageError
from cockpit.model.figures import run_result
from cockpit.model.state import State

# Failures count at once; other metrics are unreliable in the first seconds.
_AT_ONCE = ("failed", "errors")
# Metrics that only grow during a run: a lower bound can be checked only at the end.
_GROWING = ("completed", "sent", "bytes", "duration")
# Session seconds between two looks.
_EVERY = 0.2
# Seconds of a run before anything but failures can end it.
_FIRST = 2.0


def check_abort(threshold: Threshold) -> Threshold:
    """Return the threshold if it can end a run. Raises UsageError."""
    if threshold.name in _GROWING:
        raise UsageError(f"{threshold.text!r}: {threshold.name} is known only at the end of a run; use --threshold")
    return threshold


class Breaker:
    """Called with each state; returns whether a threshold failed, from then on always. `broken` is that one."""

    def __init__(self, thresholds: Sequence[Threshold], baseline: Baseline | None = None) -> None:
        self.broken: ThresholdResult | None = None
        self._thresholds = thresholds
        self.baseline = baseline
        self._looked = 0.0

    def __call__(self, state: State) -> bool:
        if self.broken is None and self._thresholds and state.running and state.t >= self._looked + _EVERY:
            self._looked = state.t
            self.broken = self._look(state, state.running)
        return self.broken is not None

    def _look(self, state: State, run: int) -> ThresholdResult | None:
        result = run_result(state, run)
        if result is None or result.segments[0].warmup:
            return None
        early = result.seconds < _FIRST
        known = [one for one in self._thresholds if not early or one.name in _AT_ONCE]
        outcomes = hold(known, result, self.baseline)
        return next((one for one in outcomes if one.found is not None and one.status is Status.FAILED), None)
