"""Switches and rounds on a machine whose CPU changes its speed: error rate, power, and what is reported."""

import json
import math

import numpy as np
import pytest
from msgspec.structs import replace

from cockpit.analysis.intervals import Floats, Speeds, anytime, estimate, sequential
from cockpit.analysis.switch import speed as switch_speed
from cockpit.analysis.switch import switch
from cockpit.analysis.verdicts.outcome import Outcome, Verdict
from cockpit.analysis.verdicts.speed import speed_ratios
from cockpit.analysis.verdicts.verdict import judge_rounds, judge_single_runs, judge_switch
from cockpit.analysis.warnings import WarningKind
from cockpit.analysis.windows import Window
from cockpit.analysis.words.verdicts import basis_lines, basis_words
from cockpit.analysis.words.warnings import warning_words
from cockpit.report.encoding import to_json
from cockpit.report.verdicts import verdict_json
from tests.analysis.synthetic import window
from tests.statistics.noise import NOISES
from tests.statistics.speeds import MACHINES, StudyIntervals, studies_of
from tests.statistics.switch_speeds import SPEEDS, Switched, switched

KINDS = ("white", "AR(1) 0.9", "1/f")


def shares(found: list[Switched]) -> tuple[float, float]:
    """Return the shares of significant differences, adjusted and not."""
    return (
        float(np.mean([math.isfinite(one.adjusted) for one in found])),
        float(np.mean([math.isfinite(one.plain) for one in found])),
    )


def of_kinds(speed: str, follows: float, repetitions: int, after: int, effect: float) -> list[Switched]:
    noises = [NOISES[kind] for kind in KINDS]
    return [one for noise in noises for one in switched(SPEEDS[speed], noise, follows, repetitions, after, effect, 3)]


def test_change_of_speed_is_no_effect_and_effect_is_found() -> None:
    for speed in SPEEDS:
        for follows in (0.0, 1.0):
            adjusted, _ = shares(of_kinds(speed, follows, 3, 90, 0.0))
            assert adjusted == 0, (speed, follows)
    adjusted, plain = shares(of_kinds("step of 10% at the switch", 1.0, 4, 120, 0.0))
    assert adjusted == 0 and plain >= 0.5
    for speed in ("wanders within 10 s", "another each 10 s"):
        found = of_kinds(speed, 1.0, 4, 120, math.log(1.1))
        adjusted, plain = shares(found)
        assert adjusted >= 0.5 and plain <= 0.4
        assert np.mean([one.covered for one in found]) >= 0.9
    adjusted, plain = shares(of_kinds("constant", 1.0, 4, 120, math.log(1.1)))
    assert plain - adjusted <= 0.12


def blocks(
    values: tuple[Floats, Floats], speeds: tuple[Floats, Floats], error: float = 0.0
) -> switch_speed.SwitchBlocks:
    return switch_speed.with_speeds(*values, speeds, error, 1)


def test_slopes_are_those_within_the_sides() -> None:
    random = np.random.default_rng(1)
    speeds = random.normal(0, 0.08, 12), random.normal(0, 0.08, 20)
    values = tuple(np.exp(0.6 * side + random.normal(0, 0.01, len(side))) for side in speeds)
    found = switch_speed.slopes(blocks((values[0], 3 * values[1]), speeds), np.log)
    assert found.low < 0.6 < found.high and found.high - found.low < 0.25
    assert found.likely == pytest.approx(0.6, abs=0.1)
    random = np.random.default_rng(2)
    values = np.exp(random.normal(0, 0.02, 12)), np.exp(random.normal(0, 0.02, 20))
    read = random.normal(0, 0.01, 12), random.normal(0.1, 0.01, 20)
    assert switch_speed.slopes(blocks(values, (np.zeros(12), np.full(20, 0.1))), np.log)[::2] == (0.0, 1.0)
    assert switch_speed.slopes(blocks(values, read, 0.01), np.log)[::2] == (0.0, 1.0)
    # The speed differs by far more than it varies: the set of slopes includes 0, whatever the blocks say.
    random = np.random.default_rng(3)
    speeds = random.normal(0, 0.03, 12), random.normal(-0.3, 0.03, 20)
    values = tuple(np.exp(side + random.normal(0, 0.003, len(side))) for side in speeds)
    compared = blocks((values[0], values[1]), speeds)
    found = switch_speed.slopes(compared, np.log)
    assert found.low == 0.0 and found.likely == pytest.approx(1.0, abs=0.1)
    interval = switch_speed.effect(compared, scale=np.log)
    assert interval.low < -0.25 and interval.high > 0


