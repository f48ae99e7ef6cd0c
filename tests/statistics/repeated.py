"""Runs of two settings that are repeated by hand, and judged after each further run."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from cockpit.analysis.intervals import ALPHA, Floats, PooledVariance, estimate_of_runs, repeated_level, student_cdf

ALONE = PooledVariance(0.0, 0)
# The number of runs of both settings at each test.
Order = list[tuple[int, int]]


def in_turn(most: int) -> Order:
    """Each setting has a run in turn, up to `most`."""
    return [(number // 2, number - number // 2) for number in range(4, 2 * most + 1)]


def in_pairs(most: int) -> Order:
    return [(number, number) for number in range(2, most + 1)]


def after_fixed(before: int, most: int) -> Order:
    return [(before, number) for number in range(2, most + 1)]


ORDERS: Mapping[str, Order] = MappingProxyType(
    {
        "a run in turn, to 10 vs 10": in_turn(10),
        "2 vs 2, 3 vs 3 … 10 vs 10": in_pairs(10),
        "a run in turn, to 20 vs 20": in_turn(20),
        "2 vs 2, 2 vs 3 … 2 vs 20": after_fixed(2, 20),
        "10 vs 2, 10 vs 3 … 10 vs 20": after_fixed(10, 20),
    }
)


class Repeated(NamedTuple):
    """The tests (from 0) at which a difference was significant first, at the falling level and at ALPHA; their number:
    never."""

    spent: int
    plain: int


def repeated(order: Order, repetitions: int, effect: float, seed: int, spread: float = 1.0) -> list[Repeated]:
    """Simulate runs with a standard deviation of 1, of the second setting `spread`, whose mean differs by `effect`."""
    random = np.random.default_rng(seed)
    before = random.normal(0.0, 1.0, (repetitions, max(one for one, _ in order)))
    after = random.normal(effect, spread, (repetitions, max(two for _, two in order)))
    pairs = zip(before, after, strict=True)
    return [Repeated(_first(order, one, two, True), _first(order, one, two, False)) for one, two in pairs]


def _first(order: Order, before: Floats, after: Floats, spending: bool) -> int:
    for at, (one, two) in enumerate(order):
        found = estimate_of_runs(before[:one], after[:two], ALONE)
        level = repeated_level(one + two) if spending else ALPHA
        if student_cdf(abs(found.mean) / found.error, found.freedom) > 1 - level / 2:
            return at
    return len(order)
