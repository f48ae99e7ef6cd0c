"""Effects adjusted for the CPU's speed: error rate, power, and when there is no adjustment."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import replace

from cockpit.analysis.intervals import Speeds, anytime, estimate, sequential
from cockpit.analysis.outcome import Outcome
from cockpit.analysis.speed import speed_ratios
from cockpit.analysis.verdict import judge_rounds, judge_single_runs
from cockpit.analysis.warning_words import warning_words
from cockpit.analysis.warnings import WarningKind
from cockpit.analysis.windows import Window
from cockpit.analysis.words import basis_lines, basis_words
from tests.analysis.synthetic import window
from tests.statistics.speeds import MACHINES, StudyIntervals, studies_of


def share_found(found: list[StudyIntervals]) -> float:
    return float(np.mean([one.adjusted.low > 0 or one.adjusted.high < 0 for one in found]))


def test_error_rate_is_kept() -> None:
    found = [one for machine in MACHINES for rounds in (5, 12) for one in studies_of(machine, 60, rounds, 0.0, seed=1)]
    # 5% plus two standard errors and the tests' own tolerance of 1%.
    assert share_found(found) <= 0.083
    assert np.mean([one.ever for one in found]) <= 0.05


def test_adjusted_rounds_find_what_others_do_not_and_cost_little() -> None:
    found = studies_of(MACHINES[1], 30, 12, math.log(1.05), seed=2)
    assert share_found(found) >= 0.95
    assert np.mean([one.plain.low > 0 for one in found]) <= 0.6
    independent = studies_of(MACHINES[2], 30, 12, math.log(1.02), seed=3)
    assert np.mean([one.plain.low > 0 for one in independent]) - share_found(independent) <= 0.15


def test_slope_of_one_comparison_is_that_of_least_squares() -> None:
    random = np.random.default_rng(4)
    speeds = random.normal(0, 0.1, 9)
    values = 0.03 + 0.5 * speeds + random.normal(0, 0.02, 9)
    found = estimate(values, Speeds(speeds))
    design = np.column_stack((np.ones(9), speeds))
    coefficients, squares, *_ = np.linalg.lstsq(design, values, rcond=None)
    covariance = float(squares[0]) / 7 * np.linalg.inv(design.T @ design)
    assert found.adjusted and found.freedom == pytest.approx(7)
    assert (found.mean, found.error) == pytest.approx((coefficients[0], math.sqrt(covariance[0, 0])))
    assert found.deviation == pytest.approx(math.sqrt(float(squares[0]) / 7))


def test_setting_that_changes_the_speed_itself_is_not_adjusted() -> None:
    """A server that takes the clock rate down would otherwise look as fast as before."""
    random = np.random.default_rng(5)
    speeds = -0.2 + random.normal(0, 0.02, 8)
    values = 0.9 * speeds + random.normal(0, 0.01, 8)
    assert not estimate(values, Speeds(speeds)).adjusted
    assert sequential(values, 8, speeds=Speeds(speeds)) == sequential(values, 8)
    assert anytime(values, speeds=Speeds(speeds)) == anytime(values)


@pytest.mark.parametrize("speeds", [np.zeros(6), np.array([]), np.arange(4.0)], ids=["constant", "unknown", "partial"])
def test_without_differences_of_speed_nothing_is_adjusted(speeds: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    values = np.random.default_rng(6).normal(0.1, 0.05, 6)
    assert estimate(values, Speeds(speeds)) == estimate(values)


def test_metrics_that_follow_the_speed() -> None:
    before = {"web1.speed.cpu": np.array([1000.0, 1000.0]), "db1.speed.cpu": np.array([500.0, 500.0])}
    after = {"web1.speed.cpu": np.array([1100.0, 900.0]), "db1.speed.cpu": np.array([500.0, 500.0])}
    of_web = np.log([1.1, 0.9])
    assert speed_ratios(before, after, "web1.processes.cpu") == pytest.approx(of_web)
    assert speed_ratios(before, after, "rate") == pytest.approx(of_web / 2)
    assert speed_ratios(before, after, "p99.9") == pytest.approx(of_web / 2)
    for metric in ("web1.memory.used", "errors", "web2.cpu.busy", "web1.io.tps"):
        assert len(speed_ratios(before, after, metric)) == 0


def with_speed(found: Window, speed: float) -> Window:
    points = tuple(replace(point, speed=1000 * speed) for point in found.hosts["web1"])
    return replace(found, hosts={"web1": points})


def test_verdict_on_a_machine_of_varying_speed_says_so() -> None:
    random = np.random.default_rng(7)
    speeds = np.exp(random.normal(0, 0.15, (8, 2)))
    pairs = [
        (
            [with_speed(window(at, 20, rate=1000 * one), one)],
            [with_speed(window(50 + at, 20, rate=1100 * two), two)],
        )
        for at, (one, two) in enumerate(speeds)
    ]
    verdict = judge_rounds(pairs, budget=8)
    assert verdict.outcome is Outcome.BETTER and verdict.headline is not None
    assert verdict.headline.change == pytest.approx(0.1, abs=0.02)
    adjustment = verdict.headline.speed
    assert adjustment is not None and adjustment.slopes is None
    assert adjustment.spread == pytest.approx(np.log(speeds[:, 1] / speeds[:, 0]).std(ddof=1))
    assert adjustment.ratio == pytest.approx(math.exp(np.log(speeds[:, 1] / speeds[:, 0]).mean()))
    assert basis_words(verdict) == "8 rounds, adjusted for CPU speed"
    assert any("adjusted for CPU speed" in line for line in basis_lines(verdict))
    unmeasured = [([replace(one[0], hosts={})], [replace(two[0], hosts={})]) for one, two in pairs]
    plain = judge_rounds(unmeasured, budget=8)
    assert plain.outcome is Outcome.INCONCLUSIVE and plain.headline is not None
    assert (adjustment.low, adjustment.high) == pytest.approx((plain.headline.low, plain.headline.high))
    before, after = with_speed(window(1, 40), 1.0), with_speed(window(2, 40, rate=800, start=40), 0.8)
    verdict = judge_single_runs(before, after)
    (warning,) = [one for one in verdict.warnings if one.kind is WarningKind.SPEED_DIFFERS]
    assert warning.subject == "web1" and warning_words(warning).startswith(
        "after the change the CPU of web1 ran at 80%"
    )
    assert not judge_single_runs(before, with_speed(window(2, 40, start=40), 0.95)).warnings
