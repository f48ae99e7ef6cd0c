"""A change under load extends the current run until its verdict, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.model.errors import ChangeRolledBack
from cockpit.model.state import Extension, State
from cockpit.session import live_load
from tests.servers import http_server
from tests.session.sessions import Live, live_session, until

# Long enough for a change on a busy machine.
PLANNED = 5.0


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server() as base:
        yield f"{base}/"


@pytest.fixture
async def live(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Live]:
    """A session whose load has just started; `awaits_verdict` is always true."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(live_load, "JUDGE_EVERY", 0.2)
    monkeypatch.setattr(live_load, "awaits_verdict", lambda state, change: True)
    async with live_session(url, tmp_path, duration=PLANNED) as live:
        await live[1].load.start()
        yield live


def extension(state: State) -> Extension:
    assert state.extension is not None
    return state.extension


async def test_change_extends_run_until_verdict(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    session, source = live
    await source.tuning.apply({"Level": "7"})
    state = await until(session, lambda state: state.extension is not None and state.extension.change == "A")
    assert extension(state).awaited == "verdict"
    assert extension(state).until - extension(state).since == pytest.approx(180.0, abs=0.5)
    start = state.segments[0].start
    state = await until(session, lambda state: state.t > start + PLANNED + 1)
    assert state.running == 1
    monkeypatch.setattr(live_load, "awaits_verdict", lambda state, change: False)
    state = await until(session, lambda state: state.running is None)
    assert state.segments[-1].reason == "completed" and state.extension is None


async def test_extension_ends_at_limit_of_plan(live: Live) -> None:
    session, source = live
    source.load.plan = replace(source.load.plan, extend=7.0)
    await source.tuning.apply({"Level": "7"})
    state = await until(session, lambda state: state.extension is not None and state.extension.change == "A")
    cap = extension(state).until
    state = await until(session, lambda state: state.running is None)
    assert state.segments[-1].end is not None and state.segments[-1].end >= cap


async def test_plan_without_extension_is_not_extended(live: Live) -> None:
    session, source = live
    source.load.plan = replace(source.load.plan, extend=0.0)
    await source.tuning.apply({"Level": "7"})
    state = await until(session, lambda state: state.running is None)
    assert state.extension is None and state.segments[-1].reason == "completed"


async def test_undo_ends_extension(live: Live) -> None:
    session, source = live
    await source.tuning.apply({"Level": "7"})
    await until(session, lambda state: state.extension is not None)
    await source.tuning.undo()
    state = await until(session, lambda state: state.running is None)
    assert state.segments[-1].reason == "completed"


async def test_change_undone_before_confirmation_extends_no_run(live: Live) -> None:
    session, source = live
    with pytest.raises(ChangeRolledBack):
        applying = asyncio.ensure_future(source.tuning.apply({"Level": "7"}, confirm_within=600))
        await until(session, lambda state: bool(state.changes) and state.changes[0].confirm_by is not None)
        await source.tuning.undo()
        await applying
    await until(session, lambda state: state.running is None)


async def test_space_stops_extended_run_immediately(live: Live) -> None:
    session, source = live
    await source.tuning.apply({"Level": "7"})
    await until(session, lambda state: state.extension is not None)
    (toggle,) = (action for action in source.controls.actions if action.name == "toggle")
    await toggle.run("")
    state = await until(session, lambda state: state.running is None)
    assert state.segments[-1].reason == "stopped"


async def test_wait_for_baseline_extends_run(live: Live) -> None:
    session, source = live
    source.tuning.await_baseline(600.0)
    state = await until(session, lambda state: state.extension is not None)
    assert extension(state).awaited == "baseline"
    state = await until(session, lambda state: state.t > state.segments[0].start + PLANNED + 0.5)
    assert state.running == 1
    source.tuning.release()
    state = await until(session, lambda state: state.running is None)
    assert state.segments[-1].reason == "completed"
