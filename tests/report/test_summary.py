"""A result as text and as JSON; the JSON matches its schema and agrees with the text, for any comparison."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.analysis.effects import more_is_better
from cockpit.analysis.outcome import DIFFERENT, Outcome, Verdict
from cockpit.analysis.segment_verdicts import verdicts as verdicts_of
from cockpit.analysis.verdict import judge_rounds, judge_runs, judge_single_runs, judge_switch
from cockpit.analysis.warning_words import warning_words
from cockpit.analysis.warnings import run_warnings
from cockpit.analysis.windows import DiscardReason, Window
from cockpit.analysis.words import amount_words, brief, metric_words, verdict_line, verdict_words
from cockpit.model.events import RoundsEnded
from cockpit.model.fold import fold_all
from cockpit.model.metrics import RunResult, run_result
from cockpit.model.state import Segment
from cockpit.recording.reader import Recording
from cockpit.report.encoding import to_json
from cockpit.report.host_table import control_group
from cockpit.report.run_json import RunJson, run_json
from cockpit.report.summary import summary
from cockpit.report.verdicts import verdict_json
from tests.analysis.synthetic import OPEN, PLAN, window
from tests.analysis.test_rounds import rounds_of
from tests.session.events import small_session


def result_of(run: int = 1) -> RunResult:
    result = run_result(fold_all(small_session()), run)
    assert result is not None
    return result


def test_text_has_metrics() -> None:
    text = summary(result_of())
    assert "200.0 req/s over 20.000 s" in text
    assert "4000 of 4000 sent, 0 failed" in text
    assert "200 OK 4000" in text
    assert "100%        97" in text
    assert "web1  over 19.0 s" in text
    assert "30.0" in text


def test_json_has_exactly_the_documented_fields() -> None:
    data = json.loads(to_json(run_json(result_of())))
    documented = {"completed", "failed", "rate", "duration", "bytes", "statuses", "errors", "response", "service"}
    assert documented | {"connect", "first_byte", "generator", "hosts"} < set(data)
    assert set(data["service"]) == {"p50", "p90", "p95", "p99", "p99_9", "max", "mean"}
    assert {"cpu", "lag_p99", "saturated"} < set(data["generator"])
    assert data["service"]["max"] == 0.097
    assert data["response"] == data["service"]
    assert data["connect"]["p99"] is None
    assert set(msgspec.json.schema(RunJson)["$defs"]["RunJson"]["properties"]) == set(data)
    msgspec.convert(data, RunJson)


def test_warnings_are_in_text_and_json() -> None:
    result = result_of()
    assert run_warnings(result) == []
    flawed = msgspec.structs.replace(
        result,
        saturated=15.0,
        partial="worker 1 lost",
        reason="stopped",
        counts=msgspec.structs.replace(result.counts, completed=10, abandoned=300),
    )
    text = "\n".join(map(warning_words, run_warnings(flawed)))
    parts = ("saturated for 75%", "worker 1 lost", "was stopped", "few samples (10 responses)")
    for message in (*parts, "300 requests were in flight"):
        assert message in text
    data = run_json(flawed)
    assert data.generator.saturated
    assert [warning.text for warning in data.warnings] == text.split("\n")
    assert (data.warnings[0].kind, data.warnings[0].values) == ("generator saturated", {"share": 0.75})


def test_verdicts_are_reported_with_run_that_completes_them() -> None:
    state = fold_all(small_session())
    found = verdicts_of(state)
    assert "  A MaxSpareServers 10 → 30: inconclusive: rate " in summary(result_of(2), found)
    assert "inconclusive" not in summary(result_of(1), found)
    (verdict,) = run_json(result_of(2), verdicts=found).verdicts
    assert (verdict.outcome, verdict.before, verdict.after) == ("inconclusive", (1,), (3,))
    assert run_json(result_of(1), verdicts=found).verdicts == []


def test_verdict_of_recorded_change() -> None:
    recording = Path(__file__).parent.parent / "recordings" / "spare-servers.cockpit"
    with Recording(recording) as opened:
        state = fold_all(opened.events())
    result = run_result(state, 5)
    assert result is not None
    data = json.loads(to_json(run_json(result, verdicts=verdicts_of(state))))
    (verdict,) = data["verdicts"]
    assert verdict["outcome"] == "better"
    assert verdict["design"] == "runs"
    assert verdict["effects"][0]["metric"] == "rate"
    assert verdict["effects"][0]["low"] > 0.5
    assert verdict["text"] in summary(result, verdicts_of(state))
    msgspec.convert(data, RunJson)


def test_json_of_run_has_its_rounds() -> None:
    ended = RoundsEnded(t=300.0, number=1, outcome="verdict", active="after")
    state = fold_all([*rounds_of(1.3, 5), ended])
    result = run_result(state, 1)
    assert result is not None
    data = json.loads(to_json(run_json(result, verdicts=verdicts_of(state), rounds=state.rounds)))
    (rounds,) = data["rounds"]
    assert (rounds["change"], rounds["outcome"], rounds["active"], rounds["seed"]) == ("A", "verdict", "after", 7)
    assert (rounds["budget"], rounds["complete"], len(rounds["windows"])) == (12, 5, 10)
    assert rounds["settings"] == [{"knob": "MaxSpareServers", "old": "10", "new": "30"}]
    times = {"start": 6.0, "until": 25.0, "end": 25.0}
    assert rounds["windows"][0] == {"round": 1, "side": state.rounds[0].begun.first[0], **times}
    assert (data["verdicts"][-1]["design"], data["verdicts"][-1]["outcome"]) == ("rounds", "better")


def test_control_group_of_container() -> None:
    used = {"cgroup.cpu": 46.5, "cgroup.kbmemory": 21 * 1024.0}
    limited = used | {"cgroup.quota": 50.0, "cgroup.throttled": 85.6, "cgroup.kblimit": 256 * 1024.0}
    waited = used | {"cgroup.scpu": 60.25, "cgroup.sio": 1.0, "cgroup.smem": 0.0}
    waits = "tasks waited for CPU 60.2%, I/O 1.0%, memory 0.0% of the time"
    for metrics, expected in (
        ({"cpu.user": 3.0}, []),
        (used, ["46.5% of a CPU; memory 21M"]),
        (limited, ["46.5% of a CPU; quota 50%, used up in 85.6% of the periods; memory 21M of 256M"]),
        (waited, ["46.5% of a CPU; memory 21M", waits]),
    ):
        assert [line.removeprefix("    cgroup").strip() for line in control_group(metrics)] == expected


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


@settings(max_examples=60)
@given(verdicts())
def test_json_text_intervals_and_effects_agree(verdict: Verdict) -> None:
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
