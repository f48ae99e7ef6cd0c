"""The JSON of a verdict agrees with its text, and its effects with the verdict, for any comparison."""

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
from cockpit.analysis.windows import DiscardReason, Window
from cockpit.analysis.words import amount_words, brief, metric_words, verdict_line, verdict_words
from cockpit.model.state import Segment
from cockpit.report.verdicts import verdict_json
from tests.analysis.synthetic import OPEN, PLAN, window

SPOILED = ("altered", "failed", "partial", "saturated", "lost", "other load", "growing", "another load")


def spoil(source: Window, flaw: str) -> Window:
    """Add a flaw to a window."""
    segment = Segment(number=1, run=1, plan=source.plan, label="x", start=source.start, last=source.end, end=source.end)
    match flaw:
        case "altered":
            return replace(source, segments=(replace(segment, altered=True),))
        case "failed":
            return replace(source, segments=(replace(segment, reason="failed", detail="no\x1b route"),))
        case "partial":
            return replace(source, segments=(replace(segment, partial="worker 1 lost"),))
        case "saturated":
            kept = tuple(second for at, second in enumerate(source.seconds) if at % 4)
            return replace(
                source,
                seconds=kept,
                saturated=source.seconds[::4],
                flawed={DiscardReason.SATURATED: len(source.seconds[::4])},
            )
        case "lost":
            return replace(source, unread={"web1": len(source.seconds)})
        case "other load":
            points = tuple(replace(point, other=60.0) for point in source.hosts["web1"])
            return replace(source, hosts={"web1": points})
        case "growing":
            return replace(source, growing=True)
        case _:
            return replace(source, plan=replace(source.plan, timeout=7.0))


@st.composite
def sides(draw: st.DrawFn, plan: object) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Draw the parameters of one side's windows, and their flaws."""
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
    (before, before_flaws), (after, after_flaws) = draw(sides(plan)), draw(sides(plan))
    design = draw(st.sampled_from(["switch", "runs", "rounds", "single"]))
    seconds = draw(st.sampled_from([8, 24, 45] if design == "switch" else [15, 24]))

    def make(values: dict[str, Any], spoiled: tuple[str, ...], seed: int) -> Window:
        found = window(seed, seconds, **values)
        for flaw in spoiled:
            found = spoil(found, flaw)
        return found

    number = draw(st.integers(1, 5))
    befores, afters = (
        [make(*side, seed + at) for at in range(number)]
        for side, seed in (((before, before_flaws), 1), ((after, after_flaws), 50))
    )
    label = draw(st.sampled_from(["", "A KeepAlive Off → On"]))
    match design:
        case "switch":
            return judge_switch(befores[0], afters[0], label, draw(st.booleans()))
        case "single":
            return judge_single_runs(befores[0], afters[0], label, draw(st.booleans()))
        case "runs":
            return judge_runs([[single] for single in befores], [[single] for single in afters], label)
        case _:
            return judge_rounds([([a], [b]) for a, b in zip(befores, afters, strict=True)], label, budget=8)


@settings(max_examples=60, deadline=None)
@given(verdicts())
def test_json_and_text_agree(verdict: Verdict) -> None:
    found = msgspec.json.decode(msgspec.json.encode(verdict_json(verdict)))
    text = verdict_line(verdict)
    assert found["text"] == text
    assert verdict_words(verdict).startswith(found["outcome"])
    outcomes = {effect["outcome"] for effect in found["effects"]}
    if found["outcome"] == Outcome.INVALID:
        assert found["objection"]["cause"] and found["objection"]["text"] in text
        assert outcomes <= {Outcome.INVALID}
    else:
        assert found["objection"] is None
        assert found["outcome"] in outcomes or (not outcomes and found["outcome"] == Outcome.INCONCLUSIVE)
    assert found["needs"] is None or found["outcome"] == Outcome.INCONCLUSIVE


@settings(max_examples=60, deadline=None)
@given(verdicts())
def test_effect_outcomes_match_intervals_and_text(verdict: Verdict) -> None:
    text = verdict_line(verdict)
    for effect, effect_json in zip(verdict.effects, verdict_json(verdict).effects, strict=True):
        low = -math.inf if effect_json.low is None else effect_json.low
        high = math.inf if effect_json.high is None else effect_json.high
        assert (effect_json.outcome is Outcome.INVALID) == bool(effect_json.objection)
        if effect_json.outcome in DIFFERENT:
            assert low > 0 or high < 0
            assert (low > 0) == ((effect_json.outcome is Outcome.BETTER) == more_is_better(effect_json.name))
            assert f"{metric_words(effect_json.name)} {amount_words(effect)}" in text
        if effect_json.outcome is Outcome.EQUIVALENT:
            assert -effect_json.margin < low and high < effect_json.margin
        assert effect.likely is None or effect_json.outcome is Outcome.INCONCLUSIVE
    role = {Outcome.BETTER: "good", Outcome.WORSE: "bad"}.get(verdict.outcome, "")
    assert brief(verdict)[1] == role
