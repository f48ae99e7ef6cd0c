"""The Universal Scalability Law, fitted to rates at several numbers of connections. Pure.

X(N) = r N / (1 + s (N − 1) + k N (N − 1)): r is the rate of one connection, s the contention (waiting for shared
resources), k the coherency (cost of agreement between them). N/X is linear in 1/r, s/r and k/r, which are fitted by
least squares of relative errors and are not negative. The intervals of s, k and the peak are those of ratios.

References: Gunther 2007, Guerrilla Capacity Planning; Fieller 1954 (the interval of a ratio).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from enum import StrEnum

import msgspec
import numpy as np

from cockpit.analysis.intervals import ALPHA, Floats, student_quantile

# A fit needs this many distinct levels; it is bad if the rate at a level differs from the curve by more than WORST.
FEWEST_LEVELS = 5
WORST = 0.1
_PARAMETERS = 3


class LevelExclusion(StrEnum):
    """Why a level is not part of the fit."""

    SATURATED = "generator saturated"
    FAILED = "requests failed"
    PARTIAL = "partial metrics"
    SHORT = "too short"


class UslLevel(msgspec.Struct, frozen=True, kw_only=True):
    """A level: its segment, its number of connections and responses/s. `fitted` is the rate by the curve, `residual`
    the difference from it as a share; null if the level is `excluded`."""

    segment: int
    concurrency: int
    rate: float
    excluded: LevelExclusion | None = None
    fitted: float | None = None
    residual: float | None = None


class UslEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter with its 95% interval; null: open at that end, or unknown."""

    value: float
    low: float | None = None
    high: float | None = None


class UslProblem(StrEnum):
    """Why a fit is bad."""

    FEW_LEVELS = "few levels"
    RESIDUAL = "large residual"


class UslFit(msgspec.Struct, frozen=True, kw_only=True):
    """The law fitted to levels under the same settings. `single` is the rate of one connection; it, `contention` and
    `coherency` are null if fewer than three levels are usable. `peak`: the number of connections with the highest rate,
    `peak_rate`; null: the rate rises without end, or is unknown. `problem`: why the fit is bad."""

    label: str
    levels: tuple[UslLevel, ...]
    single: UslEstimate | None = None
    contention: UslEstimate | None = None
    coherency: UslEstimate | None = None
    peak: UslEstimate | None = None
    peak_rate: UslEstimate | None = None
    problem: UslProblem | None = None

    @property
    def used(self) -> tuple[UslLevel, ...]:
        return tuple(level for level in self.levels if level.excluded is None)

    @property
    def worst(self) -> UslLevel | None:
        """The level that differs most from the curve."""
        return max(self.used, key=lambda level: abs(level.residual or 0.0), default=None)

    @property
    def most(self) -> int:
        """The largest number of connections of the fit."""
        return max((level.concurrency for level in self.used), default=0)

    @property
    def peak_measured(self) -> bool:
        """Return whether the peak, with its interval, is within the measured levels."""
        return self.peak is not None and self.peak.high is not None and self.peak.high <= self.most

    def rate(self, connections: float) -> float | None:
        """Return the rate by the curve; None without one."""
        if self.single is None or self.contention is None or self.coherency is None:
            return None
        return _rate((self.single.value, self.contention.value, self.coherency.value), connections)


def fit_usl(levels: Sequence[UslLevel], label: str = "") -> UslFit | None:
    """Fit the law; None for fewer than three distinct levels."""
    if len({level.concurrency for level in levels}) < _PARAMETERS:
        return None
    used = [level for level in levels if level.excluded is None]
    numbers = np.array([level.concurrency for level in used], dtype=np.float64)
    distinct = len(set(numbers.tolist()))
    if distinct < _PARAMETERS:
        return UslFit(label=label, levels=tuple(levels), problem=UslProblem.FEW_LEVELS)
    fit = _LinearFit(numbers, np.array([level.rate for level in used]))
    a, b, c = fit.positive
    curve = (1 / a, b / a, c / a)
    peak = peak_rate = None
    if c > 0:
        most = max(1.0, math.sqrt(max(0.0, a - b) / c))
        peak, peak_rate = fit.peak(most), fit.inverse(np.array([1.0, most - 1, most * (most - 1)]) / most, most, curve)
    shown = tuple(_with_residual(level, curve) if level.excluded is None else level for level in levels)
    residual = max(abs(level.residual or 0.0) for level in shown)
    few = UslProblem.FEW_LEVELS if distinct < FEWEST_LEVELS else None
    return UslFit(
        label=label,
        levels=shown,
        single=fit.inverse(np.array([1.0, 0.0, 0.0]), 1.0, curve),
        contention=fit.ratio((0, 1, 0), (1, 0, 0), curve[1]),
        coherency=fit.ratio((0, 0, 1), (1, 0, 0), curve[2]),
        peak=peak,
        peak_rate=peak_rate,
        problem=few or (UslProblem.RESIDUAL if residual > WORST else None),
    )


