"""A live session without a screen: runs, load adjusted during a run, notes; the recording has the same final state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.model.clock import Clock
from cockpit.model.errors import TargetError
from cockpit.model.load import LoadPlan
from cockpit.model.state import State
from cockpit.profiles.profile import Profile
from cockpit.recording.reader import Recording, last_state
from cockpit.recording.writer import RecordingWriter
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
    """A recorded session with a closed load that is not yet started."""
    profile = Profile(name="x", plan=LoadPlan(url=url, concurrency=2, duration=60.0))
    session = Session(LiveSource(profile, Clock()), RecordingWriter(tmp_path / "s.cockpit"))
    running = asyncio.create_task(session.run())
    yield session
    await session.source.close()
    await running


async def do(session: Session, name: str, answer: str = "") -> None:
    await next(action for action in session.controls.actions if action.name == name).run(answer)


async def until(session: Session, condition: Callable[[State], bool]) -> State:
    return await asyncio.wait_for(session.until(condition), 120)


async def test_running_load_is_adjusted(live: Session, tmp_path: Path) -> None:
    await do(live, "toggle")
    await until(live, lambda state: any(second.connections == 2 for second in state.seconds))
    load = live.controls.load
    assert load is not None
    load.set_plan(replace(load.plan, concurrency=7))
    state = await until(live, lambda state: any(second.connections == 7 for second in state.seconds))
    assert state.markers[-1].text == "load c=2 → c=7"
    assert state.segments[-1].altered
    await do(live, "less")
    await until(live, lambda state: state.seconds[-1].connections == 6)
    assert live.controls.status.plan.concurrency == 6 and live.controls.status.phase is LoadPhase.RUNNING
    await do(live, "mark", "checked")
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


async def test_unreachable_target_starts_no_run() -> None:
    profile = Profile(name="x", plan=LoadPlan(url="http://127.0.0.1:1/", requests=1))
    session = Session(LiveSource(profile, Clock()))
    running = asyncio.create_task(session.run())
    with pytest.raises(TargetError):
        await do(session, "toggle")
    assert session.state.runs == 0
    await session.source.close()
    await running


async def test_form_adjusts_running_load_and_next_plan(url: str) -> None:
    plan = LoadPlan(url=url, concurrency=2, duration=60.0)
    source = LiveSource(Profile(name="form", plan=plan), Clock())
    session = Session(source)
    running = asyncio.create_task(session.run())
    try:
        await source.load.start()
        await until(session, lambda state: state.running is not None)
        source.load.set_plan(replace(plan, concurrency=5, method="HEAD", duration=0.5))
        state = await until(session, lambda state: any(second.connections == 5 for second in state.seconds))
        # Method and duration apply to the next run.
        assert state.segments[-1].plan.method == "GET" and source.load.active == plan
        source.load.set_plan(replace(plan, rate=50.0, duration=0.5))
        assert source.load.active == plan
        await source.load.stop()
        await source.load.start()
        state = await until(session, lambda state: state.runs == 2 and state.running is None)
        assert (state.segments[-1].plan.rate, state.segments[-1].reason) == (50.0, "completed")
    finally:
        await source.close()
        await running
