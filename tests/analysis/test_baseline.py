"""Thresholds relative to a baseline, error rate and power of their ratios, aborted runs, and stability."""

import math
import tracemalloc

import numpy as np
import pytest
from msgspec.structs import replace

from cockpit.analysis.baseline import Baseline, assumed_spread, baseline_of, baseline_run, ratio_of, runs_to_settle
from cockpit.analysis.stability import (
    STABLE,
    Stability,
    StabilityKind,
    is_stable,
    run_stability,
    trend,
    window_stability,
)
from cockpit.analysis.thresholds import AbortCheck, Status, check_abort, check_thresholds, parse_threshold
from cockpit.analysis.words.thresholds import found_words, ratio_words
from cockpit.analysis.words.verdicts import stability_words
from cockpit.metrics.results import RunResult, run_result
from cockpit.model.errors import UsageError
from cockpit.model.fold.fold import fold_all
from cockpit.model.state import State
from tests.analysis.synthetic import OPEN, window
from tests.data import data_of
from tests.session.events import small_session
from tests.statistics.simulate import compared_with_baseline

DATA = data_of(__file__)


@pytest.fixture(scope="module")
def state() -> State:
    return fold_all(small_session())


def baseline_from(*results: RunResult) -> Baseline:
    return baseline_of("b", [baseline_run("x", 0.0, result) for result in results], results[0].plan)


def result_with_rate(result: RunResult, rate: float) -> RunResult:
    return replace(result, seconds=result.counts.completed / rate)


def test_relative_threshold(state: State) -> None:
    """The runs of the baseline differ by less than 1%."""
    for text, status, limit in (
        ("rate >= 95% of baseline", Status.HOLDS, 190.0),
        ("rate >= 105 % of  baseline", Status.FAILED, 210.0),
        ("rate >= 100% of baseline", Status.INCONCLUSIVE, 200.0),
        ("p99 <= 110% of baseline", Status.HOLDS, 0.1056),
        ("p99 < 90% of baseline", Status.FAILED, 0.0864),
        ("web1.cpu.idle > 50% of baseline", Status.HOLDS, 25.0),
        ("failed <= 100% of baseline", Status.HOLDS, 0.0),
        ("failed < 100% of baseline", Status.FAILED, 0.0),
        ("web9.cpu.idle > 50% of baseline", Status.FAILED, None),
        ("rate > 100", Status.HOLDS, 100.0),
    ):
        result = run_result(state, 1)
        assert result is not None
        base = baseline_from(*(result_with_rate(result, rate) for rate in (198.6, 200.0, 201.4, 199.6, 200.4)))
        (outcome,) = check_thresholds([parse_threshold(text)], result, base)
        assert (outcome.status, outcome.holds) == (status, status is Status.HOLDS)
        assert outcome.limit == (limit if limit is None else pytest.approx(limit, rel=0.01))


def test_high_spread_or_one_run_makes_threshold_inconclusive(state: State) -> None:
    result = run_result(state, 1)
    threshold = parse_threshold("rate >= 95% of baseline")
    wide = baseline_from(*(result_with_rate(result, rate) for rate in (185.0, 220.0, 195.0, 205.0)))
    (outcome,) = check_thresholds([threshold], result, wide)
    assert outcome.status is Status.INCONCLUSIVE
    assert outcome.ratio is not None and outcome.ratio.runs == (4, 1)
    assert outcome.ratio.low < 0.95 < outcome.ratio.value < outcome.ratio.high
    assert outcome.needed is not None and outcome.needed > 10
    assert found_words(outcome).endswith(f"n = 4 vs 1); about {outcome.needed} runs per side settle it")
    spread = 1 + (outcome.ratio.spread or 0)
    many = [result_with_rate(result, 200.0 * factor) for factor in (1 / spread, spread) * outcome.needed]
    (settled,) = check_thresholds([threshold], result, baseline_from(*many), many)
    assert settled.status is Status.HOLDS
    base = baseline_from(result)
    for text, rate, status in (
        ("rate >= 95% of baseline", 200.0, Status.INCONCLUSIVE),
        ("rate >= 95% of baseline", 100.0, Status.FAILED),
        ("rate >= 95% of baseline", 400.0, Status.HOLDS),
    ):
        (outcome,) = check_thresholds([parse_threshold(text)], result_with_rate(result, rate), base)
        assert outcome.status is status
        assert outcome.ratio is not None and outcome.ratio.assumed
        assert "n = 1 vs 1; a spread of 15% between runs is assumed" in found_words(outcome)


def test_relative_threshold_without_baseline_fails(state: State) -> None:
    result = run_result(state, 1)
    outcome = check_thresholds([parse_threshold("rate >= 1% of baseline")], result)[0]
    assert (outcome.status, outcome.limit) == (Status.FAILED, None)
    with pytest.raises(UsageError, match="use <, <=, > or >="):
        parse_threshold("rate == 100% of baseline")
    assert baseline_from(result).metric("web9.cpu.idle") is None
    assert baseline_from(result).metric("web1.cpu.nonsense") is None


def states() -> list[State]:
    """Return the state of the small session after each event of its first run."""
    found, state = [], State()
    for event in small_session():
        state = fold_all([event], state)
        found.append(state)
        if event.t > 25:
            break
    return found


