"""Runs repeated by hand: the error rate over all tests, its price in power, and where the level applies."""

from __future__ import annotations

import numpy as np
import pytest

from cockpit.analysis.intervals import ALPHA, PooledVariance, few_runs, repeated_level
from tests.statistics.repeated import ORDERS, repeated


def test_error_rate_over_all_tests_is_kept() -> None:
    for name, order in ORDERS.items():
        if "20 vs 20" not in name:
            found = repeated(order, 120, 0.0, seed=1)
            assert np.mean([one.spent < len(order) for one in found]) <= 0.05, name


def test_one_level_at_each_test_is_wrong_too_often_and_large_differences_are_found() -> None:
    order = ORDERS["2 vs 2, 3 vs 3 … 10 vs 10"]
    assert np.mean([one.plain < len(order) for one in repeated(order, 120, 0.0, seed=2)]) >= 0.1
    assert np.mean([one.spent <= 1 for one in repeated(order, 30, 20.0, seed=3)]) >= 0.9


def test_level_falls_with_the_number_of_runs() -> None:
    levels = [repeated_level(runs) for runs in range(4, 40)]
    assert levels == sorted(levels, reverse=True) and levels[0] < ALPHA
    assert repeated_level(10, 0.01) == pytest.approx(repeated_level(10) / 5)
    before, after = np.array([0.0, 0.001]), np.array([-0.1, 0.1, 0.3, 0.0, 0.2, -0.05, 0.25])
    alone = few_runs(before, after, PooledVariance(0.0, 0))
    pooled = PooledVariance.of((before, after)).variance
    assert alone.high - alone.low > 2 * 2 * (pooled * (1 / 2 + 1 / 7)) ** 0.5
