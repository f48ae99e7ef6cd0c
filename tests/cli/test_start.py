"""`cockpit` without arguments: help without a terminal, otherwise the start screen before and after each session."""

from __future__ import annotations

import os
import pty
import re
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.test_headless import COCKPIT
from tests.commands import cockpit
from tests.servers import http_server

TIMEOUT = 120.0
_CONTROL = re.compile(rb"\x1b\[[0-9;?<>=]*[A-Za-z]|\x1b[()][A-Z0-9]")


def test_without_terminal_help_is_printed_with_exit_code_2() -> None:
    for arguments in ((), ("start",)):
        done = cockpit(*arguments)
        assert done.returncode == 2
        assert done.stdout == ""
        assert "usage: cockpit" in done.stderr and "demo" in done.stderr


class Terminal:
    """A process on its own terminal of 50 lines with 120 cells, in which all shipped profiles fit."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._output = b""

    def press(self, keys: str) -> None:
        os.write(self.descriptor, keys.encode())

    def until(self, *words: str) -> str:
        """Read until the output since the last call contains all words, and return that output."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            text = _CONTROL.sub(b"", self._output).decode("utf-8", "replace")
            if all(word in text for word in words):
                self._output = b""
                return text
            ready, _, _ = select.select([self.descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"timeout without {words!r}; last output: {text[-2000:]!r}"
            try:
                self._output += os.read(self.descriptor, 65536)
            except OSError as error:
                raise AssertionError(f"ended without {words!r}: {text[-2000:]!r}") from error


@contextmanager
def cockpit_on_terminal(folder: Path, *arguments: str) -> Iterator[Terminal]:
    """Run cockpit in a shell on a terminal; the shell prints `exit code N` at the end."""
    environment = {
        "TERM": "xterm-256color",
        "COLUMNS": "120",
        "LINES": "50",
        "TEXTUAL_ANIMATIONS": "none",
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    command = " ".join([*COCKPIT, *arguments])
    child, descriptor = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ.update(environment)
        os.execv("/bin/sh", ["/bin/sh", "-c", f"{command}; echo exit code $?"])
    try:
        yield Terminal(descriptor)
    finally:
        # A child that still runs ends on the hangup.
        os.close(descriptor)
        os.waitpid(child, 0)


def test_profile_opens_without_load_and_quit_returns_to_start(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    with http_server() as url:
        (tmp_path / "profiles" / "aaa.toml").write_text(f'question = "Is it?"\n[target]\nurl = "{url}"\n')
        _open_and_quit(tmp_path)


def _open_and_quit(folder: Path) -> None:
    with cockpit_on_terminal(folder) as terminal:
        terminal.until("aaa", "Is it?", "No recordings yet")
        terminal.press("/aaa\r")
        terminal.until("Esc: show all")
        terminal.press("\r")
        terminal.until("No requests sent yet")
        terminal.press("q")
        terminal.until("recent recordings", "aaa: ended with no run", "no run")
        terminal.press("q")
        terminal.until("exit code 0")


def test_keys_typed_ahead_reach_prompt(tmp_path: Path) -> None:
    with http_server() as url, cockpit_on_terminal(tmp_path) as terminal:
        terminal.until("No recordings yet")
        terminal.press(f"u{url.removeprefix('http://')}\r")
        terminal.until("No requests sent yet", "qquit")
        # One write: a note that contains letters of other keys, then quit.
        terminal.press("mqtc 5 + 3\rq")
        terminal.until("url: ended with no run")
        terminal.press("q")
        terminal.until("exit code 0")


def test_start_screen_shows_error_of_missing_profile(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    profile = tmp_path / "profiles" / "aaa.toml"
    profile.write_text('[target]\nurl = "http://127.0.0.1:1/"\n')
    with cockpit_on_terminal(tmp_path) as terminal:
        terminal.until("aaa", "No recordings yet", "spare-servers", "Is process churn")
        terminal.press("/aaa\r")
        terminal.until("Esc: show all")
        profile.unlink()
        terminal.press("\r")
        terminal.until("no such profile")
        terminal.press("\x03")
        terminal.until("exit code 130")


def test_demo_recording_is_selected_afterwards(tmp_path: Path) -> None:
    with cockpit_on_terminal(tmp_path) as terminal:
        terminal.until("No recordings yet", "cockpit demo")
        terminal.press("j")
        terminal.until("No requests sent yet", "demo-http-")
        terminal.press("q")
        terminal.until("The demo has ended. Enter: replay it", "▸ demo")
        terminal.press("\r")
        terminal.until("REPLAY")
        terminal.press("q")
        terminal.until("recent recordings")
        terminal.press("q")
        terminal.until("exit code 0")
