"""The fitted metric along each knob, through the best settings so far: which knob matters, and where. Pure."""

from __future__ import annotations

import math
from typing import NamedTuple

from cockpit.autopilot.knobs import space_of
from cockpit.autopilot.search import FAILED, Search, Trial
from cockpit.model.autopilot import AutopilotState, AutopilotTrial

# Settings beyond the number of knobs that were measured before a metric along them is shown.
_BEYOND = 2
# Limits of what is fitted, far beyond any search: a recording may contain anything.
_KNOBS, _VALUES, _TRIALS = 20, 100, 500


class SlicePoint(NamedTuple):
    """The metric at a value of a knob, the other knobs at their best: fitted, and where it is with 95%."""

    value: str
    mean: float
    low: float
    high: float


class Slice(NamedTuple):
    """A knob's values in order. `importance` is the share of the metric's dependence that is this knob's."""

    knob: str
    importance: float
    points: tuple[SlicePoint, ...]


class SearchFit(NamedTuple):
    """The best settings so far by the fitted mean (None: none meets the constraints), and the slices through them."""

    best: dict[str, str] | None
    slices: tuple[Slice, ...] = ()


def search_fit(state: AutopilotState) -> SearchFit:
    """Return the state of a search, from its evaluations alone; without any if its plan is none that cockpit makes."""
    plan = state.begun.plan
    sizes = [len(knob.values) for knob in plan.knobs]
    if not 0 < len(sizes) <= _KNOBS or not all(0 < size <= _VALUES for size in sizes):
        return SearchFit(None)
    space = space_of(plan.knobs)
    sign = 1 if plan.maximize else -1
    try:
        search = Search(space, space.point(state.begun.original), len(plan.constraints), plan.seed)
        for trial in state.trials[-_TRIALS:]:
            score = None if trial.metric is None else sign * math.log(trial.metric)
            search.tell(Trial(space.point(trial.values), score, _margins(trial, len(plan.constraints))))
    except (KeyError, ValueError):
        return SearchFit(None)
    best = search.best()
    if not best:
        return SearchFit(None)
    measured = {trial.point for trial in search.trials if trial.score is not None}
    if len(measured) < len(sizes) + _BEYOND:
        return SearchFit(space.values(best[0]))
    importance = search.importance()
    slices = []
    for at, dimension in enumerate(space.dimensions):
        points = [(*best[0][:at], value, *best[0][at + 1 :]) for value in range(len(dimension.values))]
        found = search.predict(points)
        ends = [(sign * (mean - 1.96 * wide), sign * (mean + 1.96 * wide)) for mean, wide in zip(*found, strict=True)]
        values = zip(dimension.values, found.mean, ends, strict=True)
        shown = tuple(
            SlicePoint(value, math.exp(sign * mean), math.exp(min(end)), math.exp(max(end)))
            for value, mean, end in values
        )
        slices.append(Slice(dimension.knob, importance[dimension.knob], shown))
    return SearchFit(space.values(best[0]), tuple(sorted(slices, key=lambda one: -one.importance)))


def _margins(trial: AutopilotTrial, constraints: int) -> tuple[float, ...]:
    """The margins of a trial; those of a recording that lacks some are as of settings that failed."""
    return trial.margins if len(trial.margins) == constraints else (FAILED,) * constraints
