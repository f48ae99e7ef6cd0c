"""A session recorded on the lab, driven through the real screen by its keys."""

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
from cockpit.tui.status_lines import Losses, TopLine
from tests.recording.test_pages import settled
from tests.report.test_compare import recorded
from tests.session.events import small_session
from tests.tui.driving import at_rest, driven, main, text_of, until

# What to do next is another thing at the end of a recording than behind a run.
_NEXT = re.compile(r"\n +(end of the recording|segments? [\d–]+ (completed|stopped)).*(\n|$)")
RECORDING = Path(__file__).parents[1] / "recordings" / "spare-servers.cockpit"


@pytest.mark.parametrize("name", ["spare-servers", "two-hosts"])
async def test_the_screen_is_the_same_live_and_replayed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded anew in pages, at an instant come to from the end: every pane is as it was live."""
    with Recording(RECORDING.with_name(f"{name}.cockpit")) as recording:
        events = list(recording.events())
    settled(tmp_path / "s.cockpit", events, monkeypatch)
    with Recording(tmp_path / "s.cockpit") as recording:
        for share in (0.5, 0.8, 1.0):
            known = recording.following(0, -1.0, recording.end * share)
            async with driven([one.event for one in known]) as (pilot, _):
                live = panes(pilot.app)
            session = Session(ReplaySource(recording, recording.end, playing=False))
            app = CockpitApp(session)
            # The line of a replay's position comes on top.
            async with app.run_test(size=(120, 41)) as pilot:
                await until(pilot, lambda session=session: session.state.ended)
                instant = known[-1].instant
                session.source.seek(instant)  # type: ignore[attr-defined]
                await until(pilot, lambda session=session, t=instant: session.state.t == t)
                main(app).frame()
                await at_rest(pilot)
                assert panes(app) == live


def panes(app: App[object]) -> list[str]:
    """What the panes show, without the lines that say how the session is looked at and what can be done next."""
    kinds = (Throughput, Latency, Runs, VerdictStrip, HostPanes)
    return [_NEXT.sub("\n", text_of(main(app).query_one(kind))) for kind in kinds]


async def test_a_recorded_session_is_stepped_through() -> None:
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
async def test_what_is_lost_of_a_damaged_recording_is_on_the_screen(tmp_path: Path, size: tuple[int, int]) -> None:
    path = recorded(tmp_path / "s.cockpit", list(small_session()))
    database = sqlite3.connect(path)
    database.execute("UPDATE events SET body = x'00ff' WHERE seq > 5 AND seq < 15")
    database.commit()
    database.close()
    with Recording(path) as recording:
        app = CockpitApp(Session(ReplaySource(recording, recording.end, playing=False)))
        async with app.run_test(size=size) as pilot:
            losses = app.screen.query_one(Losses)
            await until(pilot, lambda: text_of(losses).count("is damaged and left out") == 2)
            assert "DAMAGED   event 6 " in text_of(losses)
            assert "and 7 more" in text_of(losses)
            assert "REPLAY END DAMAGED" in text_of(app.screen.query_one(TopLine))


async def test_nothing_is_said_of_one_that_is_whole() -> None:
    with Recording(RECORDING) as recording:
        app = CockpitApp(Session(ReplaySource(recording, recording.end, playing=False)))
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: app.session.state.ended)
            assert app.screen.query_one(Losses).size.height == 0
