"""A result as text and as JSON; the JSON matches its schema."""

import json
from pathlib import Path

import msgspec

from cockpit.analysis.segment_verdicts import verdicts
from cockpit.analysis.warning_words import warning_words
from cockpit.analysis.warnings import run_warnings
from cockpit.model.events import RoundsEnded
from cockpit.model.fold import fold_all
from cockpit.model.metrics import RunResult, run_result
from cockpit.recording.reader import Recording
from cockpit.report.encoding import to_json
from cockpit.report.run_json import RunJson, run_json
from cockpit.report.summary import summary
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
    documented = (
        "completed failed rate duration bytes statuses errors response service connect first_byte generator hosts"
    )
    assert set(documented.split()) < set(data)
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
    for message in (
        "saturated for 75%",
        "worker 1 lost",
        "was stopped",
        "few samples (10 responses)",
        "300 requests were in flight",
    ):
        assert message in text
    data = run_json(flawed)
    assert data.generator.saturated
    assert [warning.text for warning in data.warnings] == text.split("\n")
    assert (data.warnings[0].kind, data.warnings[0].values) == ("generator saturated", {"share": 0.75})


def test_verdicts_are_reported_with_run_that_completes_them() -> None:
    state = fold_all(small_session())
    found = verdicts(state)
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
    data = json.loads(to_json(run_json(result, verdicts=verdicts(state))))
    (verdict,) = data["verdicts"]
    assert verdict["outcome"] == "better"
    assert verdict["design"] == "runs"
    assert verdict["effects"][0]["metric"] == "rate"
    assert verdict["effects"][0]["low"] > 0.5
    assert verdict["text"] in summary(result, verdicts(state))
    msgspec.convert(data, RunJson)


def test_json_of_run_has_its_rounds() -> None:
    ended = RoundsEnded(t=300.0, number=1, outcome="verdict", active="after")
    state = fold_all([*rounds_of(1.3, 5), ended])
    result = run_result(state, 1)
    assert result is not None
    data = json.loads(to_json(run_json(result, verdicts=verdicts(state), rounds=state.rounds)))
    (rounds,) = data["rounds"]
    assert (rounds["change"], rounds["outcome"], rounds["active"], rounds["seed"]) == ("A", "verdict", "after", 7)
    assert (rounds["budget"], rounds["complete"], len(rounds["windows"])) == (12, 5, 10)
    assert rounds["settings"] == [{"knob": "MaxSpareServers", "old": "10", "new": "30"}]
    assert rounds["windows"][0] == {
        "round": 1,
        "side": state.rounds[0].begun.first[0],
        "start": 6.0,
        "until": 25.0,
        "end": 25.0,
    }
    assert (data["verdicts"][-1]["design"], data["verdicts"][-1]["outcome"]) == ("rounds", "better")
