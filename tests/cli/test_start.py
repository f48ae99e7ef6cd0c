"""`cockpit` without arguments: help without a terminal, otherwise the start screen before and after each session."""

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.terminals import TerminalProcess, cockpit_on_terminal
from tests.commands import cockpit
from tests.demo.support import running


def test_without_terminal_help_is_printed_with_exit_code_2() -> None:
    for arguments in ((), ("start",)):
        done = cockpit(*arguments)
        assert done.returncode == 2
        assert done.stdout == ""
        assert "usage: cockpit" in done.stderr and "demo" in done.stderr


@pytest.fixture
def profile(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "profiles" / "aaa.toml"
    path.parent.mkdir()
    path.write_text(f'question = "Is it?"\n[target]\nurl = "{url}"\n')
    return path


@contextmanager
def start_screen(folder: Path) -> Iterator[TerminalProcess]:
    """Run cockpit on a terminal on which all shipped profiles fit."""
    environment = {"XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "config")}
    with cockpit_on_terminal(size=(120, 65), environment=environment) as terminal:
        yield terminal


@pytest.mark.usefixtures("profile")
def test_profile_opens_without_load_and_quit_returns_to_start(tmp_path: Path) -> None:
    with start_screen(tmp_path) as terminal:
        terminal.until_screen("aaa", "Is it?", "No recordings yet", "spare-servers", "Is process churn")
        terminal.type(b"/aaa\r")
        terminal.until_screen("Esc: show all")
        terminal.type(b"\r")
        terminal.until_screen("No requests sent yet")
        terminal.type(b"q")
        terminal.until_screen("recent recordings", "aaa: ended with no run", "no run")
        terminal.type(b"q")
        assert terminal.end() == 0


def test_start_screen_shows_error_of_missing_profile(profile: Path, tmp_path: Path) -> None:
    with start_screen(tmp_path) as terminal:
        terminal.until_screen("aaa", "No recordings yet")
        terminal.type(b"/aaa\r")
        terminal.until_screen("Esc: show all")
        profile.unlink()
        terminal.type(b"\r")
        terminal.until_screen("no such profile")
        terminal.type(b"\x03")
        assert terminal.end() == 130


def test_keys_typed_ahead_reach_prompt(url: str, tmp_path: Path) -> None:
    with start_screen(tmp_path) as terminal:
        terminal.until_screen("No recordings yet")
        terminal.type(f"u{url.removeprefix('http://')}\r".encode())
        terminal.until_screen("No requests sent yet", "quit")
        # One write: a note that contains letters of other keys, then quit.
        terminal.type(b"mqtc 5 + 3\rq")
        terminal.until_screen(": ended with no run")
        terminal.type(b"q")
        assert terminal.end() == 0


def test_demo_recording_is_selected_afterwards(tmp_path: Path) -> None:
    with start_screen(tmp_path) as terminal:
        terminal.until_screen("No recordings yet", "try it on the demo")
        terminal.type(b"j")
        terminal.until_screen("No requests sent yet", "demo-http-")
        terminal.type(b"q")
        terminal.until_screen("The demo has ended. Enter: replay it", "▸ 127.0.0.1:")
        terminal.type(b"\r")
        terminal.until_screen("REPLAY")
        terminal.type(b"q")
        terminal.until_screen("recent recordings")
        terminal.type(b"q")
        assert terminal.end() == 0


def test_running_server_opens_with_its_host_and_settings(tmp_path: Path) -> None:
    with running(tmp_path, MinSpareServers=2) as server, start_screen(tmp_path) as terminal:
        # Other servers of the machine may fill the screen.
        terminal.until_screen("running on this machine")
        terminal.type(f"/:{server.port}\r".encode())
        terminal.until_screen(
            "Esc: show all", f"demo on :{server.port}", f"demo runs on this machine as {getpass.getuser()}"
        )
        terminal.type(b"\r")
        terminal.until_screen("No requests sent yet", f"127.0.0.1:{server.port}", "here")
        terminal.type(b"t")
        terminal.until_screen("MinSpareServers", f"here:{tmp_path}/httpd.conf")
        terminal.type(b"\x11")
        terminal.until_screen(": ended with no run")
        terminal.type(b"q")
        assert terminal.end() == 0
