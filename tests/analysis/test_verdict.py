"""Verdicts on switches, rounds and runs: outcomes, objections and their text."""

import math
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from cockpit.analysis.effects import margin_of
from cockpit.analysis.verdicts.outcome import Cause, Design, Effect, Objection, Outcome, Period, Verdict
from cockpit.analysis.verdicts.verdict import (
    PlannedComparisons,
    judge_repeated_runs,
    judge_rounds,
    judge_runs,
    judge_single_runs,
    judge_switch,
)
from cockpit.analysis.warnings import WarningKind
from cockpit.analysis.windows import DiscardReason, Window
from cockpit.analysis.words.objections import objection_words
from cockpit.analysis.words.verdicts import brief, method_lines, value_words, verdict_line, verdict_words
from cockpit.model.generators import WorkerLost
from cockpit.model.histogram import EMPTY
from cockpit.model.state import Segment
from tests.analysis.synthetic import OPEN, PLAN, window

BEFORE = window(1, phi=0.3)
LOSS = WorkerLost(t=0.0, run=1, worker=1, detail="killed")
BETTER, WORSE, EQUIVALENT = Outcome.BETTER, Outcome.WORSE, Outcome.EQUIVALENT
INCONCLUSIVE, INVALID = Outcome.INCONCLUSIVE, Outcome.INVALID


def effect_on(verdict: Verdict, name: str) -> Effect:
    return verdict.effect(name)


def with_segment(of: Window, **changed: object) -> Window:
    segment = Segment(number=1, run=1, plan=of.plan, start=of.start, last=of.end, end=of.end)
    return replace(of, segments=(replace(segment, **changed),))


def runs(count: int, seed: int, **truth: float) -> list[list[Window]]:
    return [[window(seed + at, 20, **truth)] for at in range(count)]


def saturated(of: Window) -> Window:
    """The window with every fourth second saturated."""
    bound, kept = of.seconds[::4], [second for at, second in enumerate(of.seconds) if at % 4]
    return replace(of, seconds=tuple(kept), saturated=bound, flawed={DiscardReason.SATURATED: len(bound)})


def test_switch_with_higher_rate_is_better() -> None:
    verdict = judge_switch(BEFORE, window(2, phi=0.3, rate=1300), "A MaxSpareServers 10 → 30")
    assert (verdict.outcome, verdict.design) == (BETTER, Design.SWITCH)
    rate = effect_on(verdict, "rate")
    assert 0 < rate.low < 0.3 < rate.high
    line = verdict_line(verdict)
    assert line.startswith("A MaxSpareServers 10 → 30: better: rate +")
    assert line.endswith("60 s vs 60 s")
    assert brief(verdict)[1] == "good"
    verdict = judge_switch(window(1, drift=0.3), window(2, rate=1450, drift=0.3))
    assert effect_on(verdict, "rate").outcome is INCONCLUSIVE


@pytest.mark.parametrize(
    ("before", "after"), [((0, 60), (120, 180)), ((120, 180), (0, 60)), ((60, 120), (0, 60)), ((0, 60), (60, 120))]
)
def test_drift_is_no_effect_at_any_distance_and_in_any_order(before: tuple[int, int], after: tuple[int, int]) -> None:
    """Of a run whose rate rises by 2% a minute, other settings may be measured between the sides."""
    whole = window(5, 180, drift=0.06, deviation=0.01)

    def part(start: int, end: int) -> Window:
        seconds = tuple(second for second in whole.seconds if start + 3 <= second.second < end)
        return replace(whole, start=float(start), end=float(end), seconds=seconds, hosts={})

    assert effect_on(judge_switch(part(*before), part(*after)), "rate").outcome is INCONCLUSIVE


def test_growing_verdict_shows_likely_outcome_and_time_left() -> None:
    after = window(2, 60, phi=0.3, rate=1150)

    def seen(seconds: int) -> Verdict:
        return judge_switch(BEFORE, replace(after, seconds=after.seconds[:seconds], growing=True))

    nothing, early, later = seen(4), seen(12), seen(30)
    assert (nothing.outcome, nothing.needs, nothing.effects) == (INCONCLUSIVE, 35.0, ())
    assert verdict_words(nothing) == "inconclusive: 35 s more"
    assert (early.outcome, early.needs) == (INCONCLUSIVE, 25.0)
    assert (early.effects[0].low, early.effects[0].high, early.effects[0].likely) == (None, None, BETTER)
    assert verdict_words(early).startswith("inconclusive, likely better: rate +1")
    assert verdict_words(early).endswith("; 25 s more")
    assert brief(early) == ("wait", "")
    assert later.growing and later.needs is not None
    assert verdict_words(later).startswith("inconclusive, likely better: rate +1")
    assert verdict_words(later).endswith(f"; {math.ceil(later.needs)} s more")


