"""Change points of a series of results by E-divisive: divisive clustering by energy statistics, with permutation tests.

Source: Matteson and James, A Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data, JASA 2014.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

import numpy as np

from cockpit.analysis.intervals import Floats

# Minimum number of values between change points.
LEAST = 3
# A change point is claimed if at most this share of permutations divides as well. Fewer than about ten values never do.
LEVEL = 0.01
PERMUTATIONS = 499


class ChangePoint(NamedTuple):
    """A series changes at the value `at`. `before` and `after` are the means between it and its neighbours, geometric
    if all values are above 0; `p` is the share of permutations that divide as well."""

    at: int
    before: float
    after: float
    p: float


def change_points(values: Sequence[float], seed: int = 1) -> list[ChangePoint]:
    """Return the change points of a series in ascending order; the same seed gives the same ones."""
    if not values:
        return []
    scaled = np.array([math.log(value) for value in values] if min(values) > 0 else values, np.float64)
    places = sorted(_divided(scaled, 0, np.random.default_rng(seed)))
    edges = [0, *(at for at, _ in places), len(values)]
    means = [_mean(values[start:end]) for start, end in pairwise(edges)]
    return [ChangePoint(at, means[number], means[number + 1], p) for number, (at, p) in enumerate(places)]


def _divided(values: Floats, start: int, random: np.random.Generator) -> Iterator[tuple[int, float]]:
    """Yield the place of each change point in values that begin at `start`, and its p-value."""
    if len(values) < 2 * LEAST or values.min() == values.max():
        return
    distances: Floats = np.abs(values[:, None] - values[None, :])
    at, divergence = _best_division(distances)
    orders = (random.permutation(len(values)) for _ in range(PERMUTATIONS))
    as_good = sum(_best_division(distances[np.ix_(order, order)])[1] >= divergence for order in orders)
    p = (1 + as_good) / (1 + PERMUTATIONS)
    if p > LEVEL:
        return
    yield from _divided(values[:at], start, random)
    yield start + at, p
    yield from _divided(values[at:], start + at, random)


def _best_division(distances: Floats) -> tuple[int, float]:
    """Return the place that divides best, and the divergence of its sides, from the distances of all pairs."""
    number = len(distances)
    at = np.arange(LEAST, number - LEAST + 1)
    within = np.diagonal(distances.cumsum(axis=0).cumsum(axis=1))
    rows = distances.sum(axis=1).cumsum()
    first = within[at - 1]
    between = rows[at - 1] - first
    second = rows[-1] - first - 2 * between
    left, right = at, number - at
    means = 2 * between / (left * right) - first / (left * (left - 1)) - second / (right * (right - 1))
    divergence = means * left * right / number
    best = int(divergence.argmax())
    return int(at[best]), float(divergence[best])


def _mean(values: Sequence[float]) -> float:
    return math.exp(fmean(map(math.log, values))) if min(values) > 0 else fmean(values)
