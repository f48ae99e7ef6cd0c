"""A study on a terminal: its screen, its progress line without the screen, and a terminal that closes."""

import asyncio
from pathlib import Path

import pytest
from rich.cells import cell_len

from cockpit.session.controls import Mode
from cockpit.session.loop import Session
from cockpit.tui.study.screen import StudyApp, StudyLine
from tests.cli.terminals import cockpit_on_terminal
from tests.data import data_of
from tests.servers import http_server
from tests.study.conftest import DEADLINE, DemoStudy
from tests.waiting import until

DATA = data_of(__file__)


def steps_done(session: Session) -> int:
    return len(session.state.study.done) if session.state.study else 0


async def test_study_runs_on_screen_and_ignores_load_keys(demo_study: DemoStudy) -> None:
    demo_study.write(short='variants = ["more"]\nrounds = 1\nrequests = 40\nconcurrency = 2')
    live, runner = demo_study.in_process()
    live.source.controls.mode = Mode.STUDY
    session = live.session
    app = StudyApp(session, runner)
    async with app.run_test(size=(120, 40)) as pilot:
        line = app.screen.query_one(StudyLine)
        assert "round 1 of 1 · connecting" in str(line.render())
        await pilot.resize_terminal(80, 24)
        await pilot.press("space", "t", "plus")
        await until(lambda: app.failure is not None or steps_done(session) > 0, DEADLINE)
        assert app.failure is None
        line.refresh_words()
        assert "✓ round 1 more" in str(line.render())
        await until(lambda: app.failure is not None or runner.journal.finished, DEADLINE)
    assert app.failure is None and not app.interrupted
    assert session.state.runs == 1 and len(session.state.changes) == 2
    assert demo_study.is_original() and not demo_study.journal().touched


SHORT = 'duration = "{duration}"\nrate = 20\nrounds = 1\nvariants = ["more"]'


@pytest.mark.parametrize(
    ("hangup", "controlling", "duration", "code"),
    [("continue", True, "2s", 0), ("stop", False, "10m", 130)],
    ids=["continue, by SIGHUP", "stop, without SIGHUP"],
)
async def test_study_continues_or_stops_when_terminal_closes(
    demo_study: DemoStudy, hangup: str, controlling: bool, duration: str, code: int
) -> None:
    demo_study.write(short=SHORT.format(duration=duration))
    with cockpit_on_terminal(*demo_study.command("--on-hangup", hangup), controlling=controlling) as screen:
        reading = asyncio.create_task(asyncio.to_thread(screen.until, b"req/s"))
        await until(lambda: demo_study.has_value("7"), DEADLINE)
        await reading
        screen.close()
        assert await asyncio.to_thread(screen.process.wait, DEADLINE) == code
    assert demo_study.is_original() and not demo_study.journal().touched
    assert demo_study.journal().finished == (hangup == "continue")


COLUMNS = 50
PROFILE = DATA["profile"]


def test_no_progress_line_wraps(tmp_path: Path) -> None:
    with http_server() as url:
        profile = tmp_path / "two.toml"
        profile.write_text(PROFILE.format(url=url))
        environment = {"XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
        command = ("study", profile, "--no-tui", "--trust", "-o", tmp_path / "study")
        with cockpit_on_terminal(*command, size=(COLUMNS, 20), environment=environment) as terminal:
            assert terminal.end() == 0
    lines = [text.partition("\r\n")[0] for text in terminal.shown.decode().split("\r\x1b[K")[1:]]
    progress = [line for line in lines if line.startswith("round 1 of 1 · step")]
    assert len(progress) > 2 and any(cell_len(line) == COLUMNS - 1 for line in progress)
    assert all(cell_len(line) < COLUMNS for line in progress)
