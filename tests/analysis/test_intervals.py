"""Confidence intervals of runs and studies: coverage, levels, error rates, agreement with scipy."""

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy

from cockpit.analysis.intervals import (
    ALPHA,
    PooledVariance,
    anytime,
    anytime_detectable,
    anytime_reach,
    few_runs,
    minimum_detectable,
    nominal_level,
    repeated_level,
    sequential,
    student_cdf,
    student_quantile,
)
from cockpit.analysis.verdicts.outcome import DIFFERENT, Outcome
from tests.statistics.noise import NOISES
from tests.statistics.repeated import ORDERS, repeated
from tests.statistics.studies import studies


@pytest.mark.parametrize("freedom", [1, 2, 3.7, 9, 40, 1e6])
@pytest.mark.parametrize("probability", [0.6, 0.975, 0.9995])
def test_students_t_agrees_with_scipy(freedom: float, probability: float) -> None:
    t = student_quantile(probability, freedom)
    assert t == pytest.approx(scipy.stats.t.ppf(probability, freedom), rel=1e-3)
    assert student_cdf(t, freedom) == pytest.approx(probability, abs=1e-6)


def test_few_runs_match_welch_or_use_pooled_spread() -> None:
    before, after = np.log([100.0, 104, 99, 108]), np.log([120.0, 131, 125])
    found = few_runs(before, after, PooledVariance.of(()))
    welch = scipy.stats.ttest_ind(after, before, equal_var=False).confidence_interval(1 - ALPHA)
    assert (found.low, found.high) == pytest.approx((welch.low, welch.high), rel=1e-2)
    before, after = np.log([100.0]), np.log([200.0])
    assert math.isinf(few_runs(before, after, PooledVariance.of(())).high)
    pool = PooledVariance.of([np.log([100.0, 103]), np.log([50.0, 49])] * 5)
    assert few_runs(before, after, pool).low > 0
    assert PooledVariance.of([np.log([100.0])]) == PooledVariance(0.0, 0)


@pytest.mark.parametrize("cells", [10, 24])
def test_two_vs_two_runs_find_tenfold_difference(cells: int) -> None:
    random = np.random.default_rng(3)
    covered, found, widths = 0, 0, []
    repetitions = 1000
    for _ in range(repetitions):
        others = random.normal(0, 0.1, (cells, 2))
        before, after = random.normal(0, 0.1, (2, 2))
        interval = few_runs(before, after + math.log(10), PooledVariance.of(others))
        covered += interval.low <= math.log(10) <= interval.high
        found += interval.low > 0
        widths.append(interval.high - interval.low)
    assert 0.93 <= covered / repetitions <= 0.99
    assert found / repetitions >= 0.98
    assert math.exp(float(np.median(widths)) / 2) <= 1.5


def test_sequential_interval_only_shrinks() -> None:
    random = np.random.default_rng(5)
    for _ in range(50):
        values = random.normal(0.05, 0.03, 16)
        intervals = [sequential(values[:rounds], 16) for rounds in range(4, 17)]
        assert all(later.low >= early.low and later.high <= early.high for early, later in pairwise(intervals))
        assert all(each.low <= each.estimate <= each.high for each in intervals)
    assert math.isinf(sequential(values[:3], 16).high)
    # The first four rounds exclude what the last ones show.
    values = np.array([-0.1, -0.101, -0.1, -0.101, *[0.1] * 46])
    early, late = sequential(values[:4], 50), sequential(values, 50)
    assert early.high < 0 < late.high
    assert late.low <= early.low and late.low <= late.estimate <= late.high


def test_detectable_effects_have_80_percent_power() -> None:
    random = np.random.default_rng(8)
    for rounds in (6, 12):
        effect = anytime_detectable(0.03, rounds)
        found = sum(anytime(random.normal(effect, 0.03, rounds)).low > 0 for _ in range(400)) / 400
        assert 0.7 <= found <= 0.9
    random = np.random.default_rng(6)
    for rounds in (8, 16):
        effect = minimum_detectable(0.03, rounds)
        found = sum(sequential(random.normal(effect, 0.03, rounds), rounds).low > 0 for _ in range(250)) / 250
        assert 0.75 <= found <= 0.92


def test_anytime_interval_covers_at_every_observation() -> None:
    random = np.random.default_rng(7)
    values = random.standard_normal((1500, 60))
    wrong = np.zeros(len(values), dtype=bool)
    for rounds in range(2, 61):
        seen = values[:, :rounds]
        wrong |= np.abs(seen.mean(axis=1)) > anytime_reach(rounds) * seen.std(axis=1, ddof=1)
    assert wrong.mean() <= 0.05
    assert math.isinf(anytime_reach(1))
    assert anytime(values[0]).high - anytime(values[0]).low < anytime(values[0][:20]).high - anytime(values[0][:20]).low


@pytest.mark.parametrize(
    ("rounds", "alpha", "level"),
    [(8, 0.00125, 0.000326), (12, 0.000625, 0.0001006), (24, 0.0025, 0.000259), (50, 0.00125, 0.0000813)],
)
def test_levels_of_many_comparisons_match_simulation(rounds: int, alpha: float, level: float) -> None:
    """The expected levels are quantiles of 600,000 to 2,000,000 simulated studies."""
    assert nominal_level(rounds, alpha) == pytest.approx(level, rel=0.1)


def test_error_rate_of_repeated_runs_is_kept_at_falling_level() -> None:
    for name, order in ORDERS.items():
        if "20 vs 20" not in name:
            found = repeated(order, 120, 0.0, seed=1)
            assert np.mean([one.spent < len(order) for one in found]) <= 0.05, name
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


REPETITIONS = 40
KINDS = ("white", "AR(1) 0.9", "drift 2%/min")


def test_study_without_effect_keeps_error_rate() -> None:
    found = [study for kind in KINDS for study in studies(NOISES[kind], REPETITIONS, (0.0,) * 3, 8, 0.02, seed=1)]
    wrong = [any(each.outcome in DIFFERENT for each in study.comparisons) for study in found]
    assert np.mean(wrong) <= 0.05
    assert np.mean([study.control.outcome in DIFFERENT for study in found]) <= 0.05


def test_variant_with_effect_closes_early() -> None:
    effects = (math.log(1.2), 0.0)
    found = studies(NOISES["white"], REPETITIONS, effects, 8, 0.02, seed=2)
    effective, ineffective = zip(*(study.comparisons for study in found), strict=True)
    assert np.mean([each.outcome is Outcome.BETTER for each in effective]) >= 0.95
    assert np.mean([each.rounds for each in effective]) < 6
    assert np.mean([each.outcome in DIFFERENT for each in ineffective]) <= 0.07
    assert max(study.visits for study in found) <= 8 * 4
