"""The ratio of a metric to its baseline: error rate, coverage, power and number of runs."""

from __future__ import annotations

import math

import numpy as np

from cockpit.analysis.baseline import assumed_spread, ratio_of, runs_to_settle
from cockpit.analysis.threshold_words import ratio_words
from tests.statistics.simulate import compared_with_baseline


def test_error_rate_and_coverage() -> None:
    """At most 5% of verdicts are wrong for an unchanged rate and for a rate exactly at the limit."""
    for spread in (0.01, 0.03, 0.1):
        for base, found in ((2, 1), (5, 1), (5, 5)):
            same = compared_with_baseline(200, spread, base, found, 1.0, seed=1)
            assert same.failed <= 0.03
            limit = compared_with_baseline(200, spread, base, found, 0.95, seed=2)
            assert limit.failed <= 0.06 and limit.passed <= 0.05
            assert limit.covered >= 0.9


def test_power_grows_with_runs_and_runs_to_settle_are_sufficient() -> None:
    assert compared_with_baseline(300, 0.01, 5, 1, 1.0, seed=3).passed >= 0.85
    assert compared_with_baseline(300, 0.01, 5, 1, 0.85, seed=4).failed >= 0.98
    few, many = (compared_with_baseline(300, 0.03, runs, runs, 1.0, seed=5).passed for runs in (3, 10))
    assert few < many >= 0.9
    random = np.random.default_rng(6)
    ratio = ratio_of("rate", np.exp(random.normal(0, 0.03, 6)).tolist(), [1.0])
    needed = runs_to_settle(ratio, ratio.value * 0.95)
    spread = ratio.spread or 0
    base = np.exp(spread * np.resize([-1, 1], needed) * math.sqrt((needed - 1) / needed)).tolist()
    found = [ratio.value * value for value in base]
    settled = ratio_of("rate", base, found)
    assert settled.low > 0.95 * ratio.value * math.exp(-0.01)
    assert runs_to_settle(ratio, ratio.value) is None


def test_counts_are_compared_without_logarithm() -> None:
    assert ratio_of("failed", [0.0, 0.0], [3.0]) is None
    ratio = ratio_of("failed", [10.0, 0.0, 11.0, 9.0], [8.0])
    assert ratio.spread is None
    assert ratio.low < 8 / 7.5 < ratio.high
    few, many = ratio_of("failed", [1.0], [3.0]), ratio_of("failed", [1000.0], [3000.0])
    assert few.low < 1 < many.low


def test_assumed_spread_is_larger_for_tails() -> None:
    assert [assumed_spread(name) for name in ("rate", "p50", "p9")] == [0.15] * 3
    assert [assumed_spread(name) for name in ("p99", "p99.9", "connect.p99", "max")] == [0.4] * 4
    assert "a spread of 40% between runs is assumed" in ratio_words(ratio_of("p99.9", [0.1], [0.1]))
