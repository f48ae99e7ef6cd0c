"""The JSON of a verdict agrees with its text, and its effects with the verdict, whatever was compared."""

from __future__ import annotations

import math
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.analysis.effects import more_is_better
from cockpit.analysis.outcome import DIFFERENT, Outcome, Verdict
from cockpit.analysis.verdict import judge_rounds, judge_runs, judge_single_runs, judge_switch
from cockpit.analysis.windows import Flaw, Window
from cockpit.analysis.words import amount_words, brief, metric_words, verdict_line, verdict_words
from cockpit.model.state import Segment
from cockpit.report.verdicts import verdict_json
from tests.analysis.synthetic import OPEN, PLAN, window

SPOILED = ("altered", "failed", "partial", "saturated", "lost", "other load", "growing", "another load")


def spoil(of: Window, how: str) -> Window:
    """The window with one thing that speaks against it."""
    row = Segment(number=1, run=1, plan=of.plan, label="x", start=of.start, last=of.end, end=of.end)
    match how:
        case "altered":
            return replace(of, segments=(replace(row, altered=True),))
        case "failed":
            return replace(of, segments=(replace(row, reason="failed", detail="no\x1b route"),))
        case "partial":
            return replace(of, segments=(replace(row, partial="worker 1 lost"),))
        case "saturated":
            kept = tuple(second for at, second in enumerate(of.seconds) if at % 4)
            return replace(of, seconds=kept, bound=of.seconds[::4], flawed={Flaw.SATURATED: len(of.seconds[::4])})
        case "lost":
            return replace(of, unread={"web1": len(of.seconds)})
        case "other load":
            points = tuple(replace(point, other=60.0) for point in of.hosts["web1"])
            return replace(of, hosts={"web1": points})
        case "growing":
            return replace(of, growing=True)
        case _:
            return replace(of, plan=replace(of.plan, timeout=7.0))


@st.composite
def sides(draw: st.DrawFn, plan: object) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What one side's windows are made of, and what speaks against them."""
    chosen = {
        "rate": draw(st.sampled_from([100.0, 900.0, 1000.0, 1010.0, 1300.0, 9000.0])),
        "slower": draw(st.sampled_from([0.1, 0.9, 1.0, 1.2, 8.0])),
        "busy": draw(st.sampled_from([20.0, 40.0, 44.0])),
        "failed": draw(st.sampled_from([0.0, 0.0, 0.004, 0.05, 0.4])),
        "other": draw(st.sampled_from([None, 1.0])),
        "plan": plan,
    }
    return chosen, tuple(draw(st.lists(st.sampled_from(SPOILED), max_size=2, unique=True)))


@st.composite
def verdicts(draw: st.DrawFn) -> Verdict:
    plan = draw(st.sampled_from([PLAN, PLAN, OPEN]))
    (before, against), (after, also) = draw(sides(plan)), draw(sides(plan))
    design = draw(st.sampled_from(["switch", "runs", "rounds", "single"]))
    seconds = draw(st.sampled_from([8, 24, 45] if design == "switch" else [15, 24]))

    def made(values: dict[str, Any], spoiled: tuple[str, ...], seed: int) -> Window:
        found = window(seed, seconds, **values)
        for how in spoiled:
            found = spoil(found, how)
        return found

    number = draw(st.integers(1, 5))
    one, two = (
        [made(*side, seed + at) for at in range(number)] for side, seed in (((before, against), 1), ((after, also), 50))
    )
    label = draw(st.sampled_from(["", "A KeepAlive Off → On"]))
    match design:
        case "switch":
            return judge_switch(one[0], two[0], label, draw(st.booleans()))
        case "single":
            return judge_single_runs(one[0], two[0], label, draw(st.booleans()))
        case "runs":
            return judge_runs([[each] for each in one], [[each] for each in two], label)
        case _:
            return judge_rounds([([a], [b]) for a, b in zip(one, two, strict=True)], label, budget=8)


@settings(max_examples=60, deadline=None)
@given(verdicts())
def test_json_and_text_agree(verdict: Verdict) -> None:
    found = msgspec.json.decode(msgspec.json.encode(verdict_json(verdict)))
    text = verdict_line(verdict)
    assert found["text"] == text
    assert verdict_words(verdict).startswith(found["outcome"])
    words = {effect["outcome"] for effect in found["effects"]}
    if found["outcome"] == Outcome.INVALID:
        assert found["objection"]["cause"] and found["objection"]["text"] in text
        assert words <= {Outcome.INVALID}
    else:
        assert found["objection"] is None
        assert found["outcome"] in words or (not words and found["outcome"] == Outcome.INCONCLUSIVE)
    assert found["needs"] is None or found["outcome"] == Outcome.INCONCLUSIVE


@settings(max_examples=60, deadline=None)
@given(verdicts())
def test_words_of_effects_rest_on_their_intervals_and_stand_in_the_text(verdict: Verdict) -> None:
    text = verdict_line(verdict)
    for effect, told in zip(verdict.effects, verdict_json(verdict).effects, strict=True):
        low = -math.inf if told.low is None else told.low
        high = math.inf if told.high is None else told.high
        assert (told.outcome is Outcome.INVALID) == bool(told.objection)
        if told.outcome in DIFFERENT:
            assert low > 0 or high < 0
            assert (low > 0) == ((told.outcome is Outcome.BETTER) == more_is_better(told.name))
            assert f"{metric_words(told.name)} {amount_words(effect)}" in text
        if told.outcome is Outcome.EQUIVALENT:
            assert -told.margin < low and high < told.margin
        assert effect.likely is None or told.outcome is Outcome.INCONCLUSIVE
    role = {Outcome.BETTER: "good", Outcome.WORSE: "bad"}.get(verdict.outcome, "")
    assert brief(verdict)[1] == role
