"""Results of evaluations: the metric of a run under constraints, or the capacity that a search found. Pure."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from cockpit.analysis.capacity.result import CapacityResult
from cockpit.analysis.thresholds import Threshold, ThresholdResult, check_thresholds
from cockpit.analysis.words.capacity import capacity_words
from cockpit.autopilot.search import FAILED, margin_of
from cockpit.metrics.catalogue import latency_parts
from cockpit.metrics.results import RunResult
from cockpit.metrics.values import metric_value
from cockpit.model.autopilot import TrialOutcome

# Multiple of a latency limit at which an evaluation is aborted.
_ABORT_FACTOR = 10.0


class Evaluation(NamedTuple):
    """The result of an evaluation; see AutopilotTrial."""

    outcome: TrialOutcome
    metric: float | None = None
    interval: tuple[float, float] | None = None
    margins: tuple[float, ...] = ()
    detail: str = ""


def metric_evaluation(
    result: RunResult | None,
    metric: str,
    constraints: tuple[Threshold, ...],
    failed: ThresholdResult | None,
    detail: str,
) -> Evaluation:
    """Return the evaluation by a run. `failed`: the constraint that aborted it; `detail`: why it has no result."""
    value = None if result is None else metric_value(result, metric)
    margins = _margins(constraints, result)
    if failed is None and not detail and result is not None and result.reason == "completed" and value:
        return Evaluation("measured", value, margins=margins)
    margins = tuple(min(FAILED, margin) for margin in margins)
    if failed is not None:
        return Evaluation("infeasible", margins=margins, detail=failed.threshold.text)
    return Evaluation("failed", margins=margins, detail=detail or (result.detail if result else "") or f"no {metric}")


def capacity_evaluation(result: CapacityResult | None, detail: str) -> Evaluation:
    """Return the evaluation by a capacity search. Settings with which the limits fail at any rate are infeasible."""
    if detail or result is None:
        return Evaluation("failed", detail=detail or "no capacity search")
    if result.estimate is None or result.rate is None:
        return Evaluation("infeasible" if result.outcome == "lowest" else "failed", detail=capacity_words(result))
    return Evaluation("measured", result.rate, (result.estimate.low, result.estimate.high))


def abort_limit(constraint: Threshold) -> Threshold:
    """Return the limit that aborts an evaluation: _ABORT_FACTOR times that of a latency, else the constraint's own."""
    latency = constraint.operator in ("<", "<=") and latency_parts(constraint.name) is not None
    return replace(constraint, value=constraint.value * _ABORT_FACTOR) if latency else constraint


def _margins(constraints: tuple[Threshold, ...], result: RunResult | None) -> tuple[float, ...]:
    if result is None:
        return tuple(FAILED for _ in constraints)
    return tuple(
        margin_of(each.value, each.threshold.value, below=each.threshold.operator in ("<", "<="), holds=each.holds)
        for each in check_thresholds(constraints, result)
    )
