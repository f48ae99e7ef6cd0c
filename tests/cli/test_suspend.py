"""Ctrl-Z restores the terminal for the shell; fg redraws the whole screen."""

from __future__ import annotations

import shlex
import termios
from pathlib import Path

from tests.cli.terminals import on_terminal
from tests.cli.test_headless import COCKPIT

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "tests" / "recordings" / "spare-servers.cockpit"
# Terminal modes that a shell without line editing needs.
_COOKED = termios.ICANON | termios.ECHO | termios.ISIG


def test_ctrl_z_suspends_to_shell_and_fg_resumes(tmp_path: Path) -> None:
    command = shlex.join([*COCKPIT, "replay", str(RECORDING), "--paused"])
    environment = {
        "PS1": "shell> ",
        "ENV": "",
        "PYTHONPATH": str(ROOT),
        "XDG_STATE_HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "TEXTUAL_ANIMATIONS": "none",
    }
    with on_terminal(["/bin/sh", "-i"], environment=environment) as terminal:
        terminal.until(b"shell> ")
        terminal.type(command.encode() + b"\n")
        terminal.until(b"throughput")
        assert not termios.tcgetattr(terminal.terminal)[3] & termios.ICANON
        terminal.shown = b""
        terminal.type(b"\x1a")
        shown = terminal.until(b"shell> ")
        assert b"\x1b[?1049l" in shown and b"\x1b[?25h" in shown, "the screen is left, the text cursor is shown"
        assert b"topped" in shown
        assert termios.tcgetattr(terminal.terminal)[3] & _COOKED == _COOKED
        terminal.type(b"echo as before\n")
        terminal.until(b"\nas before")
        terminal.shown = b""
        terminal.type(b"fg\n")
        shown = terminal.until(b"throughput")
        assert b"\x1b[?1049h" in shown
        terminal.until(b"quit")
        terminal.shown = b""
        terminal.type(b"q")
        terminal.until(b"shell> ")
        terminal.type(b"exit\n")
        assert terminal.end() == 0


def test_ctrl_z_without_job_control_does_not_stop(tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    with on_terminal([*COCKPIT, "replay", str(RECORDING), "--paused"], environment=environment) as terminal:
        terminal.until(b"throughput")
        terminal.type(b"\x1a")
        terminal.until(b"job control")
        terminal.type(b"q")
        assert terminal.end() == 0
