"""Hangup of the terminal: with `--on-hangup stop` the run ends at once, with `continue` when it completes."""

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


def run_end(file: Path) -> tuple[str, int]:
    """Return the end reason and completed requests of the only run; check that the recording was closed."""
    with Recording(file) as recording:
        assert recording.ended and not recording.damage
        events = list(recording.events())
    ends = [event for event in events if isinstance(event, ev.RunEnded)]
    done = sum(event.completed for event in events if isinstance(event, ev.Tick))
    assert len(ends) == 1
    return ends[0].reason, done


@pytest.mark.parametrize("controlling", [True, False], ids=["SIGHUP", "no SIGHUP"])
@pytest.mark.parametrize("hangup", ["stop", "continue"])
def test_hangup_during_run(tmp_path: Path, hangup: str, controlling: bool) -> None:
    file = tmp_path / "session.cockpit"
    stops = hangup == "stop"
    with http_server() as url:
        command = [*COCKPIT, "run", url, "-q", "100", "--on-hangup", hangup, "--record", str(file)]
        command += ["-z", "10m"] if stops else ["-n", "400"]
        with on_terminal(command, controlling=controlling) as screen:
            screen.until(b"req/s")
            screen.close()
            code = screen.end()
    reason, done = run_end(file)
    assert (code, reason) == ((130, "stopped") if stops else (0, "completed"))
    assert stops or done == 400


def test_sighup_without_hangup_restores_terminal(tmp_path: Path) -> None:
    file = tmp_path / "session.cockpit"
    with http_server() as url:
        command = [*COCKPIT, "run", url, "-q", "100", "-n", "400", "--on-hangup", "continue", "--record", str(file)]
        with on_terminal(command) as screen:
            screen.until(b"req/s")
            os.kill(screen.process.pid, signal.SIGHUP)
            assert screen.end() == 0
            assert screen.shown.index(b"\x1b[?1049h") < screen.shown.index(b"\x1b[?1049l")
    assert run_end(file) == ("completed", 400)


def test_run_after_hangup_still_stops_on_sigterm(tmp_path: Path) -> None:
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
    assert run_end(file)[0] == "stopped"


def test_start_screen_exits_on_hangup() -> None:
    with on_terminal(COCKPIT, controlling=False) as screen:
        screen.until(b"profiles")
        screen.close()
        assert screen.end() == 130


def test_replay_exits_on_hangup(tmp_path: Path) -> None:
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
