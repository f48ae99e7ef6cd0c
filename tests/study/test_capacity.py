"""Studies whose runs are capacity searches: result, reports, searches without a capacity, and a live session."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.analysis.verdicts.outcome import Outcome
from cockpit.export.study_csv import runs_csv
from cockpit.model.load.plan import LoadPlan
from cockpit.model.study import Study, Variant
from cockpit.profiles.study import with_control
from cockpit.report.study import study_markdown, study_page, study_text
from cockpit.report.study_json import study_json
from cockpit.study.collecting import collect
from cockpit.study.journal import Journal
from cockpit.study.plan import StudyStep, run_duration, study_duration
from cockpit.study.runner import StudyRunner
from tests.autopilot.searches import live
from tests.load.conftest import fork_server, forked_workers
from tests.session.test_capacity import steps
from tests.study.sessions import Condition, whole_study

__all__ = ["fork_server", "forked_workers"]

STUDY = with_control(
    Study(
        plan=LoadPlan(url="http://web1/", rate=50.0, duration=60.0),
        variants=(Variant(name="few"), Variant(name="more", set=(("Level", "2"),))),
        rounds=4,
        until="p99 < 50ms",
        metrics=("capacity",),
        compare=(("few", "more"),),
    )
)


def capacity_of(step: StudyStep) -> float:
    """Return a capacity that differs by up to 2% between runs, and by 20% between variants."""
    return (240.0 if step.variant.name == "more" else 200.0) * (1 + 0.005 * (step.number * 7 % 5))


def test_capacity_is_compared_by_rounds_and_reported() -> None:
    result = whole_study(STUDY, capacity_of)
    control, found = result.verdicts
    [effect] = found.verdict.effects
    assert (found.verdict.outcome, effect.name, effect.headline) == (Outcome.BETTER, "capacity", True)
    assert effect.change == pytest.approx(0.2, abs=0.03) and effect.relative and found.closed
    assert control.verdict.outcome not in (Outcome.BETTER, Outcome.WORSE) and result.spread is not None
    text = study_text(result)
    assert (
        "better: capacity +" in text and "minimum detectable effect on capacity" in text and "load altered" not in text
    )
    cells = {cell["variant"]: cell for cell in json.loads(study_json(result))["cells"]}
    assert cells["more"]["metrics"]["capacity"] == pytest.approx(240, rel=0.02)
    assert cells["more"]["runs"][0]["capacity"]["outcome"] == "found" and list(cells["more"]["metrics"]) == ["capacity"]
    assert ",capacity,2" in runs_csv(result) and "capacity/s" in study_markdown(result)
    page = study_page(result)
    assert "capacity/s" in page and "each run is a search for the highest arrival rate with p99 &lt; 50ms" in page


def test_search_without_capacity_does_not_count() -> None:
    def busy(step: StudyStep) -> Condition:
        return "busy" if step.variant.name == "more" else ""

    result = whole_study(replace(STUDY, rounds=12), capacity_of, busy)
    assert result.complete_rounds == 4, "further rounds would not find a capacity either"
    assert [one.other for one in result.verdicts] == ["A/A control"]
    text = study_text(result)
    assert "more: no capacity found in 4 runs" in text and "(at least 120.6/s: the generator is the limit)" in text


def test_duration_is_that_of_searches() -> None:
    assert run_duration(replace(STUDY, run_time=60.0))[:2] == (20.0, 62.0)
    assert (
        study_duration(replace(STUDY, variants=(Variant(name="few"), Variant(name="more"))), (), ()).most == 4 * 2 * 182
    )


@pytest.mark.parametrize("rates", [(10.0, 400.0), (10.0,)])
async def test_run_of_study_is_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rates: tuple[float, ...]
) -> None:
    """The server answers two requests at a time in 20 ms; without a level that fails there is no capacity. On a machine
    without idle CPU no level may count."""
    steps(monkeypatch, *rates, seconds=0.3)
    async with live(tmp_path) as session:
        plan = replace(session.profile.plan, rate=50.0, max_in_flight=2)
        study = Study(plan=plan, until="p99 < 900ms", metrics=("capacity",))
        await StudyRunner(session, study, tmp_path, Journal(name="x", fingerprint=study.fingerprint)).run()
        state = await session.session.until(lambda state: state.study is not None and state.study.ended)
    result = collect([state], "x")
    assert result is not None and result.ended
    [cell] = result.cells
    assert len(cell.runs) == 1 and cell.complete
    capacity = cell.runs[0].capacity
    assert capacity is not None and [level.rate for level in capacity.levels] == list(rates)
    assert len(cell.counted) == (capacity.rate is not None)
    assert len(rates) > 1 or not cell.counted
