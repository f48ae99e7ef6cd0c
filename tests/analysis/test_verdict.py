"""What a verdict says, when it refuses to say anything, and in which words."""

from __future__ import annotations

import math
import re

import msgspec
import pytest

from cockpit.analysis.compare import SAME, Effect
from cockpit.analysis.verdict import Verdict, judge, judge_repeats, judge_runs
from cockpit.analysis.windows import Window
from cockpit.analysis.words import (
    brief,
    change_words,
    effect_words,
    method_lines,
    unsure,
    value_words,
    verdict_line,
    verdict_words,
)
from cockpit.model.state import Segment
from tests.analysis.synthetic import OPEN, PLAN, window

BEFORE = window(1, phi=0.3)


def told(verdict: Verdict, name: str) -> Effect:
    found = verdict.effect(name)
    assert found is not None
    return found


def with_row(of: Window, **changed: object) -> Window:
    row = Segment(number=1, run=1, plan=of.plan, label="x", start=of.start, last=of.end, end=of.end)
    return msgspec.structs.replace(of, rows=(msgspec.structs.replace(row, **changed),))


def test_better() -> None:
    verdict = judge(BEFORE, window(2, phi=0.3, rate=1150), "A MaxSpareServers 10 → 30")
    assert verdict.word == "better"
    rate = told(verdict, "rate")
    assert rate.low is not None and rate.high is not None
    assert 0.1 < rate.low < 0.15 < rate.high < 0.2
    line = verdict_line(verdict)
    assert line.startswith("A MaxSpareServers 10 → 30: better: rate +1")
    assert "web1 CPU a reply −1" in line
    assert line.endswith("12 against 12 blocks of 5 s")
    assert brief(verdict)[1] == "good"
    assert any(
        "left out" in line for line in method_lines(msgspec.structs.replace(verdict, left_out=("first 2 s", "")))
    )


def test_no_detectable_difference_says_what_could_have_been_seen() -> None:
    verdict = judge(BEFORE, window(2, phi=0.3))
    assert verdict.word == "no detectable difference"
    seen = told(verdict, "rate").seen
    assert seen is not None and 0.01 < seen < 0.05
    assert "would have been seen" in verdict_line(verdict)
    assert brief(verdict) == ("≈", "")


def test_only_the_tail_told() -> None:
    """As with the spare servers: where the headline shows nothing, the first figure that does lends its word."""
    verdict = judge(BEFORE, window(2, phi=0.3, slower=1.5))
    assert verdict.word == "worse"
    assert verdict.effects[0].word == "no detectable difference"
    assert "p99 +" in verdict_line(verdict)


def test_open_load_asks_the_tail_first_and_the_cpu_at_that_rate() -> None:
    verdict = judge(window(1, plan=OPEN), window(2, plan=OPEN, busy=30))
    assert verdict.effects[0].name == "p99"
    assert told(verdict, "web1.cpu.busy").word == "better"
    assert value_words(told(verdict, "web1.cpu.busy")).startswith("39.9 % → 29.9")


def test_different_load_is_refused_unless_asked_for() -> None:
    after = window(2, rate=1150, plan=msgspec.structs.replace(PLAN, concurrency=40))
    verdict = judge(BEFORE, after)
    assert (verdict.word, verdict.effects) == ("not comparable", ())
    assert verdict.reason == "different load: concurrency 20 → 40"
    assert brief(verdict)[0] == "≠ load"
    asked = judge(BEFORE, after, other_load=True)
    assert asked.word == "better"
    assert asked.doubts == ("the load differs: concurrency 20 → 40",)
    assert any("the load differs" in line for line in method_lines(asked))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"row": {"altered": True}}, "the load was altered after"),
        ({"row": {"reason": "failed", "detail": "no route\x1b[0m"}}, "the run after failed: no route·[0m"),
        ({"row": {"partial": "worker 1 lost"}}, "figures after are partial: worker 1 lost"),
    ],
)
def test_what_cannot_be_compared(changed: dict[str, dict[str, object]], reason: str) -> None:
    after = window(2, rate=1300)
    after = with_row(after, **changed["row"]) if "row" in changed else msgspec.structs.replace(after, **changed)
    verdict = judge(BEFORE, after)
    assert (verdict.word, verdict.reason) == ("not comparable", reason)
    # The figures are there for whoever wants them, without a word that they do not bear.
    assert told(verdict, "rate").change == pytest.approx(0.3, abs=0.05)
    assert {one.word for one in verdict.effects} == {"not comparable"}


