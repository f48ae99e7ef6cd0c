"""From sessions to a study's result: what counts, what is together, what is compared, and how it is told."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from cockpit.model.state import State
from cockpit.report.study import DETAILS, study_markdown, study_text
from cockpit.report.study_json import study_json
from cockpit.study.results import StudyResult, collect, steps_done
from tests.study.sessions import SECONDS, STUDY, session

RATES = {"few": 1000.0, "more": 1200.0}


def result_of(*states: State) -> StudyResult:
    found = collect(states, "small")
    assert found is not None
    return found


def test_the_first_runs_are_left_out_and_the_rest_is_one() -> None:
    result = result_of(session(STUDY, [0, 1, 2, 3], RATES))
    few, more = result.cells
    assert [run.counted for run in few.runs] == [False, True, True] * 2
    assert few.total is not None and more.total is not None
    assert few.total.seconds == pytest.approx(4 * SECONDS)
    assert few.total.counts.completed == 4 * SECONDS * 1000
    assert (few.total.rate, more.total.rate) == (pytest.approx(1000), pytest.approx(1200))
    # Half as fast is twice as late: none of that is in it.
    assert few.total.counts.service.max == pytest.approx(0.020, rel=0.01)
    assert (result.done, result.steps, result.steady) == (4, 4, True)


def test_another_target_does_not_make_arms_incomparable() -> None:
    (verdict,) = result_of(session(STUDY, [0, 1, 2, 3], RATES)).verdicts
    assert verdict.verdict.outcome == "better", verdict.verdict.objection
    assert verdict.verdict.label == "more vs few"


def test_a_session_that_was_cut_short_and_one_that_went_on() -> None:
    first = session(STUDY, [0], RATES, cut=1)
    assert steps_done([first], STUDY) == {0}
    result = result_of(first, session(STUDY, [1, 2, 3], RATES))
    few, more = result.cells
    assert [run.session for run in few.counted] == [1, 1, 2, 2]
    assert [run.session for run in more.counted] == [2] * 4
    # The one whole run of the step that was cut short is there, and not counted.
    assert [run.session for run in more.left_out] == [1, 2, 2]
    assert result.done == 4 and all(cell.whole for cell in result.cells)
    assert not result_of(first).cells[0].whole


def test_sessions_of_another_plan_do_not_count() -> None:
    other = replace(STUDY, repeats=3)
    states = [session(other, [0, 1], RATES), session(STUDY, [0], RATES)]
    assert steps_done(states, STUDY) == {0}
    assert result_of(*states).done == 1


def test_what_did_not_settle_is_marked() -> None:
    result = result_of(session(STUDY, [0, 1, 2, 3], {"few": 1000.0, "more": 6000.0}))
    assert not result.steady
    assert "more: req/s (3k) 6k 6k · (3k) 6k 6k  not steady" in study_text(result)


def test_text_and_markdown() -> None:
    result = result_of(session(STUDY, [0, 1, 2, 3], RATES))
    text = study_text(result)
    assert text.splitlines()[0].startswith("study small (full) · ")
    row = next(line for line in text.splitlines() if line.startswith("  few "))
    assert row.split() == ["few", "4+2", "1k", "20", "20", "20", "0", "5"]
    assert "atime, few: ·[31m10:00 → 10:05" in text
    assert "few: 6000 of 12000 replies of another length, no failure" in text
    assert "\x1b" not in text + study_markdown(result)
    assert "| few | 4+2 | 1k | 20 | 20 | 20 | 0 | 5 |" in study_markdown(result)
    assert "more vs few: better: rate +20%" in text
    told, _, details = study_markdown(result).partition(DETAILS)
    assert "- more vs few: better: rate +20%" in told and "replies of another length" not in told
    assert "- few: 6000 of 12000 replies of another length, no failure" in details


def test_json() -> None:
    result = result_of(session(STUDY, [0, 1, 2, 3], RATES))
    told = json.loads(study_json(result))
    assert [cell["figures"]["rate"] for cell in told["cells"]] == [pytest.approx(1000), pytest.approx(1200)]
    assert told["cells"][0]["runs"][1]["looks"] == {"hits": ["2", "7"], "atime": ["\x1b[31m10:00", "10:05"]}
    assert told["verdicts"][0]["verdict"]["outcome"] == "better"


def test_without_a_study_there_is_no_result() -> None:
    assert collect([State()], "x") is None
