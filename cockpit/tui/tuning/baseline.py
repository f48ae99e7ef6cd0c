"""The wait for a complete baseline before a change."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cockpit.analysis.verdict_wait import BASELINE, LONGER, baseline_power, baseline_seconds, baseline_wait
from cockpit.analysis.words import detectable_amount
from cockpit.model.state import State
from cockpit.session.controls import Tuning
from cockpit.tui.key_table import MainKey, TuningKey

# Seconds of load beyond the wait, for the change itself.
_SPARE = 30.0


def offer(state: State) -> str:
    """Return the effect of Enter while the baseline is too short, else ""."""
    left = baseline_wait(state)
    if not left:
        return ""
    return (
        f"baseline {baseline_seconds(state)} of {BASELINE} s: Enter waits {math.ceil(left)} s, then applies; Enter "
        f"again applies at once, without a verdict (rounds, {MainKey.ROUNDS}, still give one)"
    )


def power_words(state: State) -> str:
    """Return the smallest change that the baseline so far can find, and a longer one; empty if that is unknown."""
    power = baseline_power(state)
    if power is None:
        return ""
    longer = "" if power.longer is None else f"; {LONGER} s would find ≥ {detectable_amount(power.longer)}"
    within = f"within {math.ceil(power.after)} s after the change"
    return f"baseline {power.seconds} s finds {power.metric} ≥ {detectable_amount(power.found)} {within}{longer}"


class BaselineWait:
    """Waits until a change of `values` has its baseline; the run is extended until then."""

    def __init__(self, tuning: Tuning, values: Mapping[str, str], state: State) -> None:
        self.values = dict(values)
        self._tuning = tuning
        self._run = state.running
        tuning.await_baseline(baseline_wait(state) + _SPARE)

    def cancel(self) -> None:
        self._tuning.release()

    def is_over(self, state: State) -> bool:
        return baseline_wait(state) == 0.0

    def is_lost(self, state: State) -> bool:
        return state.running != self._run

    def words(self, state: State) -> str:
        left = math.ceil(baseline_wait(state))
        keys = f"Enter: now, without a verdict   {TuningKey.CLOSE}: cancel"
        return f"applying in {left} s, when the baseline has {BASELINE} s   {keys}"
