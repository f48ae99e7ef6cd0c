"""Recorded lab sessions, replayed on the real screen, and as pictures."""

import re
import sqlite3
from pathlib import Path

import pytest
from textual.app import App

from cockpit.analysis.words.timeline import marker_sign
from cockpit.recording.reader import Recording
from cockpit.session.controls import Mode
from cockpit.tui.charts.latency import Latency
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.hosts.panes import HostPanes
from cockpit.tui.runs.strip_lines import VerdictStrip
from cockpit.tui.runs.table import Runs
from cockpit.tui.status_lines import DamageLines, Position, TopLine
from tests.recording.test_pages import record_pages
from tests.report.test_compare import recorded
from tests.session.events import small_session
from tests.tui.driving import main, running_app, text_of, until, wait_idle
from tests.tui.screens import RECORDINGS, replayed_app

# The line of next steps differs between the end of a recording and the end of a run.
_STATE_LINE = re.compile(r"\n│ +(end of the recording|segments? [\d–]+ (completed|stopped)).*(\n|$)")


@pytest.mark.parametrize("name", ["spare-servers", "two-hosts"])
async def test_screen_is_the_same_live_and_replayed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seek back from the end of a recording copied in pages; every pane must equal the live pane."""
    path = tmp_path / "s.cockpit"
    with Recording(RECORDINGS / f"{name}.cockpit") as recording:
        record_pages(path, list(recording.events()), monkeypatch)
    live: dict[float, list[str]] = {}
    with Recording(path) as recording:
        for share in (0.5, 0.8, 1.0):
            known = recording.following(0, -1.0, recording.end * share)
            async with running_app([entry.event for entry in known]) as (pilot, source):
                # Only a live session shows the steps to a verdict.
                source.controls.mode = Mode.REPLAY
                main(pilot.app).frame(force=True)
                await wait_idle(pilot)
                live[known[-1].instant] = panes(pilot.app)
    # A replay has one more line, the position bar.
    async with replayed_app(path, size=(120, 41)) as (pilot, session):
        for instant, expected in live.items():
            session.source.seek(instant)  # type: ignore[attr-defined]
            await until(pilot, lambda t=instant: session.state.t == t)  # type: ignore[misc]
            main(pilot.app).frame()
            await wait_idle(pilot)
            assert panes(pilot.app) == expected


def panes(app: App[object]) -> list[str]:
    """Return the text of the panes, without the line of next steps."""
    kinds = (Throughput, Latency, Runs, VerdictStrip, HostPanes)
    return [_STATE_LINE.sub("\n", text_of(main(app).query_one(kind))) for kind in kinds]


async def test_recorded_session_is_stepped_by_keys() -> None:
    async with replayed_app(RECORDINGS / "spare-servers.cockpit") as (pilot, session):
        runs, top, losses, hosts, position = (
            main(pilot.app).query_one(kind) for kind in (Runs, TopLine, DamageLines, HostPanes, Position)
        )
        await until(pilot, lambda: "REPLAY END" in text_of(top))
        assert losses.size.height == 0
        assert [segment.number for segment in session.state.segments] == [1, 2, 3, 4, 5]
        before, after = session.state.segments[1], session.state.segments[2]
        assert after.counts.service.percentile(99) < before.counts.service.percentile(99) / 10
        await pilot.press("home")
        await until(pilot, lambda: "00:00:00" in text_of(position) and "baseline" not in text_of(runs))
        for _ in range(3):
            await pilot.press("right_square_bracket")
        await until(pilot, lambda: [marker_sign(marker) for marker in session.state.markers] == ["A"])
        await until(pilot, lambda: "again" in text_of(runs))
        assert session.state.running is None
        assert " procs " in text_of(hosts)


async def test_losses_of_damaged_recording_are_shown(tmp_path: Path) -> None:
    path = recorded(tmp_path / "s.cockpit", list(small_session()))
    database = sqlite3.connect(path)
    database.execute("UPDATE events SET body = x'00ff' WHERE seq > 5 AND seq < 25 AND seq % 2 = 0")
    database.commit()
    database.close()
    async with replayed_app(path) as (pilot, _):
        losses, top = (main(pilot.app).query_one(kind) for kind in (DamageLines, TopLine))
        for size in ((120, 40), (80, 24)):
            await pilot.resize_terminal(*size)
            await wait_idle(pilot)
            await until(pilot, lambda: text_of(losses).count("is damaged and left out") == 2)
            assert "DAMAGED   1 event from 00:00:05 " in text_of(losses)
            assert "and 8 more" in text_of(losses)
            assert "REPLAY END DAMAGED" in text_of(top)
