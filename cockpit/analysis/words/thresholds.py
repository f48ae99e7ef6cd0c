"""Threshold results as text."""

from __future__ import annotations

from cockpit.analysis.baseline import LEVEL, Ratio
from cockpit.analysis.thresholds import Status, ThresholdResult
from cockpit.metrics.catalogue import entry
from cockpit.metrics.units import value_text


def found_words(outcome: ThresholdResult) -> str:
    """Return `found 812 ms`, with the limit if that is relative to a baseline."""
    name = outcome.threshold.name
    if outcome.value is None:
        return "no data"
    words = f"found {metric_text(name, outcome.value)}"
    inconclusive = outcome.status is Status.INCONCLUSIVE
    if not outcome.threshold.of_baseline:
        return f"{words}, interpolated between reported percentiles" if inconclusive else words
    if outcome.limit is None:
        return f"{words}, but the baseline has no such metric"
    if outcome.ratio is None:
        needs = f"{words}, needs {outcome.threshold.operator} {metric_text(name, outcome.limit)}"
        return f"{needs}; only totals are known" if inconclusive else needs
    return f"{words}, {ratio_words(outcome.ratio)}{_settling_words(outcome)}"


def ratio_words(ratio: Ratio) -> str:
    """Return `98.2% of baseline (95% CI 93.1–103.6%, n = 5 vs 1)`."""
    value, low, high = (f"{100 * part:.1f}" for part in (ratio.value, ratio.low, ratio.high))
    before, after = ratio.runs
    assumed = "" if not ratio.assumed else f"; a spread of {100 * (ratio.spread or 0):.0f}% between runs is assumed"
    return f"{value}% of baseline ({100 * LEVEL:.0f}% CI {low}–{high}%, n = {before} vs {after}{assumed})"


def _settling_words(outcome: ThresholdResult) -> str:
    if outcome.status is not Status.INCONCLUSIVE or outcome.ratio is None:
        return ""
    if outcome.ratio.assumed:
        return "; more runs on either side measure the spread"
    if outcome.needed is None:
        return "; too near to the limit even for 100 runs per side"
    return f"; about {outcome.needed} runs per side settle it"


def metric_text(name: str, value: float) -> str:
    return value_text(entry(name).unit, value, 5)
