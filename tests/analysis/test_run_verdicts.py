"""Verdicts on rounds and on several runs per setting."""

from __future__ import annotations

import pytest

from cockpit.analysis.outcome import Design, Outcome
from cockpit.analysis.verdict import PlannedComparisons, judge_repeated_runs, judge_rounds, judge_runs
from cockpit.analysis.words import brief, verdict_line
from tests.analysis.synthetic import window
from tests.analysis.test_verdict import effect_on, runs

BETTER, EQUIVALENT, INCONCLUSIVE = Outcome.BETTER, Outcome.EQUIVALENT, Outcome.INCONCLUSIVE


def test_change_is_the_ratio_of_the_shown_values() -> None:
    """The metrics of runs are compared as ratios, so that their means are geometric ones."""
    sides = [
        [[window(at, 20, rate=rate, slower=slower)] for at, rate, slower in side]
        for side in (
            ((1, 1000, 1), (2, 3000, 4)),
            ((3, 2000, 2), (4, 2500, 3)),
        )
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
