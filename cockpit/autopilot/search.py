"""Bayesian optimization with constraints: the next point to try, and the best so far. Pure.

The next point has the largest expected improvement, times the probability that it meets the constraints (M. A. Gelbart
et al., UAI 2014). The best point has the best fitted mean; the best measurement is biased by its noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

import numpy as np

from cockpit.analysis.intervals import Floats
from cockpit.autopilot.gaussian_process import GaussianProcess, Prediction
from cockpit.autopilot.space import SearchPoint, Space

# The start is measured again after this number of other points, so that a drift can be fitted.
AGAIN = 8
# Candidates for the next point: all points of a space up to size _ALL; in a larger space _RANDOM random points and the
# neighbours of the _BEST best.
_ALL, _RANDOM, _BEST = 5000, 2000, 6
# Maximum number of knobs that vary at a time: the most relevant ones.
_MAX_VARIED = 6
# Minimum probability of meeting the constraints for a measured point to be the best.
_FEASIBLE = 0.5
# Largest margin of a constraint in a fit, and the margin of failed settings and of a failed constraint without a scale.
LARGEST, FAILED = 0.5, -0.5
# Random sets of starting points, of which the one with the largest minimum distance is taken.
_DRAWS = 30


class Trial(NamedTuple):
    """A measured point. `score` is the logarithm of the objective, more is better; None: the settings failed.
    `margins`: distance of each constraint to its limit (below 0: failed), see margin_of. `error`: known standard error
    of the score."""

    point: SearchPoint
    score: float | None
    margins: tuple[float, ...] = ()
    error: float = 0.0


class Search:
    """A search from the point `start`, with a number of constraints. The seed makes it reproducible."""

    def __init__(self, space: Space, start: SearchPoint, constraints: int, seed: int) -> None:
        self.space = space
        self.start = start
        self.trials: list[Trial] = []
        self.excluded: set[SearchPoint] = set()
        self._draw = Random(seed)
        self._constraints = constraints
        self._queue = self._starting_points()
        self._since_start = 0
        self._fitted: _Fit | None = None

    @property
    def searching(self) -> bool:
        """Whether all starting points have been measured."""
        return not self._queue and bool(self.trials)

    def ask(self) -> SearchPoint | None:
        """Return the next point; None if no point is left."""
        if not self.trials or self._since_start >= AGAIN:
            return self.start
        if self._queue:
            return self._queue[0]
        points = self._candidates()
        return points[int(self._acquisition(points).argmax())] if points else None

    def tell(self, trial: Trial) -> None:
        """Add a result, also of a point that was not suggested."""
        self.trials.append(trial)
        self._since_start = 0 if trial.point == self.start else self._since_start + 1
        self._queue = [point for point in self._queue if point != trial.point]
        self._fitted = None

    def exclude(self, point: SearchPoint) -> None:
        """Exclude a point from further suggestions."""
        self.excluded.add(point)
        self._queue = [queued for queued in self._queue if queued != point]

    def best(self, number: int = 1) -> list[SearchPoint]:
        """Return the points with the best fitted means that probably meet the constraints, best first."""
        measured = sorted({trial.point for trial in self.trials if trial.score is not None})
        if not measured:
            return []
        fit = self._fit()
        means, likely = fit.score(measured).mean, fit.feasible(measured)
        order = sorted(range(len(measured)), key=lambda at: (likely[at] < _FEASIBLE, -means[at]))
        return [measured[at] for at in order if likely[at] >= _FEASIBLE][:number]

    def expected_improvement(self) -> float:
        """Return the expected improvement by the next point, as a share of the objective; infinite as long as no
        measured point meets the constraints."""
        points = self._candidates()
        if points and not self.best():
            return math.inf
        return float(self._acquisition(points).max()) if points else 0.0

    def predict(self, points: Sequence[SearchPoint]) -> Prediction:
        """Return the fitted logarithm of the objective. Raises ValueError before the first measurement."""
        return self._fit().score(points)

    def importance(self) -> dict[str, float]:
        """Return the relevance of each knob for the objective, as shares that add up to 1."""
        shares = self._fit().importance
        return {dimension.knob: float(share) for dimension, share in zip(self.space.dimensions, shares, strict=True)}

    def _starting_points(self) -> list[SearchPoint]:
        """Return up to 2d + 1 points (d: number of knobs) far from each other and from the start."""
        number = 2 * len(self.space.dimensions) + 1

        def nearest(points: list[SearchPoint]) -> float:
            chosen = np.array([self.start, *points])
            tables = enumerate(self.space.tables)
            apart = sum(table[chosen[:, at][:, None], chosen[:, at][None, :]] for at, table in tables)
            return float(np.asarray(apart + 1e9 * np.eye(len(chosen))).min())

        draws = [self.space.latin_hypercube(number, self._draw) for _ in range(_DRAWS)]
        return [point for point in max(draws, key=nearest) if point != self.start]

    def _candidates(self) -> list[SearchPoint]:
        measured = {trial.point for trial in self.trials} | self.excluded
        fixed = self._fixed_values()
        points = (tuple(fixed.get(at, value) for at, value in enumerate(point)) for point in self._considered())
        return [point for point in dict.fromkeys(points) if point not in measured]

    def _fixed_values(self) -> dict[int, int]:
        """Return the best values of the least relevant knobs, by index: every other time if there are many knobs."""
        best = self.best()
        if len(self.space.dimensions) <= _MAX_VARIED or not best or len(self.trials) % 2:
            return {}
        order = np.argsort(self._fit().importance, kind="stable")
        return {int(at): best[0][at] for at in order[:-_MAX_VARIED]}

    def _considered(self) -> Iterable[SearchPoint]:
        if self.space.size <= _ALL:
            return self.space.all()
        near = [point for best in self.best(_BEST) for point in self.space.neighbours(best)]
        near += [neighbour for point in near for neighbour in self.space.neighbours(point)][:_RANDOM]
        anywhere = [self.space.random(self._draw) for _ in range(_RANDOM)]
        return (*near, *anywhere)

    def _acquisition(self, points: Sequence[SearchPoint]) -> Floats:
        fit = self._fit()
        likely = fit.feasible(points)
        best = self.best()
        if not best or fit.scores is None:
            return likely
        best_mean = float(fit.score(best).mean[0])
        predicted = fit.score(points)
        z = (predicted.mean - best_mean) / predicted.deviation
        return np.asarray(predicted.deviation * (z * _normal(z) + _density(z)) * likely)

    def _fit(self) -> _Fit:
        if self._fitted is None:
            self._fitted = _Fit(self.space, self.trials, self._constraints)
        return self._fitted


class _Fit:
    """Gaussian processes fitted to all trials: one for the objective, one per constraint that ever failed."""

    def __init__(self, space: Space, trials: Sequence[Trial], constraints: int) -> None:
        times = np.arange(len(trials), dtype=np.float64)
        points = np.array([trial.point for trial in trials], dtype=np.int64)
        good = np.array([trial.score is not None for trial in trials])

        def process(
            values: Sequence[float], mask: Floats, errors: Floats | None = None, centre: float | None = None
        ) -> GaussianProcess:
            known = np.asarray(values, dtype=np.float64)
            return GaussianProcess(space.tables, points[mask], known, times[mask], errors, centre)

        scores = [trial.score for trial in trials if trial.score is not None]
        errors = np.array([trial.error for trial in trials if trial.score is not None])
        self.scores = process(scores, good, errors) if scores else None
        margins = [[trial.margins[at] if trial.margins else FAILED for trial in trials] for at in range(constraints)]
        margins.append([LARGEST if is_good else FAILED for is_good in good])
        all_trials = np.ones(len(trials), dtype=bool)
        # A limit that failed everywhere may still hold far from all measurements.
        self._limits = [
            process(values, all_trials, centre=0.0 if max(values) < 0 else None)
            for values in margins
            if min(values) < 0
        ]

    @property
    def importance(self) -> Floats:
        if self.scores is None:
            raise ValueError("nothing was measured")
        return self.scores.importance

    def score(self, points: Sequence[SearchPoint]) -> Prediction:
        if self.scores is None:
            raise ValueError("nothing was measured")
        return self.scores.predict(np.array(points, dtype=np.int64))

    def feasible(self, points: Sequence[SearchPoint]) -> Floats:
        """Return the probability that each point meets all constraints."""
        probability = np.ones(len(points))
        for limit in self._limits:
            mean, deviation = limit.predict(np.array(points, dtype=np.int64))
            probability *= _normal(mean / deviation)
        return probability


def margin_of(value: float | None, limit: float, *, below: bool, holds: bool) -> float:
    """Return the margin of a constraint: the log ratio of value and limit, positive if it holds, within ±LARGEST.
    Without a scale (no value, or value or limit is 0): LARGEST or FAILED."""
    if value is None or value <= 0 or limit <= 0:
        return LARGEST if holds else FAILED
    ratio = math.log(limit / value) if below else math.log(value / limit)
    return max(-LARGEST, min(LARGEST, ratio))


def error_of(interval: tuple[float, float] | None) -> float:
    """Return the standard error of the logarithm of a metric, from its 95% interval; 0 if it is unknown."""
    if interval is None or not 0 < interval[0] <= interval[1] < math.inf:
        return 0.0
    return math.log(interval[1] / interval[0]) / (2 * 1.96)


def _density(values: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * values**2) / math.sqrt(2 * math.pi))


def _normal(values: Floats) -> Floats:
    return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in values])
