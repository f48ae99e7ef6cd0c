"""Fits of the Universal Scalability Law to levels of a known law with noise of 2%."""

import math
from typing import NamedTuple

import numpy as np

from cockpit.analysis.capacity.usl import UslEstimate, UslFit, UslLevel, fit_usl

LEVELS = (1, 2, 4, 8, 16, 32, 64)
NOISE = 0.02


class Law(NamedTuple):
    one: float
    contention: float
    coherency: float

    def rate(self, connections: float) -> float:
        waits = self.contention * (connections - 1) + self.coherency * connections * (connections - 1)
        return self.one * connections / (1 + waits)

    @property
    def peak(self) -> float:
        return math.sqrt((1 - self.contention) / self.coherency) if self.coherency else math.inf


LAWS = {
    "peak at c=31": Law(500.0, 0.05, 0.001),
    "peak at c=9": Law(500.0, 0.1, 0.01),
    "coherency alone, peak at c=22": Law(500.0, 0.0, 0.002),
    "peak near the last level": Law(500.0, 0.3, 0.0003),
    "contention alone": Law(500.0, 0.02, 0.0),
    "linear": Law(500.0, 0.0, 0.0),
}


class Coverage(NamedTuple):
    """Whether the intervals have the true values, and whether a peak within the levels is claimed. Without a peak, its
    intervals are right if they are open."""

    one: bool
    contention: bool
    coherency: bool
    peak: bool
    peak_rate: bool
    claimed: bool


def levels_of(rates: dict[int, float]) -> list[UslLevel]:
    return [
        UslLevel(segment=at, concurrency=number, rate=rate) for at, (number, rate) in enumerate(rates.items(), start=1)
    ]


def fits(law: Law, repetitions: int, seed: int, noise: float = NOISE) -> list[UslFit]:
    random = np.random.default_rng(seed)
    found = []
    for _ in range(repetitions):
        shocks = 1 + random.normal(0.0, noise, len(LEVELS))
        fit = fit_usl(levels_of({n: law.rate(n) * shock for n, shock in zip(LEVELS, shocks.tolist(), strict=True)}))
        assert fit is not None
        found.append(fit)
    return found


def coverage(law: Law, fit: UslFit) -> Coverage:
    peak, best = (law.peak, law.rate(law.peak)) if law.coherency else (math.inf, math.inf)
    return Coverage(
        _covers(fit.single, law.one),
        _covers(fit.contention, law.contention),
        _covers(fit.coherency, law.coherency),
        _covers(fit.peak, peak),
        _covers(fit.peak_rate, best) if law.coherency else True,
        fit.peak_measured,
    )


def _covers(found: UslEstimate | None, value: float) -> bool:
    """Return whether an interval has the value; no estimate means that it is unlimited."""
    if found is None:
        return value == math.inf
    return (found.low or 0.0) <= value + 1e-9 and (found.high is None or found.high >= value - 1e-9)
