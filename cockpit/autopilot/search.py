"""Which settings to try next, and which were the best: Bayesian optimization with constraints. Pure.

The next point has the largest expected improvement, times the probability that it meets the constraints (M. A. Gelbart
et al., UAI 2014). The best is the one with the best fitted mean, never the best measurement: that was lucky.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

import numpy as np

from cockpit.autopilot.gaussian_process import GaussianProcess, Prediction
from cockpit.autopilot.space import Floats, Point, Space

# The start is measured again after this number of other points, so that a drift is seen.
AGAIN = 8
# Points considered per question: all of a space of at most this size; else this number of random ones, and the
# neighbours of this number of the best ones.
_ALL, _RANDOM, _BEST = 5000, 2000, 6
# Knobs that are searched at a time, of more: those that matter most by then.
_SEARCHED = 6
# The probability of meeting the constraints from which a measured point can be the best.
_LIKELY = 0.5
# Largest margin that a constraint is fitted with, and that of one without a scale, or of settings that failed.
LARGEST, FAILED = 0.5, -0.5
# Sets of starting points of which the one that is farthest apart is taken.
_DRAWS = 30


class Trial(NamedTuple):
    """A measured point. `score` is the logarithm of the objective, more is better; None: the settings failed.
    `margins` are by how much each constraint holds (below 0: broken), see margin_of."""

    point: Point
    score: float | None
    margins: tuple[float, ...] = ()


class Search:
    """A search from the point `start`, with a number of constraints. The same seed asks the same questions."""

    def __init__(self, space: Space, start: Point, constraints: int, seed: int) -> None:
        self.space = space
        self.start = start
        self.trials: list[Trial] = []
        self.excluded: set[Point] = set()
        self._draw = Random(seed)
        self._constraints = constraints
        self._queue = self._starting_points()
        self._since_start = 0
        self._fitted: _Fit | None = None

    @property
    def searching(self) -> bool:
        """Whether the starting points are measured."""
        return not self._queue and bool(self.trials)

    def ask(self) -> Point | None:
        """Return the next point; None: nothing is left to try."""
        if not self.trials or self._since_start >= AGAIN:
            return self.start
        if self._queue:
            return self._queue[0]
        return self._most_promising()

    def tell(self, trial: Trial) -> None:
        """Take the result of a point, asked for or not."""
        self.trials.append(trial)
        self._since_start = 0 if trial.point == self.start else self._since_start + 1
        self._queue = [point for point in self._queue if point != trial.point]
        self._fitted = None

    def exclude(self, point: Point) -> None:
        """Never ask for a point (again)."""
        self.excluded.add(point)
        self._queue = [other for other in self._queue if other != point]

    def best(self, number: int = 1) -> list[Point]:
        """Return the points with the best fitted means that probably meet the constraints, best first."""
        measured = sorted({trial.point for trial in self.trials if trial.score is not None})
        if not measured:
            return []
        fit = self._fit()
        means, likely = fit.score(measured).mean, fit.feasible(measured)
        order = sorted(range(len(measured)), key=lambda at: (likely[at] < _LIKELY, -means[at]))
        return [measured[at] for at in order if likely[at] >= _LIKELY][:number]

    def expected_improvement(self) -> float:
        """Return what the next point is expected to add (a share of the objective)."""
        points = self._candidates()
        return float(self._acquisition(points).max()) if points else 0.0

    def predict(self, points: Sequence[Point]) -> Prediction:
        """Return the fitted logarithm of the objective. Raises ValueError before the first measurement."""
        return self._fit().score(points)

    def importance(self) -> dict[str, float]:
        """Return how much the objective depends on each knob: shares."""
        shares = self._fit().importance
        return {one.knob: float(share) for one, share in zip(self.space.dimensions, shares, strict=True)}

    def _starting_points(self) -> list[Point]:
        """2d + 2 points with the start, far from each other."""
        number = 2 * len(self.space.dimensions) + 1

        def nearest(points: list[Point]) -> float:
            chosen = np.array([self.start, *points])
            tables = enumerate(self.space.tables)
            apart = sum(table[chosen[:, at][:, None], chosen[:, at][None, :]] for at, table in tables)
            return float(np.asarray(apart + 1e9 * np.eye(len(chosen))).min())

        draws = [self.space.spread(number, self._draw) for _ in range(_DRAWS)]
        return [point for point in max(draws, key=nearest) if point != self.start]

    def _candidates(self) -> list[Point]:
        """The points to choose from: none that was measured. Of many knobs, every other time, those that matter least
        stay at their best values."""
        measured = {trial.point for trial in self.trials} | self.excluded
        held = self._held()
        points = (tuple(held.get(at, value) for at, value in enumerate(point)) for point in self._considered())
        return [point for point in dict.fromkeys(points) if point not in measured]

    def _held(self) -> dict[int, int]:
        """The values of the knobs beyond the most important ones, by place."""
        best = self.best()
        if len(self.space.dimensions) <= _SEARCHED or not best or len(self.trials) % 2:
            return {}
        order = np.argsort(self._fit().importance, kind="stable")
        return {int(at): best[0][at] for at in order[:-_SEARCHED]}

    def _considered(self) -> Iterable[Point]:
        if self.space.size <= _ALL:
            return self.space.all()
        near = [point for best in self.best(_BEST) for point in self.space.neighbours(best)]
        near += [other for point in near for other in self.space.neighbours(point)][:_RANDOM]
        anywhere = [self.space.random(self._draw) for _ in range(_RANDOM)]
        return (*near, *anywhere)

    def _most_promising(self) -> Point | None:
        points = self._candidates()
        return points[int(self._acquisition(points).argmax())] if points else None

    def _acquisition(self, points: Sequence[Point]) -> Floats:
        fit = self._fit()
        likely = fit.feasible(points)
        best = self.best()
        if not best or fit.scores is None:
            return likely
        top = float(fit.score(best).mean[0])
        found = fit.score(points)
        away = (found.mean - top) / found.deviation
        return np.asarray(found.deviation * (away * _normal(away) + _density(away)) * likely)

    def _fit(self) -> _Fit:
        if self._fitted is None:
            self._fitted = _Fit(self.space, self.trials, self._constraints)
        return self._fitted


class _Fit:
    """The processes fitted to all trials: one of the objective, one per constraint that was near to its limit."""

    def __init__(self, space: Space, trials: Sequence[Trial], constraints: int) -> None:
        times = np.arange(len(trials), dtype=np.float64)
        points = np.array([trial.point for trial in trials], dtype=np.int64)
        good = np.array([trial.score is not None for trial in trials])

        def process(values: Sequence[float], where: Floats) -> GaussianProcess:
            return GaussianProcess(space.tables, points[where], np.asarray(values, dtype=np.float64), times[where])

        scores = [trial.score for trial in trials if trial.score is not None]
        self.scores = process(scores, good) if scores else None
        margins = [[trial.margins[at] if trial.margins else FAILED for trial in trials] for at in range(constraints)]
        margins.append([LARGEST if one else FAILED for one in good])
        everywhere = np.ones(len(trials), dtype=bool)
        self._limits = [process(one, everywhere) for one in margins if min(one) < 0]

    @property
    def importance(self) -> Floats:
        if self.scores is None:
            raise ValueError("nothing was measured")
        return self.scores.importance

    def score(self, points: Sequence[Point]) -> Prediction:
        if self.scores is None:
            raise ValueError("nothing was measured")
        return self.scores.predict(np.array(points, dtype=np.int64))

    def feasible(self, points: Sequence[Point]) -> Floats:
        """The probability that a point meets all constraints."""
        found = np.ones(len(points))
        for limit in self._limits:
            mean, deviation = limit.predict(np.array(points, dtype=np.int64))
            found *= _normal(mean / deviation)
        return found


def margin_of(value: float | None, limit: float, *, below: bool, holds: bool) -> float:
    """Return by how much a constraint holds: the logarithm of the ratio to its limit, within ±LARGEST; without a scale
    (no value, or one of both is 0) that value by itself."""
    if value is None or value <= 0 or limit <= 0:
        return LARGEST if holds else FAILED
    ratio = math.log(limit / value) if below else math.log(value / limit)
    return max(-LARGEST, min(LARGEST, ratio))


def _density(values: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * values**2) / math.sqrt(2 * math.pi))


def _normal(values: Floats) -> Floats:
    return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in values])
