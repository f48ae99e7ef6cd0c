"""Commands on a pseudo-terminal: exit codes, and messages after the screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminals import on_terminal
from tests.cli.test_headless import COCKPIT
from tests.commands import cockpit
from tests.servers import http_server


@pytest.mark.parametrize(("key", "code"), [(b"\x03", 130), (b"\x11", 0)])
def test_exit_code_of_replay(tmp_path: Path, key: bytes, code: int) -> None:
    with http_server() as url:
        assert cockpit("run", url, "-n", "50", "--no-tui", "--record", tmp_path / "s.cockpit").returncode == 0
    with on_terminal([*COCKPIT, "replay", str(tmp_path / "s.cockpit")]) as screen:
        screen.until(b"REPLAY")
        screen.type(key)
        assert screen.end() == code, screen.shown


@pytest.mark.parametrize("kept", ["in the library", "in a file", "nowhere"])
def test_recording_and_replay_command_are_printed_after_screen(tmp_path: Path, kept: str) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path)}
    file = tmp_path / "my own.cockpit"
    flags = {"in the library": [], "in a file": ["--record", str(file)], "nowhere": ["--no-record"]}[kept]
    with http_server() as url, on_terminal([*COCKPIT, "run", url, "-n", "50", *flags], environment=state) as screen:
        screen.until(b"LIVE idle")
        screen.type(b"q")
        assert screen.end() == 0
        while screen.read():
            pass
    assert b"\x1b[?1000h" in screen.shown, "the screen captures the mouse by default"
    output = screen.shown.decode()
    assert ("cockpit: recorded in" in output) is (kept != "nowhere")
    if kept == "in the library":
        name = output.partition("replay it: cockpit replay ")[2].split()[0]
        assert (tmp_path / "cockpit/recordings" / f"{name}.cockpit").is_file()
    if kept == "in a file":
        assert f"replay it: cockpit replay '{file}'" in output and file.is_file()


def test_replay_command_is_printed_after_demo(tmp_path: Path) -> None:
    with on_terminal([*COCKPIT, "demo"], environment={"XDG_STATE_HOME": str(tmp_path)}) as screen:
        screen.until(b"No requests sent yet")
        screen.type(b"q")
        assert screen.end() == 0
        while screen.read():
            pass
    assert b"replay it: cockpit replay demo-" in screen.shown


@pytest.mark.parametrize("command", ["demo", "run"])
def test_screen_is_shown_with_stderr_redirected(tmp_path: Path, command: str) -> None:
    log = tmp_path / "stderr"
    state = {"XDG_STATE_HOME": str(tmp_path)}
    with http_server() as url:
        command_line = [*COCKPIT, *(["demo"] if command == "demo" else ["run", url, "-n", "50"])]
        redirected = ["sh", "-c", 'exec "$@" 2>"$0"', str(log), *command_line]
        with on_terminal(redirected, environment=state) as screen:
            screen.until(b"No requests sent yet" if command == "demo" else b"baseline")
            screen.type(b"\x11")
            assert screen.end() == 0
    text = log.read_text()
    assert "recorded in" in text and "\x1b" not in text


def test_demo_without_terminal_is_one_error_line() -> None:
    done = cockpit("demo")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "cockpit: demo: stdin and stdout must be a terminal; redirect stderr only (2>file)\n"