def saturated(window: Window) -> Window:
    """The window with every fourth second saturated."""
    bound, fit = window.seconds[::4], [second for at, second in enumerate(window.seconds) if at % 4]
    return msgspec.structs.replace(window, seconds=tuple(fit), bound=bound, doubtful={"saturated": len(bound)})


def test_a_generator_that_is_saturated_where_it_is_faster_tells_the_least() -> None:
    verdict = judge(BEFORE, saturated(window(2, rate=1300)))
    assert (verdict.word, verdict.at_least) == ("better", True)
    assert verdict_words(verdict).startswith("better, at least: rate +31 % (")
    assert brief(verdict) == ("≥+31%", "good")
    assert told(verdict, "rate").change == pytest.approx(0.3, abs=0.05)
    assert verdict.doubts[0] == "generator saturated for 25 % of the time after: the server may be faster still"
    assert verdict.left_out[1] == "", "all that it counted is in"
    p99 = told(verdict, "p99")
    assert (p99.word, p99.reason[:19]) == ("not comparable", "generator saturated"), "it may be the generator's own"
    assert told(judge(BEFORE, saturated(window(2, rate=1300, slower=0.7))), "p99").word == "better"
    worse = judge(saturated(window(1, rate=1300)), window(2))
    assert (worse.word, worse.at_least, brief(worse)[0]) == ("worse", True, "≤−23%")


def test_a_faster_side_that_is_saturated_and_too_short_is_told_to_be_too_short() -> None:
    """More time helps, so that is what must be said."""
    short = saturated(msgspec.structs.replace(window(2, 16, rate=1300), going_on=True))
    verdict = judge(BEFORE, short)
    assert verdict.reason.startswith("too short to tell: 15 s after, needs ") and verdict.needs
    assert verdict.doubts[0] == "generator saturated for 25 % of the time after: the server may be faster still"
    slower = judge(BEFORE, saturated(window(2, 16, rate=700)))
    assert slower.reason.endswith("it measures itself") and slower.needs is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BEFORE, saturated(window(2, rate=700))),
        (BEFORE, saturated(window(2))),
        (saturated(window(1)), saturated(window(2, rate=1300))),
        (saturated(window(1)), window(2, rate=1300)),
        (window(1, plan=OPEN), saturated(window(2, plan=OPEN, slower=0.5))),
    ],
    ids=["slower", "alike", "both", "the slower one", "open load"],
)
def test_a_generator_that_is_saturated_elsewhere_measures_itself(before: Window, after: Window) -> None:
    verdict = judge(before, after)
    assert verdict.word == "not comparable"
    assert re.fullmatch(r"generator saturated for 25 % of the time (before|after): it measures itself", verdict.reason)
    assert {one.word for one in verdict.effects} == {"not comparable"}
    assert brief(verdict)[0] == "gen!"


def test_a_saturated_row_tells_the_least_too() -> None:
    before, after = [[window(at, rate=rate) for at in range(3)] for rate in (1000, 1300)]
    bound = [with_row(one, saturated=30.0) for one in after]
    assert judge_runs(before, bound).at_least
    assert judge_runs(bound, before).word == "worse"
    assert judge_runs(before, [with_row(one, saturated=30.0, altered=True) for one in after]).word == "not comparable"


@pytest.mark.parametrize("read", [True, False])
def test_figures_of_a_host_that_was_lost_are_not_comparable(read: bool) -> None:
    after = window(2, rate=1150)
    points = after.hosts["web1"] if read else ()
    lost = msgspec.structs.replace(after, doubtful={"lost:web1": 20}, hosts={"web1": points})
    verdict = judge(BEFORE, lost)
    assert verdict.word == "better", "the load was counted all the same"
    cost = told(verdict, "web1.cpu.per_reply")
    assert (cost.word, cost.reason) == ("not comparable", "web1 was lost for 20 s after")
    seldom = msgspec.structs.replace(after, doubtful={"lost:web1": 2})
    assert told(judge(BEFORE, seldom), "web1.cpu.per_reply").word == "better"


