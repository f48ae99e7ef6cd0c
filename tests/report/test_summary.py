"""A result as text and as JSON; the JSON matches its schema and agrees with the text, for any comparison."""

import json
import math
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.analysis.effects import more_is_better
from cockpit.analysis.thresholds import check_thresholds, parse_threshold
from cockpit.analysis.verdicts.other_load import OtherLoad
from cockpit.analysis.verdicts.outcome import DIFFERENT, Design, Effect, Outcome, Verdict
from cockpit.analysis.verdicts.segments import verdicts as verdicts_of
from cockpit.analysis.verdicts.verdict import judge_rounds, judge_runs, judge_single_runs, judge_switch
from cockpit.analysis.verdicts.weighing import weighed
from cockpit.analysis.warnings import run_warnings
from cockpit.analysis.words.verdicts import amount_words, brief, metric_words, verdict_line, verdict_words
from cockpit.analysis.words.warnings import warning_words
from cockpit.metrics.results import RunResult, run_result
from cockpit.metrics.units import LATENCY, number_text
from cockpit.model.events import RoundsEnded
from cockpit.model.fold.fold import fold_all
from cockpit.model.generators import WorkerLost
from cockpit.model.histogram import Histogram
from cockpit.model.tls import TlsParameters
from cockpit.recording.reader import Recording
from cockpit.report.encoding import to_json
from cockpit.report.run import run_text
from cockpit.report.run_json import RunJson, run_json
from cockpit.report.verdicts import verdict_json
from tests.analysis.synthetic import OPEN, PLAN, window
from tests.analysis.test_rounds import rounds_of
from tests.analysis.test_verdict import saturated, with_segment
from tests.session.events import small_session


def result_of(run: int = 1) -> RunResult:
    return run_result(fold_all(small_session()), run)


def test_text_and_json_have_documented_metrics() -> None:
    text = run_text(result_of())
    assert "200.0 req/s over 20.000 s" in text
    assert "4000 of 4000 sent, 0 failed" in text
    assert "200 OK 4000" in text
    assert re.search(r"\n  100% +97\n", text)
    assert "web1  over 19.0 s" in text
    assert "30.0" in text
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
        losses=(WorkerLost(t=0.0, run=1, worker=1, detail="killed"),),
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


def test_tls_handshakes_are_in_text_json_and_thresholds() -> None:
    new, old = TlsParameters("TLSv1.3", "TLS_AES", alpn="h2"), TlsParameters("TLSv1.2", "ECDHE\x1b")
    milliseconds = Histogram.of([5_000_000] * 30), Histogram.of([1_000_000] * 170)
    handshakes = {"full_handshakes": {new.key: 20, old.key: 10}, "resumed_handshakes": {new.key: 170}}
    plain = result_of()
    result = replace(
        plain, counts=replace(plain.counts, tls=milliseconds[0], tls_resumed=milliseconds[1], **handshakes)
    )
    text = run_text(result)
    assert "1.5 full handshakes/s, 8.5 resumed/s: TLSv1.3 TLS_AES, ALPN h2 95.0%; TLSv1.2 ECDHE" in text
    assert "\x1b" not in text and "handshakes" not in run_text(plain)
    assert re.search(r"\n  TLS full +5\.0 .*\n  TLS resumed +1\.0 ", text)
    data = json.loads(to_json(run_json(result)))
    first = {"version": "TLSv1.3", "cipher": "TLS_AES", "group": "", "alpn": "h2", "full": 20, "resumed": 170}
    assert data["handshakes"][0] == first
    assert (data["tls"]["p50"], data["tls_resumed"]["p50"]) == (0.005, 0.001)
    for threshold in ("tls.full == 1.5", "tls.resumed > 8", "tls.p99 < 6ms", "tls_resumed.max < 2ms"):
        assert check_thresholds([parse_threshold(threshold)], result)[0].holds


def test_verdicts_are_reported_with_run_that_completes_them() -> None:
    state = fold_all(small_session())
    found = verdicts_of(state)
    assert "  A MaxSpareServers 10 → 30: inconclusive: rate " in run_text(result_of(2), found)
    assert "inconclusive" not in run_text(result_of(1), found)
    (verdict,) = run_json(result_of(2), verdicts=found).verdicts
    assert (verdict.outcome, verdict.before, verdict.after) == ("inconclusive", (1,), (3,))
    assert run_json(result_of(1), verdicts=found).verdicts == []


def test_verdict_of_recorded_change() -> None:
    recording = Path(__file__).parent.parent / "recordings" / "spare-servers.cockpit"
    with Recording(recording) as opened:
        state = fold_all(opened.events())
    result = run_result(state, 5)
    data = json.loads(to_json(run_json(result, verdicts=verdicts_of(state))))
    (verdict,) = data["verdicts"]
    assert verdict["outcome"] == "better"
    assert verdict["design"] == "runs"
    assert verdict["effects"][0]["metric"] == "rate"
    assert verdict["effects"][0]["low"] > 0.5
    assert verdict["text"] in run_text(result, verdicts_of(state))
    msgspec.convert(data, RunJson)


