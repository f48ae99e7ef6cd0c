"""Recorded lab sessions, replayed on the real screen."""

import re
import sqlite3
from pathlib import Path

import pytest
from textual.app import App

from cockpit.recording.reader import Recording
from cockpit.session.loop import Session
from cockpit.session.replay import ReplaySource
from cockpit.tui.app import CockpitApp
from cockpit.tui.charts.latency import Latency
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.hosts.panes import HostPanes
from cockpit.tui.runs.strip_lines import VerdictStrip
from cockpit.tui.runs.table import Runs
from cockpit.tui.status_lines import DamageLines, TopLine
from tests.recording.test_pages import record_pages
from tests.report.test_compare import recorded
from tests.session.events import small_session
from tests.tui.driving import main, running_app, text_of, until, wait_idle

# The line of next steps differs between the end of a recording and the end of a run.
_STATE_LINE = re.compile(r"\n +(end of the recording|segments? [\d–]+ (completed|stopped)).*(\n|$)")
RECORDING = Path(__file__).parents[1] / "recordings" / "spare-servers.cockpit"


@pytest.mark.parametrize("name", ["spare-servers", "two-hosts"])
async def test_screen_is_identical_live_and_replayed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seek back from the end of a recording copied in pages; every pane must equal the live pane."""
    with Recording(RECORDING.with_name(f"{name}.cockpit")) as recording:
        events = list(recording.events())
    record_pages(tmp_path / "s.cockpit", events, monkeypatch)
    with Recording(tmp_path / "s.cockpit") as recording:
        for share in (0.5, 0.8, 1.0):
            known = recording.following(0, -1.0, recording.end * share)
            async with running_app([entry.event for entry in known]) as (pilot, _):
                live = panes(pilot.app)
            session = Session(ReplaySource(recording, recording.end, playing=False))
            app = CockpitApp(session)
            # A replay has one more line, the position bar.
            async with app.run_test(size=(120, 41)) as pilot:
                await until(pilot, lambda session=session: session.state.ended)
                instant = known[-1].instant
                session.source.seek(instant)  # type: ignore[attr-defined]
                await until(pilot, lambda session=session, t=instant: session.state.t == t)
                main(app).frame()
                await wait_idle(pilot)
                assert panes(app) == live


def panes(app: App[object]) -> list[str]:
    """Return the text of the panes, without the line of next steps."""
    kinds = (Throughput, Latency, Runs, VerdictStrip, HostPanes)
    return [_STATE_LINE.sub("\n", text_of(main(app).query_one(kind))) for kind in kinds]


async def test_recorded_session_is_stepped_by_keys() -> None:
    with Recording(RECORDING) as recording:
        session = Session(ReplaySource(recording, recording.end, playing=False))
        app = CockpitApp(session)
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: session.state.ended)
            runs, top = (app.screen.query_one(widget) for widget in (Runs, TopLine))
            await until(pilot, lambda: "REPLAY END" in text_of(top))
            assert [segment.number for segment in session.state.segments] == [1, 2, 3, 4, 5]
            before, after = session.state.segments[1], session.state.segments[2]
            assert after.counts.service.percentile(99) < before.counts.service.percentile(99) / 10
            await pilot.press("home")
            await until(pilot, lambda: "00:00:00" in text_of(top) and "baseline" not in text_of(runs))
            for _ in range(3):
                await pilot.press("right_square_bracket")
            await until(pilot, lambda: [marker.sign for marker in session.state.markers] == ["A"])
            await until(pilot, lambda: "again" in text_of(runs))
            assert session.state.running is None
            assert " procs " in text_of(app.screen.query_one(HostPanes))


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_losses_of_damaged_recording_are_shown(tmp_path: Path, size: tuple[int, int]) -> None:
    path = recorded(tmp_path / "s.cockpit", list(small_session()))
    database = sqlite3.connect(path)
    database.execute("UPDATE events SET body = x'00ff' WHERE seq > 5 AND seq < 25 AND seq % 2 = 0")
    database.commit()
    database.close()
    with Recording(path) as recording:
        app = CockpitApp(Session(ReplaySource(recording, recording.end, playing=False)))
        async with app.run_test(size=size) as pilot:
            losses = app.screen.query_one(DamageLines)
            await until(pilot, lambda: text_of(losses).count("is damaged and left out") == 2)
            assert "DAMAGED   1 event from 00:00:05 " in text_of(losses)
            assert "and 8 more" in text_of(losses)
            assert "REPLAY END DAMAGED" in text_of(app.screen.query_one(TopLine))


async def test_intact_recording_shows_no_losses() -> None:
    with Recording(RECORDING) as recording:
        app = CockpitApp(Session(ReplaySource(recording, recording.end, playing=False)))
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: app.session.state.ended)
            assert app.screen.query_one(DamageLines).size.height == 0