def test_a_little_saturation_is_left_out_without_a_word() -> None:
    assert judge(BEFORE, msgspec.structs.replace(window(2), doubtful={"saturated": 3})).word != "not comparable"


def test_a_generator_without_a_cpu_is_told() -> None:
    waiting = window(2)
    seconds = tuple(msgspec.structs.replace(second, cpu_wait=0.4) for second in waiting.seconds)
    (doubt,) = judge(BEFORE, msgspec.structs.replace(waiting, seconds=seconds)).doubts
    assert doubt.startswith("the generator waited for a CPU 0 % and 40 % of the time")
    assert judge(BEFORE, waiting).doubts == ()


def test_not_steady() -> None:
    verdict = judge(BEFORE, window(2, drift=0.3))
    assert verdict.word == "not comparable"
    assert verdict.reason.startswith("not steady: rate rises by 2")
    assert verdict.reason.endswith("within the window after")
    assert judge(window(2, drift=-0.3), BEFORE).reason.startswith("not steady: rate falls by")


def test_a_small_trend_beside_a_large_effect_does_not_matter() -> None:
    assert judge(BEFORE, window(2, drift=0.1, rate=3000)).word == "better"


def test_too_short() -> None:
    verdict = judge(BEFORE, window(2, 13))
    assert verdict.reason == "too short to tell: 10 s after, needs 25 s"
    assert brief(verdict) == ("short", "")
    assert judge(window(1, 7), window(2)).reason == "too short to tell: 5 s before, needs 25 s"
    assert judge(window(1, 3), window(2, 3)).reason == "too short to tell: 0 s after, needs 25 s"


def test_many_errors_take_the_word() -> None:
    """A server that answers 503 quickly is not faster."""
    verdict = judge(BEFORE, window(2, rate=1500, failed=0.05))
    assert verdict.word == "worse"
    assert told(verdict, "errors").word == "worse"
    assert told(verdict, "rate").word == "not comparable"
    assert "failed before" in told(verdict, "rate").reason
    assert "points" in verdict_line(verdict)
    assert judge(window(2, failed=0.05), BEFORE).word == "not comparable"


def test_as_many_errors_on_both_sides_do_not() -> None:
    verdict = judge(window(1, failed=0.05), window(2, rate=1200, failed=0.05))
    assert verdict.word == "better"
    assert told(verdict, "errors").word == "no detectable difference"


def test_so_far() -> None:
    after = window(2, 60, phi=0.3, deviation=0.08)

    def look(seconds: int) -> Verdict:
        growing = msgspec.structs.replace(after, seconds=after.seconds[:seconds], going_on=True)
        return judge(window(1, 60, phi=0.3, deviation=0.08), growing)

    early, later = look(12), look(40)
    assert early.so_far and later.so_far
    assert early.reason.startswith("too short to tell: 10 s after")
    assert early.needs is not None and early.needs >= 10
    assert verdict_line(early).startswith("so far not comparable")
    assert later.needs is not None and later.needs > 0
    assert f"{math.ceil(later.needs)} s more to see 5 %" in verdict_line(later)


def test_waiting_does_not_help_where_what_was_before_is_too_short() -> None:
    after = msgspec.structs.replace(window(2, 60), going_on=True)
    verdict = judge(window(1, 12), after)
    assert verdict.needs == math.inf
    assert "too short to see more" in verdict_line(verdict)


def test_a_host_that_was_not_read_is_not_judged() -> None:
    after = msgspec.structs.replace(window(2), hosts={"web1": ()}, doubtful={"lost:web1": 60})
    verdict = judge(BEFORE, after)
    assert told(verdict, "web1.cpu.per_reply").reason == "web1 was lost for 60 s after"
    assert verdict.doubts == ("web1 was not read for 60 s",)