def test_json_of_run_has_its_rounds() -> None:
    ended = RoundsEnded(t=300.0, number=1, outcome="verdict", active="after")
    state = fold_all([*rounds_of(1.3, 5), ended])
    result = run_result(state, 1)
    data = json.loads(to_json(run_json(result, verdicts=verdicts_of(state), state=state)))
    (rounds,) = data["rounds"]
    assert (rounds["change"], rounds["outcome"], rounds["active"], rounds["seed"]) == ("A", "verdict", "after", 7)
    assert (rounds["budget"], rounds["complete"], len(rounds["windows"])) == (12, 5, 10)
    assert rounds["settings"] == [{"knob": "MaxSpareServers", "old": "10", "new": "30"}]
    times = {"start": 6.0, "until": 25.0, "end": 25.0}
    assert rounds["windows"][0] == {"round": 1, "side": state.rounds[0].begun.first[0], **times}
    assert (data["verdicts"][-1]["design"], data["verdicts"][-1]["outcome"]) == ("rounds", "better")


FLAWED = (
    saturated(window(2, 15, rate=1300)),
    with_segment(window(2, 15), reason="failed", detail="no\x1b route"),
    with_segment(window(2, 15), losses=(WorkerLost(t=0.0, run=1, worker=1, detail="killed"),)),
    replace(window(2, 15), unread={"web1": 15}),
    replace(window(2, 15), growing=True),
    window(2, 15, other=60.0),
    window(2, 15, plan=replace(PLAN, timeout=7.0)),
)
VALUES = ({"rate": 1300.0}, {"rate": 9000.0}, {"rate": 1010.0, "slower": 1.2}, {"slower": 8.0}, {"failed": 0.05}, {})


def verdicts() -> Iterator[Verdict]:
    """Yield verdicts of all designs on sides that differ, are equal, or are flawed."""
    before = window(1, 15, other=1.0)
    for after in FLAWED:
        yield judge_switch(before, after, "A KeepAlive Off → On")
        yield judge_single_runs(before, after, load_may_differ=True)
        yield judge_runs([[before]], [[after]])
    for plan, values in product((PLAN, OPEN), VALUES):
        befores = [window(seed, 24, plan=plan) for seed in range(5)]
        afters = [window(seed + 50, 24, plan=plan, **values) for seed in range(5)]
        yield judge_switch(befores[0], afters[0])
        yield judge_single_runs(befores[0], afters[0])
        yield judge_runs([[single] for single in befores], [[single] for single in afters])
        yield judge_rounds([([one], [two]) for one, two in zip(befores, afters, strict=True)], budget=8)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("web1.access.hit_ratio", True),
        ("web1.memory.swap_free", True),
        ("web1.ram.kbavail", True),
        ("web1.memory.used", False),
        ("p99", False),
    ],
)
def test_direction_of_metrics(name: str, expected: bool) -> None:
    assert more_is_better(name) == expected


def test_invalid_effect_stays_invalid_whatever_other_load_explains() -> None:
    effect = Effect(name="rate", outcome=Outcome.INVALID, headline=True, change=0.5, low=0.4, high=0.6)
    verdict = Verdict(outcome=Outcome.WORSE, design=Design.SWITCH, effects=(effect,))
    load = OtherLoad(host="web1", before=0.1, after=0.3, slowed=(1.0, 1.3))
    assert weighed(verdict, [load], False).effects[0].outcome is Outcome.INVALID


def test_failed_limit_of_a_latency_is_not_equal_to_what_was_found() -> None:
    assert number_text(LATENCY, 0.0504, 5) == "50.4" and number_text(LATENCY, 0.0504) == "50"


@pytest.mark.parametrize(
    ("outcome", "ends", "shown"),
    [
        (Outcome.BETTER, {"high": -0.2}, "≤−20%"),
        (Outcome.WORSE, {"low": 0.2}, "≥+20%"),
        (Outcome.WORSE, {"low": 1.5}, "≥×2.5"),
    ],
)
def test_brief_bound_of_a_latency(outcome: Outcome, ends: dict[str, float], shown: str) -> None:
    effect = Effect(name="p99", outcome=outcome, headline=True, change=1.0, **ends)
    verdict = Verdict(outcome=outcome, design=Design.SWITCH, effects=(effect,), at_least=True)
    assert brief(verdict)[0] == shown


def test_json_text_intervals_and_effects_agree() -> None:
    for verdict in verdicts():
        assert_agrees(verdict)


def assert_agrees(verdict: Verdict) -> None:
    """Check that the JSON, the text and the intervals of a verdict say the same."""
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
