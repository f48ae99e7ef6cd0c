"""The wait for enough load before a change: how much there is, what is missing, what an early change costs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cockpit.analysis.awaited import BASELINE, baseline_seconds, baseline_wait
from cockpit.model.state import State
from cockpit.session.controls import Tuning

# Seconds by which the run is extended beyond the wait, for the change itself.
_SPARE = 30.0


def offer(state: State) -> str:
    """Return what Enter does now, while the baseline is short; "" when it is long enough or no load runs."""
    left = baseline_wait(state)
    if not left:
        return ""
    return (
        f"baseline {baseline_seconds(state)} of {BASELINE} s: Enter waits {math.ceil(left)} s, then applies; Enter "
        "again applies at once, without a verdict (rounds, r, still give one)"
    )


class BaselineWait:
    """Counts down until a change of `values` has its baseline; the run in flight does not end meanwhile."""

    def __init__(self, tuning: Tuning, values: Mapping[str, str], state: State) -> None:
        self.values = dict(values)
        self._tuning = tuning
        self._run = state.running
        tuning.await_baseline(baseline_wait(state) + _SPARE)

    def cancel(self) -> None:
        """Let the run end by its plan."""
        self._tuning.release()

    def is_over(self, state: State) -> bool:
        return baseline_wait(state) == 0.0

    def is_lost(self, state: State) -> bool:
        """Whether the load that is waited for has ended."""
        return state.running != self._run

    def words(self, state: State) -> str:
        """Return the countdown."""
        left = math.ceil(baseline_wait(state))
        return f"applying in {left} s, when the baseline has {BASELINE} s   Enter: now, without a verdict   Esc: cancel"
