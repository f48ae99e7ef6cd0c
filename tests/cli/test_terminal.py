"""Commands on a pseudo-terminal: exit codes, messages after the screen, the pager, and Ctrl-Z."""

from __future__ import annotations

import re
import shlex
import termios
from pathlib import Path

import pytest

from tests.cli.terminals import COCKPIT, cockpit_on_terminal, on_terminal
from tests.cli.test_hangup import RECORDING
from tests.commands import cockpit


@pytest.mark.parametrize(("key", "code"), [(b"\x03", 130), (b"\x11", 0)])
def test_exit_code_of_replay(key: bytes, code: int) -> None:
    with cockpit_on_terminal("replay", RECORDING) as screen:
        screen.until(b"REPLAY")
        screen.type(key)
        assert screen.end() == code, screen.shown


@pytest.mark.parametrize("kept", ["in the library", "in a file", "nowhere"])
def test_recording_and_replay_command_are_printed_after_screen(url: str, tmp_path: Path, kept: str) -> None:
    file = tmp_path / "my own.cockpit"
    flags = {"in the library": (), "in a file": ("--record", file), "nowhere": ("--no-record",)}[kept]
    state = {"XDG_STATE_HOME": str(tmp_path)}
    with cockpit_on_terminal("run", url, "-n", "50", *flags, environment=state) as screen:
        screen.until(b"LIVE idle")
        screen.type(b"q")
        assert screen.end() == 0
    assert b"\x1b[?1000h" in screen.shown, "the screen captures the mouse by default"
    output = screen.shown.decode()
    assert ("cockpit: recorded in" in output) is (kept != "nowhere")
    if kept == "in the library":
        name = output.partition("replay it: cockpit replay ")[2].split()[0]
        assert (tmp_path / "cockpit/recordings" / f"{name}.cockpit").is_file()
    if kept == "in a file":
        assert f"replay it: cockpit replay '{file}'" in output and file.is_file()


def test_lite_screen_in_ascii_without_mouse(url: str) -> None:
    options = ("-n", "50", "--lite", "--ascii", "--no-mouse")
    with cockpit_on_terminal("run", url, *options, size=(100, 30)) as screen:
        screen.until(b"--no-lite")
        screen.until(b"req/s")
        screen.type(b"q")
        assert screen.end() == 0
        drawn = screen.shown[: screen.shown.index(b"\x1b[?1049l")]
        assert drawn.isascii()
        assert b"lite" in drawn
        assert b"\x1b[?1000h" not in drawn, "the mouse is not captured"


@pytest.mark.parametrize("command", ["demo", "run"])
def test_screen_is_shown_with_stderr_redirected(url: str, tmp_path: Path, command: str) -> None:
    log = tmp_path / "stderr"
    arguments = ("demo",) if command == "demo" else ("run", url, "-n", "50")
    with cockpit_on_terminal(*arguments, environment={"XDG_STATE_HOME": str(tmp_path)}, err=log) as screen:
        screen.until(b"No requests sent yet" if command == "demo" else b"baseline")
        screen.type(b"\x11")
        assert screen.end() == 0
    text = log.read_text()
    assert "recorded in" in text and "\x1b" not in text
    assert f"replay it: cockpit replay {'demo' if command == 'demo' else 'url'}-" in text


def test_demo_without_terminal_is_one_error_line() -> None:
    done = cockpit("demo")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "cockpit: demo: stdin and stdout must be a terminal; redirect stderr only (2>file)\n"


PAGER = "sh -c 'grep -c . >/dev/null && echo the pager was here'"


@pytest.mark.parametrize(
    ("pager", "rows", "paged"),
    [
        (PAGER, 24, True),
        ("/nowhere/pager", 24, False),
        ("'unclosed", 24, False),
        ("", 24, False),
        (PAGER, 500, False),
    ],
)
def test_topic_that_does_not_fit_is_paged(pager: str, rows: int, paged: bool) -> None:
    with cockpit_on_terminal("help", "load", size=(80, rows), environment={"PAGER": pager, "LINES": "0"}) as terminal:
        assert terminal.end() == 0
    shown = terminal.shown.decode()
    assert ("the pager was here" in shown) == paged and ("closed load" in shown) != paged
    if not paged:
        assert "# load:" not in shown and "|---|" not in shown and "\x1b[1m" in shown, "formatted, not Markdown"
        assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines())) <= 80


def test_topic_is_plain_markdown_in_pipe() -> None:
    done = cockpit("help", "load")
    assert done.returncode == 0 and done.stdout.startswith("# load:") and "\x1b" not in done.stdout


# Terminal modes that a shell without line editing needs.
_COOKED = termios.ICANON | termios.ECHO | termios.ISIG


def test_ctrl_z_suspends_to_shell_and_fg_resumes(tmp_path: Path) -> None:
    command = shlex.join([*COCKPIT, "replay", str(RECORDING), "--paused"])
    environment = {
        "PS1": "shell> ",
        "ENV": "",
        "PYTHONPATH": str(Path(__file__).parents[2]),
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


def test_ctrl_z_without_job_control_does_not_stop() -> None:
    with cockpit_on_terminal("replay", RECORDING, "--paused") as terminal:
        terminal.until(b"throughput")
        terminal.type(b"\x1a")
        terminal.until(b"job control")
        terminal.type(b"q")
        assert terminal.end() == 0
