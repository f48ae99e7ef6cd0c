"""Capacity search of a live session: levels, order of events, conclusion from the recording, refusals."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.analysis.capacity.result import capacity_result
from cockpit.analysis.capacity.search import Step
from cockpit.analysis.words.capacity import capacity_words, progress_words
from cockpit.analysis.words.timeline import segment_label
from cockpit.model import events as ev
from cockpit.model.capacity import CapacityOutcome
from cockpit.model.errors import ChangeRefused, UsageError
from cockpit.model.fold.fold import fold_all
from cockpit.model.load.plan import PathList
from cockpit.model.state import State
from cockpit.session import capacity as session_capacity
from cockpit.session.controls import LoadPhase
from tests.session.sessions import Live, do, live_session, until


@pytest.fixture
async def live(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Live]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with live_session(url, tmp_path) as live:
        yield live


def steps(monkeypatch: pytest.MonkeyPatch, *rates: float, end: CapacityOutcome = "found", seconds: float = 0.3) -> None:
    """Let the search run levels of the given rates, then end."""

    def step(levels: tuple[object, ...], aim: object, spent: float) -> Step | CapacityOutcome:
        return Step(rates[len(levels)], 0.1, seconds) if len(levels) < len(rates) else end

    monkeypatch.setattr(session_capacity, "next_step", step)


async def test_search_runs_levels_in_run_of_its_own(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    session, source = live
    steps(monkeypatch, 50.0, 100.0)
    events: list[ev.AnyEvent] = []
    session._listen = events.extend
    await source.capacity.run("p99 < 20s, errors < 50%")
    state = await until(session, lambda state: bool(state.capacities) and state.capacities[0].ended is not None)
    result = capacity_result(state, state.capacities[0])
    assert [(level.rate, level.holds) for level in result.levels] == [(50, True), (100, True)]
    assert result.outcome == "found" and not source.load.running
    assert [segment_label(s) for s in state.segments] == [
        "baseline",
        "search",
        "level 1",
        *["between levels", "level 2"],
        "between levels",
    ]
    assert not [marker for marker in state.markers if marker.kind == "load"], "levels are no changes by the user"
    assert source.load.plan.rate == 20.0, "the next run has the rate of the plan"
    assert capacity_words(capacity_result(fold_all(events, State()), state.capacities[0])) == capacity_words(result)


async def test_search_is_stopped_by_key(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    session, source = live
    steps(monkeypatch, 50.0, seconds=600.0)
    search = asyncio.ensure_future(do(session, "capacity", "p99 < 20s"))
    state = await until(session, lambda state: bool(state.capacities) and bool(state.capacities[0].levels))
    assert source.controls.status.phase is LoadPhase.CAPACITY
    assert "level 1: 50/s" in progress_words(state, state.capacities[0], state.t)
    for change in (source.load.change, lambda more: source.load.set_plan(source.load.plan)):
        with pytest.raises(UsageError, match="a capacity search sets the load"):
            change(True)
    with pytest.raises(UsageError, match="a capacity search sets the load"):
        await source.tuning.apply({"Level": "7"})
    with pytest.raises(ChangeRefused, match="stop the load first"):
        await source.capacity.run("p99 < 20s")
    await do(session, "capacity")
    await search
    source.capacity.longest = 40.0
    (action,) = [action for action in source.controls.actions if action.name == "capacity"]
    assert action.prompt.endswith("within these limits, in at most 40 s")
    state = await until(session, lambda state: state.capacities[0].ended is not None)
    assert capacity_result(state, state.capacities[0]).outcome == "stopped"
    assert not source.load.running and source.controls.status.phase is LoadPhase.IDLE


async def test_hopeless_level_ends_early_and_closing_ends_search(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    session, source = live
    steps(monkeypatch, 60.0, 1.0, seconds=600.0)
    monkeypatch.setattr(session_capacity, "_FIRST", 0.5)
    search = asyncio.ensure_future(source.capacity.run("p99 < 0.001ms, errors < 50%"))
    state = await until(session, lambda state: bool(state.capacities) and len(state.capacities[0].levels) == 2)
    [level] = capacity_result(state, state.capacities[0]).levels
    assert not level.holds and level.decisive == "p99 < 0.001ms" and level.exceeding >= 30
    await source.close()
    await search
    assert session.state.capacities[0].ended is not None


async def test_unsuitable_searches_are_refused(live: Live) -> None:
    _, source = live
    with pytest.raises(UsageError, match="invalid threshold"):
        await source.capacity.run("fast")
    assert session_capacity.searchable(replace(source.load.plan, rate=5.0, ramp_to=9.0, duration=60.0)).ramp_to is None
    source.load.plan = replace(source.load.plan, paths=PathList(listed=("/",), order="once"))
    with pytest.raises(UsageError, match="a load of any length"):
        await source.capacity.run("p99 < 1s")
