"""Changes and actions of a live session, told as events: previewed, confirmed, undone, and on the timeline."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from cockpit.model.clock import Clock
from cockpit.model.errors import ChangeRefused, ChangeUndone
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob, ServerAction
from cockpit.model.load import LoadPlan
from cockpit.model.state import State
from cockpit.profiles.profile import Profile
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from tests.servers import http_server


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server() as base:
        yield f"{base}/"


@pytest.fixture
async def live(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Session, LiveSource]]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "conf").write_text("Level=5\n")
    file = str(tmp_path / "conf")
    profile = Profile(
        name="x",
        plan=LoadPlan(url=url, concurrency=1, duration=60.0),
        hosts=(HostConfig(name="web1"),),
        knobs=(Knob(name="Level", host="web1", kind="keyvalue", file=file, key="Level", reload="true"),),
        actions=(ServerAction(name="again", host="web1", command=f"echo x >>{shlex.quote(file + '.log')}", times=3),),
    )
    source = LiveSource(profile, Clock())
    session = Session(source)
    running = asyncio.create_task(session.run())
    await until(session, lambda state: bool(state.knobs) and state.knobs["Level"].known)
    yield session, source
    await source.close()
    await running


async def until(session: Session, holds: Callable[[State], bool]) -> State:
    return await asyncio.wait_for(session.until(holds), 60)


async def test_previewed_applied_and_undone(live: tuple[Session, LiveSource], tmp_path: Path) -> None:
    session, source = live
    (preview,) = await source.tuning.preview({"Level": "7"})
    assert (preview.host, preview.cost) == ("web1", "graceful") and preview.diff.endswith("-Level=5\n+Level=7\n")
    assert (tmp_path / "conf").read_text() == "Level=5\n"
    await source.tuning.apply({"Level": "7"})
    state = await until(session, lambda state: state.changes[-1].outcome == "applied")
    change = state.changes[0]
    assert list(change.stages) == ["armed", "written", "tested", "reloaded", "in force", "confirmed"]
    assert change.diff == preview.diff and "@" in change.who
    await source.tuning.undo()
    state = await until(session, lambda state: len(state.changes) == 2 and bool(state.changes[1].outcome))
    assert state.changes[1].undoes == "A" and state.knobs["Level"].value == "5"
    assert (tmp_path / "conf").read_text() == "Level=5\n"
    with pytest.raises(ChangeRefused, match="nothing to undo"):
        await source.tuning.undo()


@pytest.mark.parametrize("kept", [True, False])
async def test_a_change_that_waits_for_a_person(live: tuple[Session, LiveSource], tmp_path: Path, kept: bool) -> None:
    session, source = live
    with pytest.raises(ChangeRefused, match="no change waits"):
        source.tuning.confirm()
    applying = asyncio.ensure_future(source.tuning.apply({"Level": "7"}, confirm_within=600))
    await until(session, lambda state: bool(state.changes) and state.changes[0].confirm_by is not None)
    if kept:
        source.tuning.confirm()
        await applying
    else:
        await source.tuning.undo()
        with pytest.raises(ChangeUndone, match="it was not confirmed; put back and reloaded"):
            await applying
    await until(session, lambda state: bool(state.changes[0].outcome))
    assert session.state.knobs["Level"].value == ("7" if kept else "5")
    assert (tmp_path / "conf").read_text() == f"Level={'7' if kept else '5'}\n"


async def test_closing_undoes_what_nobody_confirmed(live: tuple[Session, LiveSource], tmp_path: Path) -> None:
    session, source = live
    applying = asyncio.ensure_future(source.tuning.apply({"Level": "7"}, confirm_within=600))
    await until(session, lambda state: bool(state.changes) and state.changes[0].confirm_by is not None)
    await source.close()
    with pytest.raises(ChangeUndone):
        await applying
    assert (tmp_path / "conf").read_text() == "Level=5\n"


async def test_a_change_that_is_refused_is_told_too(live: tuple[Session, LiveSource]) -> None:
    session, source = live
    with pytest.raises(ChangeRefused):
        await source.tuning.apply({"Level": "7\n8"})
    state = await until(session, lambda state: bool(state.changes and state.changes[0].outcome))
    assert state.changes[0].outcome == "restored" and "one line of text" in state.changes[0].detail
    with pytest.raises(ChangeRefused, match="unknown knob 'x'; the profile has: Level"):
        await source.tuning.apply({"x": "1"})


async def test_actions(live: tuple[Session, LiveSource], tmp_path: Path) -> None:
    session, source = live
    await source.tuning.act("again")
    state = await until(session, lambda state: bool(state.actions and state.actions[0].ended))
    assert (state.actions[0].done, state.actions[0].detail) == (3, "")
    assert (tmp_path / "conf.log").read_text() == "x\nx\nx\n"
    assert [marker.kind for marker in state.markers] == ["action"]
    with pytest.raises(ChangeRefused, match="unknown action 'x'; the profile has: again"):
        await source.tuning.act("x")
