"""A live session without a screen: runs, load adjusted during a run, notes; the recording has the same final state."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.analysis.words.timeline import marker_text
from cockpit.load.generator import boot_id
from cockpit.model.clock import Clock
from cockpit.model.errors import TargetError
from cockpit.model.fold.fold import fold_all
from cockpit.model.generators import GeneratorSample
from cockpit.model.load.plan import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.recording.reader import Recording, last_state
from cockpit.recording.writer import RecordingWriter
from cockpit.session.controls import LoadPhase, LoadStatus
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.role_styles import ROLES
from tests.session.sessions import do, running, until
from tests.tui.driving import plain


def source_of(url: str) -> LiveSource:
    return LiveSource(Profile(name="x", plan=LoadPlan(url=url, concurrency=2, duration=60.0)), Clock())


async def test_running_load_is_adjusted_and_recorded(url: str, tmp_path: Path) -> None:
    async with running(Session(source_of(url), RecordingWriter(tmp_path / "s.cockpit"))) as live:
        await do(live, "toggle")
        await until(live, lambda state: any(second.connections == 2 for second in state.seconds))
        load = live.controls.load
        assert load is not None
        load.set_plan(replace(load.plan, concurrency=7))
        state = await until(live, lambda state: any(second.connections == 7 for second in state.seconds))
        assert marker_text(state.markers[-1]) == "load c=2 → c=7"
        assert state.segments[-1].plan.concurrency == 7
        await do(live, "less")
        await until(live, lambda state: state.seconds[-1].connections == 6)
        assert live.controls.status.plan.concurrency == 6 and live.controls.status.phase is LoadPhase.RUNNING
        await until(live, lambda state: any(second.other is not None for second in state.seconds))
        await do(live, "mark", "checked")
        await do(live, "toggle")
        state = await until(live, lambda state: state.running is None)
        assert state.segments[-1].reason == "stopped"
        assert [marker.kind for marker in state.markers] == ["load", "load", "note"]
        await live.source.close()
        final = await until(live, lambda state: state.ended)
        assert live.recorder is not None and final.started is not None and final.started.boot == boot_id()
        await asyncio.to_thread(live.recorder.close)
    with Recording(tmp_path / "s.cockpit") as recording:
        events = list(recording.events())
        assert last_state(recording) == final and fold_all(events) == final
    # CPU time of the generator's machine is counted in steps of 10 ms.
    samples = [event for event in events if isinstance(event, GeneratorSample)]
    assert len(samples) >= 2 and samples[-1].own >= samples[0].own > 0


async def test_unreachable_target_starts_no_run() -> None:
    async with running(Session(source_of("http://127.0.0.1:1/"))) as session:
        with pytest.raises(TargetError):
            await do(session, "toggle")
        assert session.state.runs == 0
        # The throughput pane shows the reason until a run starts.
        status = session.controls.status
        assert isinstance(status, LoadStatus) and "127.0.0.1 port 1 is unreachable" in status.failure
        lines = Throughput().draw(DrawContext(state=session.state, status=status), 100, 16)
        assert {role for line in lines for _, role in line} <= {*ROLES, ""}
        assert f"The load did not start: {status.failure}" in " ".join(plain(lines))


async def test_form_adjusts_running_load_and_next_plan(url: str) -> None:
    source = source_of(url)
    plan = source.load.plan
    async with running(Session(source)) as session:
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