def test_growing_verdict_promises_time_until_it_is_conclusive() -> None:
    verdict = judge_switch(window(1, 12), replace(window(2), growing=True))
    assert verdict.needs == math.inf
    assert "too short: 10 s before" in verdict_line(verdict)
    before, after = window(1, plan=OPEN, deviation=0.15), window(2, plan=OPEN, deviation=0.15, slower=1.03)
    found = [
        judge_switch(before, replace(after, seconds=seconds, growing=True)).needs
        for seconds in (after.seconds, silent(after, 20, 25).seconds)
    ]
    assert found == [math.inf, math.inf]
    slower = saturated(window(2, rate=700))

    def seen(seconds: int) -> Verdict:
        grown = {"seconds": slower.seconds[:seconds], "end": slower.start + seconds + 3, "growing": True}
        return judge_switch(BEFORE, replace(slower, **grown))

    assert seen(4).outcome is INCONCLUSIVE
    assert seen(10).outcome is INVALID


def test_different_load_is_invalid_unless_allowed() -> None:
    after = window(2, rate=1500, plan=replace(PLAN, concurrency=40))
    verdict = judge_switch(BEFORE, after)
    assert (verdict.outcome, verdict.effects) == (INVALID, ())
    assert verdict_words(verdict) == "invalid: the load differs: concurrency 20 → 40"
    assert brief(verdict)[0] == "≠ load"
    allowed = judge_switch(BEFORE, after, load_may_differ=True)
    assert allowed.outcome is BETTER
    (warning,) = allowed.warnings
    assert (warning.kind, warning.subject) == (WarningKind.LOAD_DIFFERS, "concurrency 20 → 40")
    assert any("the load differs" in line for line in method_lines(allowed))
    verdict = judge_switch(window(1, plan=OPEN), window(2, plan=OPEN, busy=20))
    assert verdict.effects[0].name == "p99"
    assert effect_on(verdict, "web1.cpu.busy").outcome is BETTER
    assert value_words(effect_on(verdict, "web1.cpu.busy")).startswith("39.9% → 19.9")


def test_flawed_run_makes_comparison_invalid() -> None:
    for changed, cause, words in (
        ({"reason": "failed", "detail": "no route\x1b[0m"}, Cause.RUN_FAILED, "the run after failed: no route·[0m"),
        ({"losses": (LOSS,)}, Cause.PARTIAL, "metrics after are partial: worker 1 lost: killed"),
    ):
        verdict = judge_switch(BEFORE, with_segment(window(2, rate=1300), **changed))
        assert verdict.outcome is INVALID
        assert verdict.objection is not None and verdict.objection.cause is cause
        assert objection_words(verdict.objection) == words
        # The metrics stay visible, without outcomes of their own.
        assert effect_on(verdict, "rate").change == pytest.approx(0.3, abs=0.05)
        assert {effect.outcome for effect in verdict.effects} == {INVALID}


def test_saturation_on_faster_side_gives_lower_bound() -> None:
    verdict = judge_switch(BEFORE, saturated(window(2, rate=1400)))
    assert (verdict.outcome, verdict.at_least) == (BETTER, True)
    assert verdict_words(verdict).startswith("better, at least: rate ≥ +3")
    assert brief(verdict)[0].startswith("≥+3")
    worse = judge_switch(saturated(window(1, rate=1500)), window(2))
    assert (worse.outcome, worse.at_least) == (WORSE, True)
    assert verdict_words(worse).startswith("worse, at least: rate ≤ −3")
    assert brief(worse)[0].startswith("≤−3")
    rate, p99 = effect_on(verdict, "rate"), effect_on(verdict, "p99")
    assert rate.low is not None and 0.3 < rate.low < 0.4 and rate.high is None
    assert p99.low is None and p99.high is not None
    assert p99.outcome is not EQUIVALENT, "it may be lower"
    cost = effect_on(verdict, "web1.cpu.per_request")
    assert cost.low is not None and cost.high is not None, "the host's CPU is the server's alone"
    rate, p99 = effect_on(worse, "rate"), effect_on(worse, "p99")
    assert rate.low is None and rate.high is not None and rate.high < 0
    assert p99.low is not None and p99.high is None


def test_saturation_on_slower_side_is_invalid() -> None:
    for before, after in (
        (BEFORE, saturated(window(2, rate=700))),
        (saturated(window(1)), saturated(window(2, rate=1300))),
        (saturated(window(1)), window(2, rate=1300)),
        (window(1, plan=OPEN), saturated(window(2, plan=OPEN, slower=0.5))),
    ):
        verdict = judge_switch(before, after)
        assert verdict.outcome is INVALID
        assert verdict.objection is not None and verdict.objection.cause is Cause.GENERATOR_SATURATED
        assert verdict.objection.share == pytest.approx(0.25)
        assert {effect.outcome for effect in verdict.effects} == {INVALID}
        assert brief(verdict)[0] == "gen-sat"


