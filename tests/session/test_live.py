"""A live session without a screen: runs, load changed while it runs, notes; what is recorded replays to the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from cockpit.model.clock import Clock
from cockpit.model.errors import TargetError, UsageError
from cockpit.model.load import LoadPlan
from cockpit.model.state import State
from cockpit.profiles.profile import Profile
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.report.selectors import last_state
from cockpit.session.controls import LoadPhase
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from tests.servers import http_server


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server() as base:
        yield f"{base}/"


@pytest.fixture
async def live(url: str, tmp_path: Path) -> AsyncIterator[Session]:
    """A session under closed load, recorded; nothing runs yet."""
    profile = Profile(name="x", plan=LoadPlan(url=url, concurrency=2, duration=60.0))
    session = Session(LiveSource(profile, Clock()), RecordingWriter(tmp_path / "s.cockpit"))
    running = asyncio.create_task(session.run())
    yield session
    await session.source.close()
    await running


async def do(session: Session, name: str, answer: str = "") -> None:
    await next(action for action in session.controls.actions if action.name == name).run(answer)


async def until(session: Session, holds: Callable[[State], bool]) -> State:
    return await asyncio.wait_for(session.until(holds), 120)


async def test_load_follows_while_it_runs(live: Session, tmp_path: Path) -> None:
    await do(live, "toggle")
    await until(live, lambda state: any(second.connections == 2 for second in state.seconds))
    await do(live, "load", "7")
    state = await until(live, lambda state: any(second.connections == 7 for second in state.seconds))
    assert state.markers[-1].text == "load c=2 → c=7"
    assert state.segments[-1].altered
    await do(live, "less")
    await until(live, lambda state: state.seconds[-1].connections == 6)
    assert live.controls.status.plan.concurrency == 6 and live.controls.status.phase is LoadPhase.RUNNING
    await do(live, "mark", "looked")
    await do(live, "toggle")
    state = await until(live, lambda state: state.running is None)
    assert state.segments[-1].reason == "stopped"
    assert [marker.kind for marker in state.markers] == ["load", "load", "note"]
    await live.source.close()
    final = await until(live, lambda state: state.ended)
    assert live.recorder is not None
    await asyncio.to_thread(live.recorder.close)
    with Recording(tmp_path / "s.cockpit") as recording:
        assert last_state(recording) == final


async def test_load_that_makes_no_sense_is_refused(live: Session) -> None:
    with pytest.raises(UsageError):
        await do(live, "load", "many")
    with pytest.raises(UsageError, match="more than 0"):
        await do(live, "load", "0")
    await do(live, "load", "5")
    assert live.controls.status.plan.concurrency == 5 and live.controls.status.phase is LoadPhase.IDLE


async def test_a_target_that_is_away_starts_nothing() -> None:
    profile = Profile(name="x", plan=LoadPlan(url="http://127.0.0.1:1/", requests=1))
    session = Session(LiveSource(profile, Clock()))
    running = asyncio.create_task(session.run())
    with pytest.raises(TargetError):
        await do(session, "toggle")
    assert session.state.runs == 0
    await session.source.close()
    await running
