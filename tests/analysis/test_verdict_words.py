"""Words of verdicts, effects and intervals."""

from __future__ import annotations

import pytest

from cockpit.analysis.outcome import Effect, Outcome
from cockpit.analysis.verdict import judge_runs, judge_switch
from cockpit.analysis.words import (
    brief,
    change_words,
    effect_words,
    value_words,
)
from tests.analysis.synthetic import window
from tests.analysis.test_verdict import effect_on

BEFORE = window(1, phi=0.3)
BETTER = Outcome.BETTER


def test_single_run_has_no_interval() -> None:
    single = effect_on(judge_runs([[window(1, 20)]], [[window(2, 20)]]), "rate")
    assert (single.low, single.high, single.outcome) == (None, None, Outcome.INCONCLUSIVE)
    assert change_words(single).endswith("(no interval)")


@pytest.mark.parametrize(
    ("change", "low", "high", "words"),
    [
        (0.151, 0.12, 0.18, "+15% (+12 to +18%)"),
        (-0.021, -0.041, 0.001, "−2.1% (−4.1 to +0.1%)"),
        (8.72, 4.3, 16.8, "×9.7 (5.3–17.8)"),
        (-0.99, -0.995, -0.98, "÷100 (50–200)"),
        (0.15, 0.12, None, "≥ +12% (measured +15%)"),
        (8.7, 4.3, None, "≥ ×5.3 (measured ×9.7)"),
        (1.2, 0.8, None, "≥ +80% (measured ×2.2)"),
        (-0.4, None, -0.3, "≤ −30% (measured −40%)"),
        (-0.9, None, -0.5, "≥ ÷2.0 (measured ÷10)"),
        (0.08, -0.02, None, "≥ −2.0% (measured +8.0%)"),
        (0.1, -0.6, None, "≤ ÷2.5 (measured +10%)"),
        (0.2, -0.9999999, 1e300, "+20% (interval wider than ×1000)"),
        (-0.9, -1.0, 4e4, "÷10 (interval wider than ×1000)"),
    ],
)
def test_relative_change_words(change: float, low: float | None, high: float | None, words: str) -> None:
    effect = Effect(name="rate", outcome=BETTER, change=change, low=low, high=high)
    assert change_words(effect) == words
    assert effect_words(effect) == f"rate better {words}"


def test_absolute_difference_words() -> None:
    ends = {"change": -14.06, "low": -24.9, "high": -3.2, "before": 14.7}
    spawned = Effect(name="web1.processes.spawned_per_s", outcome=BETTER, relative=False, **ends)
    assert effect_words(spawned) == "web1 spawned/s better −14.1/s (−24.9 to −3.2/s)"
    assert value_words(spawned) == "14.7/s → –"
    errors = Effect(name="errors", outcome=Outcome.WORSE, relative=False, change=0.029, low=0.028, high=0.031)
    assert change_words(errors) == "+2.9 points (+2.8 to +3.1 points)"


@pytest.mark.parametrize(
    ("name", "before", "after", "words"),
    [
        ("p99.9", 0.0121, 0.5, "12 ms → 500 ms"),
        ("mean", 0.0121, 0.5, "12 ms → 500 ms"),
        ("service.p99", 0.0121, 0.5, "12 ms → 500 ms"),
        ("proxy.cpu.per_request", 0.0002, 0.0003, "0.20 ms → 0.30 ms"),
        ("proxy.memory.used", 512 * 2**20, 2**30, "512MB → 1.0GB"),
        ("php.cpu.busy", 40.0, 61.5, "40% → 61.5%"),
        ("web1.cpu.idle", 40.0, 61.5, "40% → 61.5%"),
        ("prod1.processes.spawned_per_s", 3.0, 14.7, "3/s → 14.7/s"),
        ("web1.processes.mean", 3.0, 14.7, "3 → 14.7"),
        ("rate", 12345.0, 900.0, "12.3k/s → 900/s"),
        ("errors", 0.01, 0.0, "1.00% → 0.00%"),
        ("completed", 12345.0, 900.0, "12.3k → 900"),
    ],
)
def test_values_have_the_unit_of_their_metric_whatever_the_host_is_called(
    name: str, before: float, after: float, words: str
) -> None:
    assert value_words(Effect(name=name, outcome=BETTER, before=before, after=after)) == words


def test_brief_verdict_has_at_most_nine_characters() -> None:
    for rate in (100.0, 500.0, 990.0, 1000.0, 1150.0, 2500.0, 90000.0):
        for slower in (0.1, 1.0, 30.0):
            assert len(brief(judge_switch(BEFORE, window(2, rate=rate, slower=slower)))[0]) <= 9