def test_unknown_speeds_are_interpolated_or_nothing_is_adjusted() -> None:
    values = np.ones(12), np.ones(12)
    known = np.arange(12.0) / 100
    some, few = known.copy(), known.copy()
    some[[3, 11]], few[:5] = np.nan, np.nan
    interpolated = blocks(values, (some, known)).before_speeds
    assert interpolated[3] - interpolated[2] == pytest.approx(0.01) and interpolated[11] == interpolated[10]
    assert not blocks(values, (few, known)).is_adjusted
    plain = blocks((np.exp(known), 2 * np.exp(known)), (few, known))
    assert switch_speed.effect(plain, scale=np.log) == switch.effect(plain.before, plain.after, scale=np.log)


def with_speeds(found: Window, speeds: Floats) -> Window:
    """The window with a speed per second; the rate follows it in proportion."""
    pairs = zip(found.hosts["web1"], speeds, strict=True)
    points = tuple(replace(point, speed=1000 * float(speed)) for point, speed in pairs)
    seconds = tuple(
        replace(second, completed=round(second.completed * float(speed)))
        for second, speed in zip(found.seconds, speeds, strict=True)
    )
    return replace(found, hosts={"web1": points}, seconds=seconds)


def verdict_on(rate: float) -> Verdict:
    random = np.random.default_rng(4)
    speeds = [np.repeat(np.exp(random.normal(0, 0.12, number // 10)), 10) for number in (60, 120)]
    before, after = window(1, 60), window(2, 120, rate=rate, start=60)
    return judge_switch(with_speeds(before, speeds[0]), with_speeds(after, speeds[1]))


def test_verdict_reports_the_effect_with_and_without_adjustment() -> None:
    verdict = verdict_on(1100.0)
    rate = verdict.headline
    assert (verdict.outcome, rate.outcome) == (Outcome.BETTER, Outcome.BETTER)
    assert rate.change == pytest.approx(0.1, abs=0.04)
    assert rate.speed is not None and rate.speed.slopes is not None and rate.speed.spread is None
    assert rate.speed.low is not None and rate.speed.high is not None and rate.speed.low < 0 < rate.speed.high
    assert rate.speed.slopes[0] > 0.5
    assert basis_words(verdict) == "60 s vs 120 s, adjusted for CPU speed"
    (line,) = [line for line in basis_lines(verdict) if line.startswith("adjusted for CPU speed")]
    assert f"{100 * rate.speed.ratio:.1f}% of its value before" in line and "unadjusted: rate " in line
    data = json.loads(to_json(verdict_json(verdict)))["effects"][0]["speed"]
    assert (data["change"], data["low"], data["ratio"]) == (rate.speed.change, rate.speed.low, rate.speed.ratio)
    memory = verdict_on(1000.0).effect("web1.memory.used")
    cost = verdict_on(1000.0).effect("web1.cpu.per_request")
    assert memory is not None and memory.speed is None
    assert cost is not None and cost.speed is not None


def share_found(found: list[StudyIntervals]) -> float:
    return float(np.mean([one.adjusted.low > 0 or one.adjusted.high < 0 for one in found]))


def test_error_rate_is_kept_and_adjusted_rounds_find_more() -> None:
    found = [one for machine in MACHINES for rounds in (5, 12) for one in studies_of(machine, 60, rounds, 0.0, seed=1)]
    # 5% plus two standard errors and the tests' own tolerance of 1%.
    assert share_found(found) <= 0.083
    assert np.mean([one.ever for one in found]) <= 0.05
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
        ([with_speed(window(at, 20, rate=1000 * one), one)], [with_speed(window(50 + at, 20, rate=1100 * two), two)])
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
    assert warning.subject == "web1"
    assert warning_words(warning).startswith("after the change the CPU of web1 ran at 80%")
    assert not judge_single_runs(before, with_speed(window(2, 40, start=40), 0.95)).warnings