def _rate(curve: tuple[float, float, float], n: float) -> float:
    first, contention, coherency = curve
    return first * n / (1 + contention * (n - 1) + coherency * n * (n - 1))


def _with_residual(level: UslLevel, curve: tuple[float, float, float]) -> UslLevel:
    fitted = _rate(curve, level.concurrency)
    return msgspec.structs.replace(level, fitted=fitted, residual=level.rate / fitted - 1)


class _LinearFit:
    """Least squares of N/X = a + b(N − 1) + cN(N − 1), with relative errors. `positive` are a, b and c without negative
    values; intervals are those of the fit without this condition."""

    def __init__(self, numbers: Floats, rates: Floats) -> None:
        inverse = numbers / rates
        design = np.stack([np.ones_like(numbers), numbers - 1, numbers * (numbers - 1)], axis=1) / inverse[:, None]
        scale = np.sqrt((design**2).sum(axis=0))
        self._freedom = len(numbers) - _PARAMETERS
        free, self._covariance = np.zeros(3), np.full((3, 3), np.inf)
        best = math.inf
        for kept in itertools.product((True, False), repeat=2):
            columns = np.array([True, *kept])
            parameters = np.zeros(3)
            parameters[columns] = np.linalg.lstsq((design / scale)[:, columns], np.ones(len(numbers)), rcond=None)[0]
            parameters /= scale
            error = float(((design @ parameters - 1) ** 2).sum())
            if all(kept):
                free = parameters
                if self._freedom > 0:
                    inner = np.linalg.pinv((design / scale).T @ (design / scale)) / np.outer(scale, scale)
                    self._covariance = error / self._freedom * inner
            if parameters[0] > 0 and (parameters >= 0).all() and error < best:
                best, self.positive = error, tuple(map(float, parameters))
        self._free = free

    @property
    def _reach(self) -> float:
        return student_quantile(1 - ALPHA / 2, self._freedom)

    def inverse(self, weights: Floats, n: float, curve: tuple[float, float, float]) -> UslEstimate:
        """Return the rate at `n` connections, whose inverse is the sum of the weighted parameters."""
        value = _rate(curve, n)
        if self._freedom <= 0:
            return UslEstimate(value=value)
        middle = float(weights @ self._free)
        half = self._reach * math.sqrt(max(0.0, float(weights @ self._covariance @ weights)))
        low, high = 1 / (middle + half) if middle + half > 0 else None, 1 / (middle - half) if middle > half else None
        return _around(value, low, high)

    def ratio(self, upper: Sequence[float], lower: Sequence[float], value: float) -> UslEstimate:
        """Return the ratio of two weighted sums of the parameters, with its interval above 0."""
        if self._freedom <= 0:
            return UslEstimate(value=value)
        weights = np.array([upper, lower], dtype=np.float64)
        sums = weights @ self._free
        # The ratios r with |upper − r·lower| within its standard error: lead·r² − 2·half·r + rest <= 0.
        squares = np.outer(sums, sums) - weights @ self._covariance @ weights.T * self._reach**2
        (rest, half), (_, lead) = squares.tolist()
        root = math.sqrt(max(0.0, half**2 - lead * rest))
        if lead > 0:
            low, high = (half - root) / lead, (half + root) / lead
            return _around(value, max(0.0, low), max(0.0, high))
        return _around(value, 0.0 if rest <= 0 or lead == 0 else max(0.0, (half - root) / lead), None)

    def peak(self, value: float) -> UslEstimate:
        """Return the peak, the root of (a − b) / c."""
        squared = self.ratio((1, -1, 0), (0, 0, 1), value**2)
        low, high = (None if end is None else max(1.0, math.sqrt(end)) for end in (squared.low, squared.high))
        return UslEstimate(value=value, low=low, high=high)


def _around(value: float, low: float | None, high: float | None) -> UslEstimate:
    """Return an interval with its estimate, which is at the edge of what is possible if it is outside."""
    return UslEstimate(
        value=value, low=low if low is None else min(low, value), high=high if high is None else max(high, value)
    )
