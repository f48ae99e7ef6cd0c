"""Looking back in a live session while load, recording and state continue."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.containers import Vertical
from textual.widgets import Input, Static

from cockpit.analysis.words.timeline import marker_text
from cockpit.model.clock import Clock
from cockpit.model.errors import UsageError
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.plan import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.session.controls import Mode, PlaybackStatus
from cockpit.session.live import LiveSource
from cockpit.session.live_replay import can_look_back
from cockpit.session.loop import Session
from cockpit.tui.app import CockpitApp
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.status_lines import Position, TopLine
from cockpit.tui.tuning.screen import TuningScreen
from tests.session.sessions import do, line_knob, running
from tests.tui.driving import text_of, until
from tests.waiting import DEADLINE


def session_of(url: str, file: Path | None, **values: Any) -> Session:
    # Few requests, so that the screen is idle between two keys.
    plan = LoadPlan(url=url, rate=50.0, duration=120.0)
    source = LiveSource(Profile(name="x", plan=plan, **values), Clock())
    return can_look_back(Session(source, RecordingWriter(file) if file else None))


@pytest.fixture
async def live(url: str, tmp_path: Path) -> AsyncIterator[Session]:
    async with running(session_of(url, tmp_path / "s.cockpit")) as session:
        yield session


async def wait_until(session: Session, condition: Callable[[], bool]) -> None:
    await asyncio.wait_for(session.until(lambda _: condition()), DEADLINE)


async def test_keys_pressed_at_once_open_one_past(live: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Recording] = []

    class Opened(Recording):
        def __init__(self, file: Path) -> None:
            super().__init__(file)
            opened.append(self)

    monkeypatch.setattr("cockpit.session.live_replay.Recording", Opened)
    await do(live, "toggle")
    await wait_until(live, lambda: len(live.state.seconds) >= 3)
    await asyncio.gather(*(do(live, "back") for _ in range(3)))
    assert len(opened) == 1
    position, extent = live.controls.position, live.controls.extent
    assert position is not None and extent is not None and position <= max(0.0, extent[1] - 2)
    await do(live, "end")
    assert live.controls.mode is Mode.LIVE
    await asyncio.gather(do(live, "home"), do(live, "back"))
    await do(live, "end")
    replays = [task for task in asyncio.all_tasks() if task.get_coro().__qualname__ == "Session.run"]  # type: ignore[union-attr]
    assert live.controls.mode is Mode.LIVE and len(replays) == 1


async def test_looking_back_shows_past_while_session_continues(live: Session, tmp_path: Path) -> None:
    await do(live, "mark", "before")
    await do(live, "toggle")
    await wait_until(live, lambda: len(live.state.seconds) >= 3)
    await do(live, "home")
    assert live.controls.mode is Mode.LOOKING_BACK and isinstance(live.controls.status, PlaybackStatus)
    assert (live.controls.position, live.controls.tuning) == (0.0, None)
    assert live.shown.running is None and live.shown.t == 0.0 and live.state.running == 1
    seconds, shown = len(live.state.seconds), live.shown
    await wait_until(live, lambda: len(live.state.seconds) > seconds + 1)
    assert live.shown == shown
    extent = live.controls.extent
    assert extent is not None and extent[1] > 2
    await do(live, "next")
    await wait_until(live, lambda: [marker_text(marker) for marker in live.shown.markers] == ["before"])
    await do(live, "mark", "added later")
    await wait_until(live, lambda: [marker_text(marker) for marker in live.shown.markers] == ["before", "added later"])
    await do(live, "end")
    assert live.controls.mode is Mode.LIVE and live.state.running == 1
    assert [marker_text(marker) for marker in live.state.markers] == ["before"]
    assert [marker_text(marker) for marker in live.shown.markers] == ["before", "added later"]
    assert live.shown is live.shown and live.shown.closed_seconds is live.state.closed_seconds
    await do(live, "home")
    await do(live, "mark", "added at the start")
    await do(live, "end")
    assert [marker_text(marker) for marker in live.shown.markers] == ["added at the start", "before", "added later"]
    await do(live, "toggle")
    await live.source.close()
    await wait_until(live, lambda: live.state.ended)
    assert live.recorder is not None
    await asyncio.to_thread(live.recorder.close)
    with Recording(tmp_path / "s.cockpit") as recording:
        assert [note.text for note in recording.notes] == ["added at the start", "added later"]
        assert recording.ended and recording.damage == ""


async def test_looking_back_requires_a_recording(url: str) -> None:
    session = session_of(url, None)
    with pytest.raises(UsageError, match="looking back needs a recording"):
        await do(session, "back")
    assert session.controls.mode is Mode.LIVE


async def test_screen_looks_back(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "conf").write_text("Level=5\n")
    knob = line_knob("Level", tmp_path / "conf", reload="true")
    session = session_of(url, tmp_path / "s.cockpit", hosts=(HostConfig(name="web1"),), knobs=(knob,))
    assert isinstance(session.source, LiveSource)
    app = CockpitApp(session, autostart="toggle")
    async with app.run_test(size=(120, 40)) as pilot:
        top = app.screen.query_one(TopLine)
        await until(pilot, lambda: len(session.state.seconds) >= 2 and session.state.knobs["Level"].known)
        before = session.state.t
        await session.source.tuning.apply({"Level": "7"})
        await until(pilot, lambda: session.state.knobs["Level"].value == "7")
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.screen, TuningScreen) and shown_value(app) == "7")
        assert app.screen.query_one(Vertical).border_title == "tuning"
        await pilot.press("escape", "colon", *f"{before + 1e-6:.6f}s", "enter")
        await until(pilot, lambda: session.controls.mode is Mode.LOOKING_BACK and not session.shown.changes)
        await until(pilot, lambda: "LOOKING BACK PAUSED · End: back to live" in text_of(top))
        assert app.screen.query_one(Position).display
        # The panel shows the values active in the past.
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.screen, TuningScreen) and shown_value(app) == "5")
        assert "as it was at 00:00:0" in str(app.screen.query_one(Vertical).border_title)
        assert not app.screen.query(Input) and session.state.knobs["Level"].value == "7"
        await pilot.press("escape", "m", *"noted", "enter")
        await until(pilot, lambda: [marker_text(marker) for marker in session.shown.markers][-1:] == ["noted"])
        # With the chart cursor too.
        await pilot.press("e", "end", "escape")
        chart = app.screen.query_one(Throughput)
        await until(pilot, lambda: "▸" in text_of(chart) and session.shown is not session.state)
        await until(pilot, lambda: "LIVE " in text_of(top) and not app.screen.query_one(Position).display)
        assert session.state.running == 1


def shown_value(app: CockpitApp) -> str:
    return text_of(app.screen.query_one("KnobRow .value", Static)).strip()