def test_run_is_aborted_when_threshold_fails() -> None:
    for text, after in (("p99 < 10ms", 2.0), ("rate > 1k", 2.0), ("web1.cpu.idle > 90", 2.0), ("failed < 0", 0.0)):
        breaker = AbortCheck([parse_threshold(text)])
        failing = next(state for state in states() if breaker(state))
        assert breaker.failed.threshold.text == text
        result = run_result(failing, 1)
        assert after <= result.seconds < after + 1
        # The breaker stays open for any later state.
        assert breaker(State())
    for text in ("p99 < 1s", "failed < 1", "web9.cpu.idle > 90", "rate > 10"):
        breaker = AbortCheck([parse_threshold(text)])
        assert not any(breaker(state) for state in states()), text
    with pytest.raises(UsageError, match="'completed > 10': completed is known only at the end"):
        check_abort(parse_threshold("completed > 10"))


def test_falling_rate_and_short_windows_are_not_stable() -> None:
    assert window_stability(window(1, 30, deviation=0.002)) == STABLE
    falling = window_stability(window(1, 30, deviation=0.002, drift=-0.4))
    assert (falling.kind, falling.seconds) == (StabilityKind.RATE, 10)
    assert "in the last 3 parts of 10 s each" in stability_words(falling)
    assert window_stability(window(1, 6, deviation=0.002, drift=-0.4)).seconds == 2
    found = window_stability(window(1, 5))
    assert found == Stability(kind=StabilityKind.TOO_SHORT, seconds=5, needed=6)
    assert stability_words(found) == "too short: 5 s counted, needs 6 s"
    steady = window(3, 40, deviation=0.002, plan=OPEN)
    # Each second is a little slower than the second before.
    slower = [window(at, 1, slower=factor).seconds[0] for at, factor in enumerate(np.linspace(1, 4, 40))]
    rising = [
        replace(slow, second=second.second, start=second.start, end=second.end, completed=second.completed)
        for slow, second in zip(slower, steady.seconds, strict=True)
    ]
    assert window_stability(steady) == STABLE
    found = window_stability(replace(steady, seconds=tuple(rising)))
    assert stability_words(found).startswith("p99 rose by ")
    closed = window(3, 40, deviation=0.002)
    assert window_stability(replace(closed, seconds=tuple(rising))) == STABLE


def test_poisson_arrivals_and_every_segment_are_stable(state: State) -> None:
    poisson = replace(OPEN, rate=600.0, arrivals="poisson")
    noisy = {"rate": 600.0, "deviation": 600**-0.5}
    found = [window_stability(window(seed, 10, plan=poisson, **noisy)) for seed in range(40)]
    assert sum(not each.is_stable for each in found) <= 1
    even = [window_stability(window(seed, 10, plan=OPEN, **noisy)) for seed in range(40)]
    assert sum(not each.is_stable for each in even) > 5
    assert window_stability(window(1, 10, plan=poisson, drift=-0.5, **noisy)).seconds == 3
    segments = [segment for segment in state.segments if segment.run == 1]
    assert len(segments) == 2
    assert run_stability(state, segments) == STABLE
    found = run_stability(state, [replace(segments[0], last=segments[0].start + 4), segments[1]])
    assert stability_words(found).startswith("segment 1: too short")


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


def test_counts_have_no_logarithm_and_tails_a_larger_spread() -> None:
    assert ratio_of("failed", [0.0, 0.0], [3.0]) is None
    ratio = ratio_of("failed", [10.0, 0.0, 11.0, 9.0], [8.0])
    assert ratio.spread is None
    assert ratio.low < 8 / 7.5 < ratio.high
    few, many = ratio_of("failed", [1.0], [3.0]), ratio_of("failed", [1000.0], [3000.0])
    assert few.low < 1 < many.low
    assert [assumed_spread(name) for name in ("rate", "p50", "p9")] == [0.15] * 3
    assert [assumed_spread(name) for name in ("p99", "p99.9", "connect.p99", "max")] == [0.4] * 4
    assert "a spread of 40% between runs is assumed" in ratio_words(ratio_of("p99.9", [0.1], [0.1]))


def test_trend() -> None:
    generator = np.random.default_rng(2)
    rising = np.linspace(100, 130, 12) + generator.normal(0, 1, 12)
    assert trend(rising) == pytest.approx(0.26, abs=0.04)
    assert trend(rising[::-1].copy()) == pytest.approx(-0.26, abs=0.04)
    assert trend(100 + generator.normal(0, 1, 12)) == 0
    # The rise is significant, but too small to matter.
    assert trend(np.linspace(100, 102, 12)) == 0
    assert trend(np.array([])) == 0
    hours = np.linspace(1.0, 1.2, 4000) * np.exp(np.random.default_rng(1).normal(0, 0.1, 4000))
    tracemalloc.start()
    try:
        assert trend(hours) == pytest.approx(0.18, abs=0.03)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_stable_rates() -> None:
    for rates, stable in DATA["stable_rates_cases"]:
        assert is_stable(rates) is stable
    with pytest.raises(ValueError, match="at least two"):
        is_stable([1.0], k=1)
    assert is_stable([33.0, 33.5], k=2)
    assert not is_stable([33.0, 40.0], k=2)
