"""The ratio of a metric to its baseline: error rate, coverage, power and number of runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cockpit.analysis.baseline import assumed_spread, ratio_of, runs_to_settle
from cockpit.analysis.threshold_words import ratio_words
from tests.statistics.simulate import compared_with_baseline


@pytest.mark.parametrize("spread", [0.01, 0.03, 0.1])
@pytest.mark.parametrize(("base", "found"), [(2, 1), (5, 1), (5, 5)])
def test_error_rate_and_coverage(spread: float, base: int, found: int) -> None:
    """At most 5% of verdicts are wrong for an unchanged rate and for a rate exactly at the limit."""
    same = compared_with_baseline(600, spread, base, found, 1.0, seed=1)
    assert same.failed <= 0.03
    limit = compared_with_baseline(600, spread, base, found, 0.95, seed=2)
    assert limit.failed <= 0.05 and limit.passed <= 0.05
    assert limit.covered >= 0.92


def test_power_grows_with_runs() -> None:
    assert compared_with_baseline(300, 0.01, 5, 1, 1.0, seed=3).passed >= 0.85
    assert compared_with_baseline(300, 0.01, 5, 1, 0.85, seed=4).failed >= 0.98
    few, many = (compared_with_baseline(300, 0.03, runs, runs, 1.0, seed=5).passed for runs in (3, 10))
    assert few < many >= 0.9


def test_runs_to_settle_are_sufficient() -> None:
    random = np.random.default_rng(6)
    ratio = ratio_of("rate", np.exp(random.normal(0, 0.03, 6)).tolist(), [1.0])
    assert ratio is not None
    needed = runs_to_settle(ratio, ratio.value * 0.95)
    assert needed is not None
    spread = ratio.spread or 0
    base = np.exp(spread * np.resize([-1, 1], needed) * math.sqrt((needed - 1) / needed)).tolist()
    found = [ratio.value * value for value in base]
    settled = ratio_of("rate", base, found)
    assert settled is not None
    assert settled.low > 0.95 * ratio.value * math.exp(-0.01)
    assert runs_to_settle(ratio, ratio.value) is None


def test_counts_are_compared_without_logarithm() -> None:
    assert ratio_of("failed", [0.0, 0.0], [3.0]) is None
    ratio = ratio_of("failed", [10.0, 0.0, 11.0, 9.0], [8.0])
    assert ratio is not None
    assert ratio.spread is None
    assert ratio.low < 8 / 7.5 < ratio.high


@pytest.mark.parametrize(
    ("name", "spread"),
    [("rate", 0.15), ("p50", 0.15), ("p99", 0.4), ("p99.9", 0.4), ("connect.p99", 0.4), ("max", 0.4), ("p9", 0.15)],
)
def test_assumed_spread_is_larger_for_tails(name: str, spread: float) -> None:
    assert assumed_spread(name) == spread


def test_printed_spread_is_the_assumed_one() -> None:
    ratio = ratio_of("p99.9", [0.1], [0.1])
    assert ratio is not None
    assert "a spread of 40% between runs is assumed" in ratio_words(ratio)


def test_few_failures_of_one_run_each_do_not_differ() -> None:
    few, many = ratio_of("failed", [1.0], [3.0]), ratio_of("failed", [1000.0], [3000.0])
    assert few is not None and many is not None
    assert few.low < 1 < many.low
