"""The terminal goes away: the run and its recording end in order, at once or when the run is over, as was asked for."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from cockpit.model import events as ev
from cockpit.recording.reader import Recording
from tests.cli.terminals import on_terminal
from tests.cli.test_headless import COCKPIT
from tests.servers import http_server


def run_ended(file: Path) -> tuple[str, int]:
    """Why the recording's only run ended and how many requests it completed; the recording was closed in order."""
    with Recording(file) as recording:
        assert recording.ended and not recording.damage
        events = list(recording.events())
    ends = [event for event in events if isinstance(event, ev.RunEnded)]
    done = sum(event.completed for event in events if isinstance(event, ev.Tick))
    assert len(ends) == 1
    return ends[0].reason, done


@pytest.mark.parametrize("controlling", [True, False], ids=["told by SIGHUP", "found by itself"])
@pytest.mark.parametrize("hangup", ["stop", "continue"])
def test_a_terminal_that_goes_away_during_a_run(tmp_path: Path, hangup: str, controlling: bool) -> None:
    file = tmp_path / "session.cockpit"
    long = hangup == "stop"
    with http_server() as url:
        command = [*COCKPIT, "run", url, "-q", "100", "--on-hangup", hangup, "--record", str(file)]
        command += ["-z", "10m"] if long else ["-n", "400"]
        with on_terminal(command, controlling=controlling) as screen:
            screen.until(b"req/s")
            screen.close()
            code = screen.end()
    reason, done = run_ended(file)
    assert (code, reason) == ((130, "stopped") if long else (0, "completed"))
    assert long or done == 400


def test_a_hangup_that_is_only_told_leaves_the_terminal_as_before(tmp_path: Path) -> None:
    file = tmp_path / "session.cockpit"
    with http_server() as url:
        command = [*COCKPIT, "run", url, "-q", "100", "-n", "400", "--on-hangup", "continue", "--record", str(file)]
        with on_terminal(command) as screen:
            screen.until(b"req/s")
            os.kill(screen.process.pid, signal.SIGHUP)
            assert screen.end() == 0
            assert screen.shown.index(b"\x1b[?1049h") < screen.shown.index(b"\x1b[?1049l")
    assert run_ended(file) == ("completed", 400)


def test_what_lives_on_without_its_terminal_still_ends_by_a_signal(tmp_path: Path) -> None:
    file = tmp_path / "session.cockpit"
    with http_server() as url:
        command = [*COCKPIT, "run", url, "-q", "100", "-z", "10m", "--on-hangup", "continue", "--record", str(file)]
        with on_terminal(command) as screen:
            screen.until(b"req/s")
            os.kill(screen.process.pid, signal.SIGHUP)
            screen.until(b"\x1b[?1004l")
            screen.close()
            os.kill(screen.process.pid, signal.SIGTERM)
            assert screen.end() == 130
    assert run_ended(file)[0] == "stopped"


def test_the_start_screen_ends_with_its_terminal() -> None:
    with on_terminal(COCKPIT, controlling=False) as screen:
        screen.until(b"profiles")
        screen.close()
        assert screen.end() == 130


def test_a_replay_ends_with_its_terminal(tmp_path: Path) -> None:
    file = tmp_path / "session.cockpit"
    with (
        http_server() as url,
        on_terminal([*COCKPIT, "run", url, "-n", "100", "--no-tui", "--record", str(file)]) as run,
    ):
        assert run.end() == 0
    with on_terminal([*COCKPIT, "replay", str(file)], controlling=False) as screen:
        screen.until(b"REPLAY")
        screen.close()
        assert screen.end() == 130
