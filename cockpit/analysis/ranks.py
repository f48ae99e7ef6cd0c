"""Statistics by ranks, exact for small samples: Mann-Whitney, Hodges-Lehmann, van Elteren, Mann-Kendall, Holm.

Samples are one-dimensional float arrays. `inflation` is by how much the variance of a sum exceeds that of independent
samples of the same number (1: independent); a p value and an interval are widened by its root.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Up to this many values in both samples together the distribution of the rank sum is counted out.
EXACT = 40
_NORMAL = NormalDist()


class Shift(NamedTuple):
    """By how much the second sample lies above the first, its interval, and how likely that is without a difference.

    An end of the interval is infinite where the samples are too few to tell.
    """

    estimate: float
    low: float
    high: float
    p: float


def midranks(values: Floats) -> Floats:
    """Rank of each value from 1; equal values share the middle of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2)[inverse]
    return ranks


def mann_whitney(a: Floats, b: Floats) -> tuple[float, float]:
    """(U, p): how many pairs have the value of `b` above that of `a` (a tie is half), and the two-sided p value.

    Exact up to EXACT values, ties included; beyond that the normal approximation with its correction for ties.
    """
    n, m = len(a), len(b)
    ranks = midranks(np.concatenate((a, b)))
    u = float(ranks[n:].sum()) - m * (m + 1) / 2
    if n + m <= EXACT:
        return u, _exact_p(tuple(np.rint(2 * ranks).astype(int).tolist()), m, round(2 * ranks[n:].sum()))
    spread = math.sqrt(_variance(ranks, n, m))
    if spread == 0:
        return u, 1.0
    return u, min(1.0, 2 * _NORMAL.cdf(-max(0.0, abs(u - n * m / 2) - 0.5) / spread))


def shift(a: Floats, b: Floats, inflation: float = 1.0, level: float = 0.95) -> Shift:
    """Mann-Whitney's p with the Hodges-Lehmann estimate and its interval, turned round from the same test."""
    differences = np.sort((b[None, :] - a[:, None]).ravel())
    p = discounted(mann_whitney(a, b)[1], inflation)
    reach = math.sqrt(inflation) * _NORMAL.inv_cdf(0.5 + level / 2)
    outside = _outside(len(a), len(b), reach)
    low, high = (differences[outside - 1], differences[-outside]) if outside else (-math.inf, math.inf)
    return Shift(float(np.median(differences)), float(low), float(high), p)


def van_elteren(strata: Sequence[tuple[Floats, Floats]], inflation: float = 1.0, level: float = 0.95) -> Shift:
    """The shift that pairs of samples have in common, each pair ranked by itself and weighted by its size."""
    weights = [1 / (len(a) + len(b) + 1) for a, b in strata]
    differences = [(b[None, :] - a[:, None]).ravel() for a, b in strata]
    everything = np.concatenate(differences)
    shares = np.repeat(weights, [part.size for part in differences])
    order = np.argsort(everything, kind="stable")
    everything, running = everything[order], np.cumsum(shares[order])
    middle = float(running[-1]) / 2
    above = sum(
        weight * (float((part > 0).sum()) + float((part == 0).sum()) / 2)
        for weight, part in zip(weights, differences, strict=True)
    )
    spread = math.sqrt(
        inflation
        * sum(
            weight**2 * _variance(midranks(np.concatenate(pair)), len(pair[0]), len(pair[1]))
            for weight, pair in zip(weights, strata, strict=True)
        )
    )
    p = 1.0 if spread == 0 else 2 * _NORMAL.cdf(-abs(above - middle) / spread)
    reach = spread * _NORMAL.inv_cdf(0.5 + level / 2)
    if reach >= middle:
        low, high = -math.inf, math.inf
    else:
        low = float(everything[np.searchsorted(running, middle - reach)])
        high = float(everything[min(len(running) - 1, int(np.searchsorted(running, middle + reach)))])
    return Shift(float(everything[np.searchsorted(running, middle)]), low, high, min(1.0, p))


def welch(a: Floats, b: Floats, level: float = 0.95) -> Shift:
    """Welch's t on two samples of at least two values: for so few that ranks cannot tell."""
    estimate = float(b.mean() - a.mean())
    parts = [float(np.var(sample, ddof=1)) / len(sample) for sample in (a, b)]
    error = math.sqrt(sum(parts))
    if error == 0:
        return Shift(estimate, estimate, estimate, 1.0 if estimate == 0 else 0.0)
    freedom = sum(parts) ** 2 / sum(part**2 / (len(sample) - 1) for part, sample in zip(parts, (a, b), strict=True))
    reach = student_quantile(0.5 + level / 2, freedom) * error
    p = 2 * (1 - student_cdf(abs(estimate) / error, freedom))
    return Shift(estimate, estimate - reach, estimate + reach, min(1.0, max(0.0, p)))


