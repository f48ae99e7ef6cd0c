"""A Gaussian process over settings: what a metric is at points that were not measured, and how sure that is. Pure.

Kernel: Matérn 5/2 with a length per knob (C. E. Rasmussen, C. K. I. Williams: Gaussian Processes for Machine Learning,
2006), over distances that a table per knob gives. Noise and a slow drift over time are fitted beside it. The lengths
have a prior about a third of a knob's range: far longer ones of the literature (Hvarfner et al., ICML 2024) took what
single knobs do for noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cockpit.autopilot.space import Floats

Ints = npt.NDArray[np.int64]

# Parameters after those of the knobs (logarithms): variance of the signal, of the noise, of the drift.
_SIGNAL, _NOISE, _DRIFT = -3, -2, -1
# Mean and deviation of the prior of the logarithm of a length, 1 being from the least value of a knob to its largest.
_LENGTH = (-1.0, 1.0)
# Means and deviations of the priors of the others, for values with variance 1.
_PRIORS = ((0.0, 1.0), (-4.0, 2.0), (-6.0, 1.5))
# Measurements over which a drift changes.
_SLOW = 8.0
# Steps of the fit, and their sizes: first, least, largest.
_STEPS, _FIRST_STEP, _LEAST_STEP, _LARGEST_STEP = 60, 0.3, 1e-3, 1.5
_JITTER = 1e-8
_LEAST_DEVIATION = 1e-6


class Prediction(NamedTuple):
    """Mean and standard deviation of the metric itself (without noise and drift) at each point."""

    mean: Floats
    deviation: Floats


class GaussianProcess:
    """Fitted to `values` (n,) at `points` (n, knobs) that were measured at `times` (n,), counted in measurements.

    `tables` has the squared distances of the values of each knob.
    """

    def __init__(self, tables: Sequence[Floats], points: Ints, values: Floats, times: Floats) -> None:
        self._tables = tables
        self._points = points
        self._centre = float(values.mean())
        self._scale = max(float(values.std()), _LEAST_DEVIATION)
        self._values = (values - self._centre) / self._scale
        self._distances = self._between(points, points)
        self._slow = _matern((times[:, None] - times[None, :]) ** 2 / _SLOW**2)
        self.parameters = self._fitted()
        self._factor, self._weights, _ = self._solved(self.parameters)

    @property
    def noise(self) -> float:
        """The standard deviation of a measurement."""
        return self._scale * math.exp(self.parameters[_NOISE] / 2)

    @property
    def importance(self) -> Floats:
        """How much the metric depends on each knob, (knobs,): shares that add up to 1."""
        weights = np.exp(self.parameters[:_SIGNAL]) * np.array([table.max() for table in self._tables])
        return np.asarray(weights / weights.sum())

    def predict(self, points: Ints) -> Prediction:
        across = self._kernel(self._between(points, self._points), self.parameters)
        mean = across @ self._weights
        explained = np.linalg.solve(self._factor, across.T)
        variance = math.exp(self.parameters[_SIGNAL]) - (explained**2).sum(axis=0)
        deviation = np.sqrt(np.maximum(variance, _LEAST_DEVIATION**2))
        return Prediction(self._centre + self._scale * mean, self._scale * deviation)

    def _between(self, left: Ints, right: Ints) -> Floats:
        """Squared distances (knobs, left, right)."""
        tables = enumerate(self._tables)
        return np.stack([table[left[:, at][:, None], right[:, at][None, :]] for at, table in tables])

    def _kernel(self, distances: Floats, parameters: Floats) -> Floats:
        scaled = np.tensordot(np.exp(parameters[:_SIGNAL]), distances, axes=1)
        return np.asarray(math.exp(parameters[_SIGNAL]) * _matern(scaled))

    def _solved(self, parameters: Floats) -> tuple[Floats, Floats, Floats]:
        """The Cholesky factor of the covariance, its solution for the values, and the kernel alone."""
        kernel = self._kernel(self._distances, parameters)
        noise = math.exp(parameters[_NOISE]) + _JITTER
        covariance = kernel + math.exp(parameters[_DRIFT]) * self._slow + noise * np.eye(len(kernel))
        factor = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        return factor, np.linalg.solve(factor.T, np.linalg.solve(factor, self._values)), kernel

    def _fitted(self) -> Floats:
        """The most probable parameters, by resilient propagation from those of the prior."""
        means, deviations = _priors(len(self._tables))
        lowest, highest = means - 4 * deviations, means + 4 * deviations
        now = means.copy()
        best, best_height = now, -math.inf
        step, before = np.full(len(now), _FIRST_STEP), np.zeros(len(now))
        for _ in range(_STEPS):
            height, slope = self.posterior(now)
            if height > best_height:
                best, best_height = now.copy(), height
            turned = np.sign(slope * before)
            step = np.clip(step * np.where(turned > 0, 1.2, np.where(turned < 0, 0.5, 1.0)), _LEAST_STEP, _LARGEST_STEP)
            before = np.where(turned < 0, 0.0, slope)
            now = np.clip(now + np.sign(before) * step, lowest, highest)
        return best

    def posterior(self, parameters: Floats) -> tuple[float, Floats]:
        """Return the logarithm of the posterior of the parameters, but for a constant, and its gradient."""
        means, deviations = _priors(len(self._tables))
        factor, weights, kernel = self._solved(parameters)
        inverse = np.linalg.inv(factor)
        outer = np.outer(weights, weights) - inverse.T @ inverse
        scales = np.exp(parameters[:_SIGNAL])
        radius = np.sqrt(5.0 * np.tensordot(scales, self._distances, axes=1))
        slope = math.exp(parameters[_SIGNAL]) * (-5.0 / 6.0) * (1.0 + radius) * np.exp(-radius)
        gradient = np.empty(len(parameters))
        gradient[:_SIGNAL] = 0.5 * scales * np.einsum("ij,ij,kij->k", outer, slope, self._distances)
        gradient[_SIGNAL] = 0.5 * float((outer * kernel).sum())
        gradient[_NOISE] = 0.5 * math.exp(parameters[_NOISE]) * float(np.trace(outer))
        gradient[_DRIFT] = 0.5 * math.exp(parameters[_DRIFT]) * float((outer * self._slow).sum())
        likelihood = -0.5 * float(self._values @ weights) - float(np.log(np.diag(factor)).sum())
        away = (parameters - means) / deviations
        return likelihood - 0.5 * float(away @ away), gradient - away / deviations


def _matern(squared: Floats) -> Floats:
    radius = np.sqrt(5.0 * squared)
    return np.asarray((1.0 + radius + radius**2 / 3.0) * np.exp(-radius))


def _priors(knobs: int) -> tuple[Floats, Floats]:
    """Means and deviations of the logarithms of all parameters; a knob's is -2 log(length)."""
    own = [(-2.0 * _LENGTH[0], 2.0 * _LENGTH[1])] * knobs
    means, deviations = zip(*own, *_PRIORS, strict=True)
    return np.array(means), np.array(deviations)
