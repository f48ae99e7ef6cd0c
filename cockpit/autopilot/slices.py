"""Fitted metric along each knob, with the other knobs at their best values so far. Pure."""

from __future__ import annotations

import math
from typing import NamedTuple

from cockpit.autopilot.knobs import space_of
from cockpit.autopilot.search import FAILED, Search, Trial, error_of
from cockpit.model.autopilot import AutopilotState, AutopilotTrial

# Slices need this many more measured points than knobs.
_EXTRA_POINTS = 2
# Limits of a fit, far above those of any search: a recording is untrusted input.
_MAX_KNOBS, _MAX_VALUES, _MAX_TRIALS = 20, 100, 500


class SlicePoint(NamedTuple):
    """Fitted metric at a value of a knob, with its 95% interval; the other knobs are at their best values."""

    value: str
    mean: float
    low: float
    high: float


class Slice(NamedTuple):
    """The fitted metric over the values of a knob, in order. `importance`: relevance of the knob, as a share."""

    knob: str
    importance: float
    points: tuple[SlicePoint, ...]


class SearchFit(NamedTuple):
    """Best settings by the fitted mean (None: none meets the constraints), and the slices through them."""

    best: dict[str, str] | None
    slices: tuple[Slice, ...] = ()


def search_fit(state: AutopilotState) -> SearchFit:
    """Fit the evaluations of a search. Return no best settings for a plan that cockpit cannot have made."""
    plan = state.begun.plan
    sizes = [len(knob.values) for knob in plan.knobs]
    if not 0 < len(sizes) <= _MAX_KNOBS or not all(0 < size <= _MAX_VALUES for size in sizes):
        return SearchFit(None)
    space = space_of(plan.knobs)
    sign = 1 if plan.maximize else -1
    try:
        constraints = 0 if plan.searches_capacity else len(plan.constraints)
        search = Search(space, space.point(state.begun.original), constraints, plan.seed)
        for trial in state.trials[-_MAX_TRIALS:]:
            score = None if trial.metric is None else sign * math.log(trial.metric)
            margins, error = _margins(trial, constraints), error_of(trial.interval)
            search.tell(Trial(space.point(trial.values), score, margins, error))
    except (KeyError, ValueError):
        return SearchFit(None)
    best = search.best()
    if not best:
        return SearchFit(None)
    measured = {trial.point for trial in search.trials if trial.score is not None}
    if len(measured) < len(sizes) + _EXTRA_POINTS:
        return SearchFit(space.values(best[0]))
    importance = search.importance()
    slices = []
    for at, dimension in enumerate(space.dimensions):
        points = [(*best[0][:at], value, *best[0][at + 1 :]) for value in range(len(dimension.values))]
        fitted = search.predict(points)
        intervals = [
            (sign * (mean - 1.96 * wide), sign * (mean + 1.96 * wide)) for mean, wide in zip(*fitted, strict=True)
        ]
        values = zip(dimension.values, fitted.mean, intervals, strict=True)
        slice_points = tuple(
            SlicePoint(value, math.exp(sign * mean), math.exp(min(end)), math.exp(max(end)))
            for value, mean, end in values
        )
        slices.append(Slice(dimension.knob, importance[dimension.knob], slice_points))
    return SearchFit(space.values(best[0]), tuple(sorted(slices, key=lambda each: -each.importance)))


def _margins(trial: AutopilotTrial, constraints: int) -> tuple[float, ...]:
    """Return the margins of a trial; all FAILED if the recording does not have one per constraint."""
    return trial.margins if len(trial.margins) == constraints else (FAILED,) * constraints
