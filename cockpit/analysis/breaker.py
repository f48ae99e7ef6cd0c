"""Thresholds that are looked at while a run goes on, to end it as soon as one is broken."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.analysis.baseline import Baseline
from cockpit.analysis.thresholds import Status, Threshold, ThresholdResult, hold
from cockpit.model.errors import UsageError
from cockpit.model.figures import run_result
from cockpit.model.state import State

# Failures count from the first on; of anything else the first seconds say little.
_AT_ONCE = ("failed", "errors")
# What only grows while a run goes on: that it is too little can be told at the end alone.
_GROWING = ("completed", "sent", "bytes", "duration")
# Session seconds between two looks.
_EVERY = 0.2
# Seconds of a run before anything but failures can end it.
_FIRST = 2.0


def check_abort(threshold: Threshold) -> Threshold:
    """The threshold, where it can end a run. Raises UsageError."""
    if threshold.name in _GROWING:
        raise UsageError(f"{threshold.text!r}: {threshold.name} is known only at the end of a run; use --threshold")
    return threshold


class Breaker:
    """Called with each state; says whether a threshold is broken, from then on always. `broken` is that one."""

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