@pytest.mark.parametrize("read", [True, False])
def test_metrics_of_lost_host_are_invalid(read: bool) -> None:
    after = window(2, rate=1400)
    points = after.hosts["web1"] if read else ()
    lost = replace(after, unread={"web1": 20}, hosts={"web1": points})
    verdict = judge_switch(BEFORE, lost)
    assert verdict.outcome is BETTER, "the load was counted"
    (warning,) = verdict.warnings
    assert (warning.kind, warning.subject, warning.values) == (WarningKind.HOST_UNREAD, "web1", {"seconds": 20})
    if read:
        cost = effect_on(verdict, "web1.cpu.per_request")
        assert cost.objection == Objection(cause=Cause.HOST_LOST, side=Period.AFTER, seconds=20, host="web1")


def test_more_errors_are_worse_at_any_rate() -> None:
    # A server that answers 503 quickly is not faster.
    verdict = judge_switch(BEFORE, window(2, rate=1500, failed=0.05))
    assert verdict.outcome is WORSE
    assert effect_on(verdict, "errors").outcome is WORSE
    rate = effect_on(verdict, "rate")
    assert rate.objection is not None and rate.objection.cause is Cause.REQUESTS_FAILED
    assert "points" in verdict_line(verdict)
    few = judge_switch(window(1, failed=0.05), window(2, rate=1400, failed=0.05))
    assert few.outcome is BETTER
    verdict = judge_switch(window(1, failed=0.004), window(2, failed=0.002))
    assert not effect_on(verdict, "errors").relative
    assert effect_on(verdict, "errors").margin == 0.001
    verdict = judge_switch(window(1, 60), window(2, 180, failed=0.004))
    assert (effect_on(verdict, "errors").outcome, verdict.outcome) == (WORSE, WORSE)


def test_few_failed_requests_are_no_difference() -> None:
    after = window(2, phi=0.3)
    seconds = (replace(after.seconds[30], failed=1), *after.seconds[:30], *after.seconds[31:])
    verdict = judge_switch(BEFORE, replace(after, seconds=tuple(sorted(seconds, key=lambda one: one.second))))
    assert effect_on(verdict, "errors").outcome is not WORSE
    # One and three of 60,000 requests: by chance, however many runs agree in it.
    one, three = with_failed(window(1), [1]), with_failed(window(2), [1, 1, 1])
    assert effect_on(judge_single_runs(one, three), "errors").outcome is not WORSE
    none = [[window(3)], [window(4)]]
    assert effect_on(judge_runs(none, [[three], [three]]), "errors").outcome is not WORSE
    pairs = [([window(at)], [three]) for at in range(4)]
    assert effect_on(judge_rounds(pairs, budget=4), "errors").outcome is not WORSE


def with_failed(of: Window, failed: Sequence[int]) -> Window:
    """The window with this many failed requests in its first seconds."""
    pairs = zip(of.seconds, [*failed, *[0] * (len(of.seconds) - len(failed))], strict=True)
    return replace(of, seconds=tuple(replace(one, failed=n) for one, n in pairs))


def silent(of: Window, first: int, last: int) -> Window:
    """The window without a response from one second to another."""
    return replace(
        of,
        seconds=tuple(
            replace(one, completed=0, latency=EMPTY) if first <= one.second < last else one for one in of.seconds
        ),
    )


@pytest.mark.parametrize("begin", [0, 8, 17, 30])
def test_end_of_stalls_and_higher_rate_are_better_within_a_minute(begin: int) -> None:
    before, after = silent(window(1, 40, deviation=0.09), begin, begin + 10), window(2, 60, rate=2200, deviation=0.09)
    rate = effect_on(judge_switch(before, after), "rate")
    assert (rate.outcome, rate.relative) == (BETTER, True)
    assert rate.low is not None and rate.high is not None and rate.low < 2.2 / 0.75 - 1 < rate.high
    assert rate.change == pytest.approx(rate.after / rate.before - 1, rel=1e-6)


def test_stall_in_the_baseline_alone_is_no_effect() -> None:
    for begin in (0, 12, 28):
        rate = effect_on(judge_switch(silent(window(1, 40), begin, begin + 10), window(2, 180)), "rate")
        assert rate.outcome is INCONCLUSIVE


def test_equal_ramps_are_compared_as_a_whole_and_parts_of_a_ramp_are_not() -> None:
    ramp = replace(PLAN, ramp_to=99.0)
    parts = window(1, 30, plan=ramp), window(2, 30, plan=ramp, rate=4000.0, start=30)
    for first, second in (parts, (window(1, plan=ramp), parts[1]), (parts[0], window(2, plan=ramp))):
        for judge in (judge_switch, judge_single_runs):
            verdict = judge(first, second)
            assert verdict.outcome is INVALID and "only 30 s of c=20→99 in 60 s" in verdict_words(verdict)
    assert judge_single_runs(window(1, plan=ramp), window(2, plan=ramp, rate=4000.0)).outcome is BETTER, "equal ramps"