def discounted(p: float, inflation: float) -> float:
    """A two-sided p value of samples that count for less than their number."""
    if inflation == 1 or p >= 1:
        return p
    return 2 * _NORMAL.cdf(_NORMAL.inv_cdf(max(p, 1e-300) / 2) / math.sqrt(inflation))


def smallest_p(n: int, m: int, inflation: float = 1.0) -> float:
    """The p value of `n` samples that all lie below `m` others: no test of so many can say more."""
    return discounted(min(1.0, 2 / math.comb(n + m, n)), inflation)


def mann_kendall(values: Floats, inflation: float = 1.0) -> tuple[float, float]:
    """(slope, p): Theil and Sen's slope a sample, and the two-sided p value of there being no trend."""
    n = len(values)
    if n < 3:
        return 0.0, 1.0
    first, second = np.triu_indices(n, 1)
    rises = values[second] - values[first]
    score = abs(int((rises > 0).sum()) - int((rises < 0).sum()))
    ties = np.unique(values, return_counts=True)[1]
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    slope = float(np.median(rises / (second - first)))
    if variance <= 0:
        return slope, 1.0
    return slope, min(1.0, 2 * _NORMAL.cdf(-max(0, score - 1) / math.sqrt(variance * inflation)))


def holm(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """p values made honest for having looked at all of them; a weight is the share of the risk that one may take."""
    order = sorted(range(len(values)), key=lambda at: values[at] / weights[at])
    adjusted = [1.0] * len(values)
    left, largest = sum(weights), 0.0
    for at in order:
        largest = max(largest, min(1.0, values[at] * left / weights[at]))
        adjusted[at] = largest
        left -= weights[at]
    return adjusted


def student_cdf(t: float, freedom: float) -> float:
    """Probability that Student's t lies below `t` (0 or above), by Simpson's rule over the angle.

    With t = root(freedom) * tan(angle) the density is a power of a cosine.
    """
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    angles = np.linspace(0.0, math.atan(t / math.sqrt(freedom)), 401)
    heights = np.cos(angles) ** (freedom - 1)
    area = (heights[0] + heights[-1] + 4 * heights[1::2].sum() + 2 * heights[2:-1:2].sum()) * angles[1] / 3
    return min(1.0, 0.5 + scale * float(area))


@lru_cache(maxsize=512)
def student_quantile(probability: float, freedom: float) -> float:
    """The t below which Student's t lies with that probability (above one half)."""
    low, high = 0.0, 1.0
    while student_cdf(high, freedom) < probability and high < 1e9:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, freedom) < probability else (low, middle)
    return (low + high) / 2


def _variance(ranks: Floats, n: int, m: int) -> float:
    """Of the rank sum when all orders are as likely as each other; ties make it smaller."""
    total = n + m
    return n * m / (total * (total - 1)) * float(((ranks - (total + 1) / 2) ** 2).sum()) if total > 1 else 0.0


@lru_cache(maxsize=512)
def _ways(ranks: tuple[int, ...], m: int) -> Floats:
    """In how many ways `m` of the doubled `ranks` add up to each sum; exact in a double up to EXACT ranks."""
    ways = np.zeros((m + 1, sum(ranks) + 1))
    ways[0, 0] = 1
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank]
    counted: Floats = ways[m]
    return counted


def _exact_p(ranks: tuple[int, ...], m: int, found: int) -> float:
    """Share of the ways whose sum is at least as far from the middle as the one found."""
    ways = _ways(tuple(sorted(ranks)), m)
    # Sums are whole numbers and their mean is m * sum / N: compared multiplied out, nothing is rounded.
    total = len(ranks)
    distance = np.abs(total * np.arange(len(ways)) - m * sum(ranks))
    return float(ways[distance >= abs(total * found - m * sum(ranks))].sum() / ways.sum())


@lru_cache(maxsize=512)
def _outside(n: int, m: int, reach: float) -> int:
    """How many of the sorted differences at each end an interval reaches over; the next one is its end. 0: all."""
    if n + m > EXACT:
        return max(0, math.floor(n * m / 2 - reach * math.sqrt(n * m * (n + m + 1) / 12)))
    ways = _ways(tuple(range(2, 2 * (n + m) + 1, 2)), m)[::2]
    running = np.cumsum(ways[m * (m + 1) // 2 :]) / ways.sum()
    return int(np.searchsorted(running, _NORMAL.cdf(-reach) + 1e-12, side="right"))
