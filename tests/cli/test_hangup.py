"""Hangup of the terminal: with `--on-hangup stop` the run ends at once, with `continue` when it completes."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from cockpit.model import events as ev
from cockpit.recording.reader import Recording
from tests.cli.terminals import ForkedCommand, cockpit_on_terminal, wait_for_responses

RECORDING = Path(__file__).parents[1] / "recordings" / "spare-servers.cockpit"


def run_end(file: Path) -> tuple[str, int]:
    """Return the end reason and completed requests of the only run; check that the recording was closed."""
    with Recording(file) as recording:
        assert recording.ended and not recording.damage
        events = list(recording.events())
    (end,) = [event for event in events if isinstance(event, ev.RunEnded)]
    return end.reason, sum(event.completed for event in events if isinstance(event, ev.Tick))


@pytest.mark.parametrize("controlling", [True, False], ids=["SIGHUP", "no SIGHUP"])
@pytest.mark.parametrize("hangup", ["stop", "continue"])
def test_hangup_during_run(url: str, tmp_path: Path, hangup: str, controlling: bool) -> None:
    file = tmp_path / "session.cockpit"
    stops = hangup == "stop"
    flags = ("-q", "100", "--on-hangup", hangup, "--record", file, *(("-z", "10m") if stops else ("-n", "200")))
    with cockpit_on_terminal("run", url, *flags, controlling=controlling) as screen:
        screen.until(b"req/s")
        screen.close()
        code = screen.end()
    reason, done = run_end(file)
    assert (code, reason) == ((130, "stopped") if stops else (0, "completed"))
    assert stops or done == 200


def test_run_after_sighup_restores_terminal_and_stops_on_sigterm(url: str, tmp_path: Path) -> None:
    file = tmp_path / "session.cockpit"
    flags = ("-q", "100", "-z", "10m", "--on-hangup", "continue", "--record", file)
    with cockpit_on_terminal("run", url, *flags) as screen:
        screen.until(b"req/s")
        os.kill(screen.process.pid, signal.SIGHUP)
        screen.until(b"\x1b[?1004l")
        assert screen.shown.index(b"\x1b[?1049h") < screen.shown.index(b"\x1b[?1049l")
        screen.close()
        os.kill(screen.process.pid, signal.SIGTERM)
        assert screen.end() == 130
    assert run_end(file)[0] == "stopped"


def test_repeated_hangup_keeps_summary_and_recording(url: str, tmp_path: Path) -> None:
    file, output = tmp_path / "s.cockpit", tmp_path / "summary"
    flags = ("-z", "10m", "--no-tui", "--record", file)
    with cockpit_on_terminal("run", url, *flags, out=output) as screen:
        assert isinstance(screen.process, ForkedCommand)
        wait_for_responses(file, screen.process)
        screen.close()
        for _ in range(20):
            with contextlib.suppress(ProcessLookupError):
                os.kill(screen.process.pid, signal.SIGHUP)
        assert screen.end() == 130
    assert "0 failed" in output.read_text()
    assert run_end(file)[0] == "stopped"


@pytest.mark.parametrize(("arguments", "shown"), [((), b"profiles"), (("replay", RECORDING), b"REPLAY")])
def test_start_screen_and_replay_exit_on_hangup(arguments: tuple[str | Path, ...], shown: bytes) -> None:
    with cockpit_on_terminal(*arguments, controlling=False) as screen:
        screen.until(shown)
        screen.close()
        assert screen.end() == 130
