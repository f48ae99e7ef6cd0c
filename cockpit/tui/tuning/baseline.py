"""The wait for a complete baseline before a change."""

from __future__ import annotations

import math

from cockpit.analysis.plans import differences
from cockpit.analysis.verdicts.wait import BASELINE, LONGER, baseline_power, baseline_seconds, baseline_wait
from cockpit.analysis.words.timeline import load_words
from cockpit.analysis.words.verdicts import detectable_amount
from cockpit.model.state import State
from cockpit.tui.key_table import MainKey

# Seconds by which the run is extended beyond the wait, for the change itself.
MARGIN = 30.0


def offer(state: State) -> str:
    """Return the hint for Enter while the baseline is too short, else ""."""
    left = baseline_wait(state)
    if not left:
        return ""
    return (
        f"baseline {baseline_seconds(state)} of {BASELINE} s{_altered(state)}. Enter: apply in {math.ceil(left)} s; "
        f"Enter again: apply now, without a verdict (rounds, {MainKey.ROUNDS}, still give a verdict)"
    )


def power_words(state: State) -> str:
    """Return the minimum detectable effect with the baseline so far, and with a longer one; "" if it is unknown."""
    power = baseline_power(state)
    if power is None:
        return ""
    longer = "" if power.longer is None else f"; {LONGER} s would find ≥ {detectable_amount(power.longer)}"
    within = f"within {math.ceil(power.after)} s after the change"
    detectable = f"{power.metric} ≥ {detectable_amount(power.present)} {within}"
    return f"baseline {power.seconds} s{_altered(state)} finds {detectable}{longer}"


def _altered(state: State) -> str:
    """Return the load of the baseline, ` at c=40`, if it was altered during the run; else ""."""
    segment = state.segment
    if segment is None or not differences(state.plans[segment.run], segment.plan) or segment.stage:
        return ""
    return f" at {load_words(segment.plan)}"
