"""Gaussian process over settings: predicts a metric at unmeasured points, with its uncertainty. Pure.

Kernel: Matérn 5/2 with a length scale per knob (C. E. Rasmussen, C. K. I. Williams: Gaussian Processes for Machine
Learning, 2006), over a table of distances per knob. Measurement noise and a slow drift over time are fitted too.
The prior of a length scale is about a third of the knob's range. The much longer priors of the literature (Hvarfner
et al., ICML 2024) took the effects of single knobs for noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cockpit.analysis.intervals import Floats
from cockpit.model.histogram import Ints

# Indices of the logarithmic parameters after those of the knobs: variance of the signal, the noise and the drift.
_SIGNAL, _NOISE, _DRIFT = -3, -2, -1
# Mean and standard deviation of the prior of log(length scale); a length of 1 is the whole range of a knob.
_LENGTH = (-1.0, 1.0)
# The same for the three variances above, for values scaled to variance 1.
_PRIORS = ((0.0, 1.0), (-4.0, 2.0), (-6.0, 1.5))
# Length scale of the drift, in measurements.
_DRIFT_LENGTH = 8.0
# Iterations of the fit, and its step sizes: initial, minimum, maximum.
_ITERATIONS, _FIRST_STEP, _MIN_STEP, _MAX_STEP = 60, 0.3, 1e-3, 1.5
_JITTER = 1e-8
_MIN_DEVIATION = 1e-6


class Prediction(NamedTuple):
    """Mean and standard deviation of the metric, without noise and drift, at each point."""

    mean: Floats
    deviation: Floats


class GaussianProcess:
    """Gaussian process fitted to `values` (n,) at `points` (n, knobs).

    `times` (n,): sequence number of each measurement. `tables`: per knob, squared distances between its values.
    `errors` (n,): known standard errors of the values, beside the fitted noise. `centre`: mean of the prior; None: that
    of the values.
    """

    def __init__(
        self,
        tables: Sequence[Floats],
        points: Ints,
        values: Floats,
        times: Floats,
        errors: Floats | None = None,
        centre: float | None = None,
    ) -> None:
        self._tables = tables
        self._points = points
        self._centre = float(values.mean()) if centre is None else centre
        self._scale = max(math.sqrt(float(((values - self._centre) ** 2).mean())), _MIN_DEVIATION)
        self._values = (values - self._centre) / self._scale
        self._known_noise = np.zeros(len(values)) if errors is None else (errors / self._scale) ** 2
        self._distances = self._between(points, points)
        self._drift_kernel = _matern((times[:, None] - times[None, :]) ** 2 / _DRIFT_LENGTH**2)
        self.parameters = self._fitted()
        self._factor, self._weights, _ = self._solved(self.parameters)

    @property
    def noise(self) -> float:
        """The standard deviation of a measurement."""
        return self._scale * math.exp(self.parameters[_NOISE] / 2)

    @property
    def importance(self) -> Floats:
        """Relevance of each knob for the metric (knobs,), as shares that add up to 1."""
        weights = np.exp(self.parameters[:_SIGNAL]) * np.array([table.max() for table in self._tables])
        return np.asarray(weights / weights.sum())

    def predict(self, points: Ints) -> Prediction:
        cross = self._kernel(self._between(points, self._points), self.parameters)
        mean = cross @ self._weights
        explained = np.linalg.solve(self._factor, cross.T)
        variance = math.exp(self.parameters[_SIGNAL]) - (explained**2).sum(axis=0)
        deviation = np.sqrt(np.maximum(variance, _MIN_DEVIATION**2))
        return Prediction(self._centre + self._scale * mean, self._scale * deviation)

    def _between(self, left: Ints, right: Ints) -> Floats:
        """Return squared distances (knobs, left, right)."""
        tables = enumerate(self._tables)
        return np.stack([table[left[:, at][:, None], right[:, at][None, :]] for at, table in tables])

    def _kernel(self, distances: Floats, parameters: Floats) -> Floats:
        scaled = np.tensordot(np.exp(parameters[:_SIGNAL]), distances, axes=1)
        return np.asarray(math.exp(parameters[_SIGNAL]) * _matern(scaled))

    def _solved(self, parameters: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the Cholesky factor of the covariance, covariance⁻¹ · values, and the kernel matrix of the signal."""
        kernel = self._kernel(self._distances, parameters)
        noise = math.exp(parameters[_NOISE]) + _JITTER
        covariance = kernel + math.exp(parameters[_DRIFT]) * self._drift_kernel + np.diag(noise + self._known_noise)
        factor = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        return factor, np.linalg.solve(factor.T, np.linalg.solve(factor, self._values)), kernel

    def _fitted(self) -> Floats:
        """Return the maximum a posteriori parameters, by resilient propagation (Rprop) from the prior means."""
        means, deviations = _priors(len(self._tables))
        lowest, highest = means - 4 * deviations, means + 4 * deviations
        current = means.copy()
        best, best_posterior = current, -math.inf
        step, previous = np.full(len(current), _FIRST_STEP), np.zeros(len(current))
        for _ in range(_ITERATIONS):
            posterior, gradient = self.posterior(current)
            if posterior > best_posterior:
                best, best_posterior = current.copy(), posterior
            sign = np.sign(gradient * previous)
            step = np.clip(step * np.where(sign > 0, 1.2, np.where(sign < 0, 0.5, 1.0)), _MIN_STEP, _MAX_STEP)
            previous = np.where(sign < 0, 0.0, gradient)
            current = np.clip(current + np.sign(previous) * step, lowest, highest)
        return best

    def posterior(self, parameters: Floats) -> tuple[float, Floats]:
        """Return the log posterior of the parameters, up to a constant, and its gradient."""
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
        gradient[_DRIFT] = 0.5 * math.exp(parameters[_DRIFT]) * float((outer * self._drift_kernel).sum())
        likelihood = -0.5 * float(self._values @ weights) - float(np.log(np.diag(factor)).sum())
        away = (parameters - means) / deviations
        return likelihood - 0.5 * float(away @ away), gradient - away / deviations


def _matern(squared: Floats) -> Floats:
    radius = np.sqrt(5.0 * squared)
    return np.asarray((1.0 + radius + radius**2 / 3.0) * np.exp(-radius))


def _priors(knobs: int) -> tuple[Floats, Floats]:
    """Return prior means and deviations of the parameters; the parameter of a knob is -2 log(length scale)."""
    lengths = [(-2.0 * _LENGTH[0], 2.0 * _LENGTH[1])] * knobs
    means, deviations = zip(*lengths, *_PRIORS, strict=True)
    return np.array(means), np.array(deviations)