def test_single_runs_have_an_assumed_spread_and_80_percent_power() -> None:
    small, large = (judge_single_runs(BEFORE, window(2, rate=rate)) for rate in (1200.0, 4000.0))
    assert (small.outcome, large.outcome) == (INCONCLUSIVE, BETTER)
    assert any("is assumed" in line for line in method_lines(small))
    assert {margin_of(name) for name in ("p95", "p99.9", "response.p99", "max")} == {margin_of("p99")}
    assert margin_of("p99") > margin_of("p50")
    rate = effect_on(judge_single_runs(window(1), window(2)), "rate")
    half, error = math.log1p(rate.high) - math.log1p(rate.change), math.sqrt(2) * 0.15
    assert (math.log1p(rate.detectable) - half) / error == pytest.approx(0.8416, abs=1e-3)


def test_change_is_the_ratio_of_the_shown_values() -> None:
    """The metrics of runs are compared as ratios, so that their means are geometric ones."""
    sides = [
        [[window(at, 20, rate=rate, slower=slower)] for at, rate, slower in side]
        for side in (((1, 1000, 1), (2, 3000, 4)), ((3, 2000, 2), (4, 2500, 3)))
    ]
    for verdict in (judge_runs(*sides), judge_rounds([*zip(*sides, strict=True)] * 2, budget=4)):
        for name in ("rate", "p99"):
            effect = effect_on(verdict, name)
            assert effect.change == pytest.approx(effect.after / effect.before - 1)


def test_rounds_conclude_better_and_equivalent() -> None:
    pairs = [([window(at, 20)], [window(50 + at, 20, rate=1080)]) for at in range(8)]
    for budget in (None, 8):
        verdict = judge_rounds(pairs, budget=budget)
        assert (verdict.outcome, verdict.design, verdict.values) == (BETTER, Design.ROUNDS, (8, 8))
    same = judge_rounds([([window(at, 20)], [window(50 + at, 20)]) for at in range(8)], budget=8)
    assert same.outcome is EQUIVALENT
    assert "within 3%" in verdict_line(same)
    assert brief(same) == ("≈", "")
    pairs = [([window(at, 20)], [window(50 + at, 20, deviation=0.2)]) for at in range(6)]
    verdict = judge_rounds(pairs, budget=6)
    wider = judge_rounds(pairs, budget=6, planned=PlannedComparisons(margin=0.2))
    assert (verdict.outcome, wider.outcome) == (INCONCLUSIVE, EQUIVALENT)
    assert "within 20%" in verdict_line(wider)
    assert [effect_on(each, "p99").margin for each in (verdict, wider)] == [0.1, 0.2]
    verdict = judge_rounds([([window(at, 20)], [window(50 + at, 20, rate=3000)]) for at in range(2)])
    assert (verdict.outcome, verdict.design) == (BETTER, Design.ROUNDS)


def test_runs_of_one_visit_are_one_repetition_and_spread_is_pooled() -> None:
    before, after = runs(2, 1), runs(2, 10, rate=10_000.0)
    others = [runs(2, seed, rate=rate) for seed, rate in ((20, 500.0), (30, 2000.0), (40, 4000.0), (50, 700.0))]
    verdict = judge_runs(before, after, others=others)
    assert (verdict.outcome, verdict.values) == (BETTER, (2, 2))
    rate = effect_on(verdict, "rate")
    assert rate.low is not None and rate.low > 8
    assert verdict_line(verdict).endswith("n = 2 vs 2")
    # Runs without a set-up between them share a restart: four of them do not make it four repetitions.
    few = judge_runs(runs(2, 1), runs(2, 10, rate=1200.0))
    visits = [[window(seed + at, 20, rate=rate) for at in range(4)] for seed, rate in ((1, 1000.0), (20, 1200.0))]
    many = judge_runs([visits[0]], [visits[1]])
    assert few.values == (2, 2)
    assert (many.outcome, many.values) == (INCONCLUSIVE, (1, 1))


def test_repeated_runs_have_wider_intervals_than_runs_that_are_judged_once() -> None:
    few, many = ((runs(number, 1), runs(number, 20, rate=1100.0)) for number in (3, 8))
    growth = []
    for sides in (few, many):
        once, repeated = (effect_on(judge(*sides), "rate") for judge in (judge_runs, judge_repeated_runs))
        assert repeated.low < once.low and once.high < repeated.high
        assert (repeated.change, repeated.level) == (once.change, once.level)
        growth.append((repeated.high - repeated.low) / (once.high - once.low))
    assert growth[0] > 1.2 and growth[1] > 1.2
