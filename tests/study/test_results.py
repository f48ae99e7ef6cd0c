"""The result of a study from its sessions: counted runs, merging, comparisons, and output."""

import json

import pytest
from msgspec.structs import replace

from cockpit.model.fold.fold import fold_all
from cockpit.model.state import State
from cockpit.model.study import CONTROL, StudyRound
from cockpit.profiles.study import with_control
from cockpit.report.study import DETAILS, study_markdown, study_text
from cockpit.report.study_json import study_json
from cockpit.study.collecting import collect
from cockpit.study.plan import all_steps
from cockpit.study.results import StudyResult
from tests.study.sessions import SECONDS, STUDY, session

RATES = {"few": 1000.0, "more": 1200.0, CONTROL: 1000.0}


def result_of(*states: State) -> StudyResult:
    found = collect(states, "small")
    assert found is not None
    return found


def test_first_runs_are_discarded_and_others_merged() -> None:
    result = result_of(session(STUDY, [1, 2], RATES))
    few, more = result.cells
    assert [run.counted for run in few.runs] == [False, True, True] * 2
    assert few.total is not None and more.total is not None
    assert few.total.seconds == pytest.approx(4 * SECONDS)
    assert few.total.counts.completed == 4 * SECONDS * 1000
    assert (few.total.rate, more.total.rate) == (pytest.approx(1000), pytest.approx(1200))
    # Discarded runs have half the rate and twice the latency: the total excludes them.
    assert few.total.counts.service.max == pytest.approx(0.020, rel=0.01)
    assert (result.done, result.complete_rounds, result.ended) == ({0, 1, 2, 3}, 2, True)


def test_variants_with_different_targets_and_loads_are_comparable() -> None:
    few, more = STUDY.variants
    loads = replace(STUDY, variants=(few, replace(more, url="", concurrency=4, keepalive=False)))
    for study in (STUDY, loads):
        (verdict,) = result_of(session(study, [1, 2], RATES)).verdicts
        assert verdict.verdict.outcome == "better", verdict.verdict.objection
        assert verdict.verdict.label == "more vs few"


def test_interrupted_session_and_continuation_are_merged() -> None:
    first_step, cut = (step.number for step in all_steps(STUDY)[:2])
    first = session(STUDY, [1], RATES, cut=cut)
    assert result_of(first).done == {first_step}
    result = result_of(first, session(STUDY, [1, 2], RATES, done=[first_step]))
    early, late = sorted(result.cells, key=lambda cell: cell.counted[0].session)
    assert [run.session for run in early.counted] == [1, 1, 2, 2]
    assert [run.session for run in late.counted] == [2] * 4
    # The only complete run of the interrupted step is listed, and not counted.
    assert [run.session for run in late.discarded] == [1, 2, 2]
    assert result.complete_rounds == 2 and all(cell.complete for cell in result.cells)
    alone = result_of(first)
    assert alone.complete_rounds == 0 and not alone.ended


def test_sessions_of_other_plans_are_ignored() -> None:
    other = replace(STUDY, rounds=3)
    states = [session(other, [1, 2], RATES), session(STUDY, [1], RATES)]
    assert result_of(*states).done == {0, 1}
    assert collect([State()], "x") is None


def test_text_and_markdown_output() -> None:
    result = result_of(session(with_control(STUDY), [1, 2], RATES))
    text = study_text(result)
    assert text.splitlines()[0].startswith("study small (full)")
    row = next(line for line in text.splitlines() if line.startswith("  few "))
    assert row.split() == ["few", "4+2", "1k", "20", "20", "20", "0", "5"]
    assert any(line.split()[:4] == ["A/A", "control", "4+2", "1k"] for line in text.splitlines())
    assert "\n  2 of at most 2 rounds in random order, seed 1\n" in text
    assert "\n  fewer than 4 rounds: one test; the variance between runs is pooled over all cells" in text
    assert "A/A control vs few: equivalent: rate within 3%" in text
    assert "atime, few: ·[31m10:00 → 10:05" in text
    assert "few: 6000 of 12000 responses differ in length, not a failure" in text
    assert "\x1b" not in text + study_markdown(result)
    assert "| few | 4+2 | 1k | 20 | 20 | 20 | 0 | 5 |" in study_markdown(result)
    assert "more vs few: better: rate +20%" in text
    shown, _, details = study_markdown(result).partition(DETAILS)
    assert "- more vs few: better: rate +20%" in shown and "responses differ in length" not in shown
    assert "- few: 6000 of 12000 responses differ in length, not a failure" in details


def test_json_output() -> None:
    result = result_of(session(STUDY, [1, 2], RATES))
    data = json.loads(study_json(result))
    assert [cell["metrics"]["rate"] for cell in data["cells"]] == [pytest.approx(1000), pytest.approx(1200)]
    first = next(run for cell in data["cells"] for run in cell["runs"] if run["run"] == 2)
    assert first["observations"] == {"hits": ["2", "7"], "atime": ["\x1b[31m10:00", "10:05"]}
    assert data["verdicts"][0]["verdict"]["outcome"] == "better"
    assert (data["seed"], data["budget"], data["complete_rounds"], data["ended"]) == (1, 2, 2, True)
    assert [len(turn["order"]) for turn in data["rounds"]] == [2, 2]
    slow = result_of(session(STUDY, [1, 2], {name: rate / 50 for name, rate in RATES.items()}))
    cells = json.loads(study_json(slow))["cells"]
    assert [[warning["kind"] for warning in cell["warnings"]] for cell in cells] == [["few samples"]] * 2
    assert "few samples" in study_text(slow)


def test_hostile_round_with_unknown_steps_is_shown() -> None:
    steps = (("none", 7.0), ("few", 1e308))
    evil = StudyRound(t=1, round=-3, steps=steps, open=(("a", "b", None),))
    result = result_of(fold_all([evil], session(replace(STUDY, rounds=0), [1], RATES)))
    assert study_text(result) and json.loads(study_json(result))["rounds"][0]["order"] == [*map(list, steps)]