def test_repeats_say_how_far_the_ground_moved() -> None:
    pairs = [(window(1, 40), window(2, 40, rate=1050)), (window(3, 40, rate=1100), window(4, 40, rate=1155))]
    verdict = judge_repeats(pairs)
    assert verdict.word == "not comparable"
    assert "by itself between its repeats" in verdict.reason
    assert verdict.drift == pytest.approx(0.1, abs=0.03)
    assert any("moved by +" in line for line in method_lines(verdict))
    larger = [(pairs[0][0], window(2, 40, rate=1400)), (pairs[1][0], window(4, 40, rate=1540))]
    assert judge_repeats(larger).word == "better"


def test_repeats_too_short() -> None:
    verdict = judge_repeats([(window(1, 7), window(2, 7)), (window(3, 7), window(4, 7))])
    assert verdict.reason == "too short to tell: each window needs 10 s, all together 25 s a side"


@pytest.mark.parametrize(
    ("change", "low", "high", "words"),
    [
        (0.151, 0.12, 0.18, "+15 % (+12 to +18 %)"),
        (-0.021, -0.041, 0.001, "−2.1 % (−4.1 to +0.1 %)"),
        (8.72, 4.3, 16.8, "×9.7 (5.3 to 17.8)"),
        (-0.99, -0.995, -0.98, "÷100 (50 to 200)"),
    ],
)
def test_changes_in_words(change: float, low: float, high: float, words: str) -> None:
    effect = Effect(name="rate", word="better", change=change, low=low, high=high)
    assert change_words(effect) == words
    assert effect_words(effect) == f"rate better {words}"


def test_differences_in_words() -> None:
    births = Effect(
        name="web1.processes.births_per_s",
        word="better",
        relative=False,
        change=-14.06,
        low=-24.9,
        high=-3.2,
        before=14.7,
    )
    assert effect_words(births) == "web1 births better −14.1/s (−24.9 to −3.2/s)"
    assert value_words(births) == "14.7/s → –"
    errors = Effect(name="errors", word="worse", relative=False, change=0.029, low=0.028, high=0.031)
    assert change_words(errors) == "+2.9 points (+2.8 to +3.1 points)"


def test_a_brief_word_is_short() -> None:
    for rate in (100.0, 500.0, 990.0, 1000.0, 1150.0, 2500.0, 90000.0):
        for slower in (0.1, 1.0, 30.0):
            assert len(brief(judge(BEFORE, window(2, rate=rate, slower=slower)))[0]) <= 9


def test_an_interval_that_leaves_out_zero_is_not_called_no_difference() -> None:
    """One figure of several may lean to a side by chance: its own interval shows that, the verdict does not call it."""
    leaning = Effect(name="rate", word=SAME, headline=True, change=0.48, low=0.014, high=0.98, seen=0.9)
    level = Effect(name="p99", word=SAME, change=0.02, low=-0.1, high=0.13)
    sided = Effect(name="p50", word=SAME, change=-0.14, low=-0.25, high=-0.057)
    tiny = Effect(name="p50", word=SAME, change=0.004, low=0.001, high=0.008)
    assert [unsure(one) for one in (leaning, level, sided, tiny)] == [True, False, True, False]
    words = verdict_words(saying_same(leaning, sided, level))
    assert words.startswith("rate not sure: +48 % (+1.4 to +98 %)")
    assert "no detectable difference in p99" in words
    assert words.endswith("not sure of p50 −14 % (−25 to −5.7 %)")
    assert verdict_words(saying_same(level, sided)).startswith("p99 no detectable difference")


def saying_same(*effects: Effect) -> Verdict:
    return Verdict(word=SAME, effects=effects, blocks=(9, 9), length=5)


def test_what_can_be_told_is_told_where_the_headline_cannot() -> None:
    found = (
        Effect(name="p99", word="not comparable", headline=True, reason="too few values"),
        Effect(name="web1.cpu.busy", word="better", change=-0.2, low=-0.25, high=-0.15),
    )
    verdict = Verdict(word="not comparable", reason="too few values", effects=found)
    assert verdict_words(verdict) == "not comparable: too few values; but web1 CPU better −20 % (−25 to −15 %)"
    moved = msgspec.structs.replace(verdict, effects=found[::-1], reason="what was before moved by +20 % by itself")
    assert verdict_words(moved) == "not comparable: what was before moved by +20 % by itself"
