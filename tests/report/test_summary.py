"""The same result as text and as JSON; the JSON holds to its own schema."""

import json

import msgspec

from cockpit.analysis.doubt import doubts
from cockpit.model.figures import RunResult, run_result
from cockpit.model.fold import fold_all
from cockpit.report.machine import RunJson, as_json, json_schema, run_json
from cockpit.report.summary import summary
from tests.session.events import small_session


def result_of(run: int = 1) -> RunResult:
    result = run_result(fold_all(small_session()), run)
    assert result is not None
    return result


def test_text_holds_the_figures() -> None:
    text = summary(result_of())
    assert "200.0 req/s over 20.000 s" in text
    assert "4000 of 4000 sent, 0 failed" in text
    assert "200 OK 4000" in text
    assert "100 %        97" in text
    assert "web1  over 19.0 s" in text
    assert "30.0" in text


def test_json_has_the_promised_names_and_nothing_else() -> None:
    data = json.loads(as_json(run_json(result_of())))
    promised = (
        "completed failed rate duration bytes statuses errors response service connect first_byte generator hosts"
    )
    assert set(promised.split()) < set(data)
    assert set(data["service"]) == {"p50", "p90", "p95", "p99", "p99_9", "max", "mean"}
    assert {"cpu", "lag_p99", "saturated"} < set(data["generator"])
    assert data["service"]["max"] == 0.097
    assert data["response"] == data["service"]
    assert data["connect"]["p99"] is None
    assert set(json_schema()["$defs"]["RunJson"]["properties"]) == set(data)
    msgspec.convert(data, RunJson)


def test_doubts_are_said() -> None:
    result = result_of()
    assert doubts(result) == ()
    doubtful = msgspec.structs.replace(
        result,
        saturated=15.0,
        partial="worker 1 lost",
        reason="stopped",
        counts=msgspec.structs.replace(result.counts, completed=10, abandoned=300),
    )
    said = "\n".join(doubts(doubtful))
    for words in (
        "saturated for 75 %",
        "worker 1 lost",
        "was stopped",
        "few samples (replies: 10)",
        "300 requests were in flight",
    ):
        assert words in said
    assert run_json(doubtful).generator.saturated
