"""How the screen is to look: options, what is remembered, what the terminal can and how long its line takes."""

from __future__ import annotations

import os
import pty
import threading
from pathlib import Path

import pytest

from cockpit.cli import appearance_options
from cockpit.cli.arguments import make_parser
from cockpit.tui.terminal.appearance import Appearance, read_settings, save_settings, settings_file
from tests.cli.terminals import on_terminal
from tests.cli.test_headless import COCKPIT
from tests.servers import http_server

UTF8 = "UTF-8"


@pytest.fixture(autouse=True)
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing remembered, and a terminal like any other."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("COLORTERM", raising=False)
    monkeypatch.delenv("SSH_CONNECTION", raising=False)


def chosen(*options: str) -> Appearance:
    return appearance_options.appearance_of(make_parser().parse_args(["run", "http://127.0.0.1/", *options]))


@pytest.mark.parametrize(
    ("term", "encoding", "ascii_only"),
    [
        *(("xterm-256color", UTF8, False), ("xterm", "utf8", False), ("tmux-256color", UTF8, False)),
        *(("linux", UTF8, True), ("vt100", UTF8, True), ("dumb", UTF8, True)),
        *(("xterm", "ISO-8859-1", True), ("xterm", "ANSI_X3.4-1968", True)),
    ],
)
def test_ascii_where_the_terminal_has_no_more(term: str, encoding: str, ascii_only: bool) -> None:
    assert appearance_options.needs_ascii({"TERM": term}, encoding) is ascii_only


@pytest.mark.parametrize(
    ("environment", "depth"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "truecolor"),
        ({"TERM": "xterm-256color"}, "256"),
        ({"TERM": "screen-256color"}, "256"),
        ({"TERM": "xterm"}, "16"),
        ({"TERM": "linux"}, "16"),
        ({"TERM": "dumb"}, "16"),
    ],
)
def test_as_many_colours_as_the_terminal_has(environment: dict[str, str], depth: str) -> None:
    assert appearance_options.colours(environment) == depth


def test_options_are_taken_as_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen("--theme", "light").theme == "light"
    assert chosen("--ascii").ascii is True
    monkeypatch.setenv("TERM", "linux")
    assert chosen().ascii is True
    assert chosen("--no-ascii").ascii is False
    assert (chosen().mouse, chosen("--no-mouse").mouse) == (True, False)
    assert (chosen().outlive, chosen("--on-hangup", "continue").outlive) == (False, True)
    assert (chosen().lite, chosen("--lite").lite, chosen("--no-lite").lite) == (False, True, False)
    assert (chosen().may_lite, chosen("--lite").may_lite, chosen("--no-lite").may_lite) == (True, False, False)


def test_the_theme_chosen_last_is_the_one_to_begin_with() -> None:
    assert chosen().theme == "dark"
    save_settings({"theme": "contrast"})
    assert chosen().theme == "contrast"
    assert chosen("--theme", "light").theme == "light"
    assert read_settings() == {"theme": "contrast"}, "an option holds for one session"


@pytest.mark.parametrize("text", ["{", "[1]", '{"theme": "mauve"}', '{"theme": 7}', "\x00"])
def test_broken_settings_are_one_clear_line_and_defaults(text: str) -> None:
    settings_file().parent.mkdir(parents=True)
    settings_file().write_text(text)
    found = chosen()
    assert found.theme == "dark"
    assert len(found.notices) == 1
    assert found.notices[0].startswith(str(settings_file()))
    assert "defaults are used" in found.notices[0]


def test_what_is_remembered_takes_the_place_of_what_does_not_read_and_keeps_the_rest() -> None:
    settings_file().parent.mkdir(parents=True)
    settings_file().write_text("{")
    save_settings({"theme": "light"})
    save_settings({"other": 1})
    assert read_settings() == {"theme": "light", "other": 1}
    assert [file.name for file in settings_file().parent.iterdir()] == ["settings.json"]


def test_a_slow_line_makes_the_screen_lite_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appearance_options, "round_trip", lambda: 0.4)
    assert chosen().lite is False, "nobody came over a line"
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22")
    assert (chosen().lite, chosen().why) == (True, "the round trip to this terminal takes 400 ms")
    assert chosen("--no-lite").lite is False
    monkeypatch.setattr(appearance_options, "round_trip", lambda: 0.02)
    assert chosen().lite is False
    monkeypatch.setattr(appearance_options, "round_trip", lambda: None)
    assert chosen().lite is False


@pytest.mark.parametrize("answers", [True, False])
def test_the_line_is_measured_by_asking_the_terminal(answers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, theirs = pty.openpty()

    def answer() -> None:
        asked = b""
        while b"\x1b[6n" not in asked:
            asked += os.read(terminal, 100)
        if answers:
            os.write(terminal, b"\x1b[12;40R")

    answering = threading.Thread(target=answer)
    answering.start()
    with os.fdopen(theirs, "r+b", buffering=0) as its:
        monkeypatch.setattr("sys.stdin", its)
        monkeypatch.setattr("sys.stderr", its)
        patience = 20.0 if answers else 0.2
        took = appearance_options.round_trip(patience)
    answering.join()
    os.close(terminal)
    assert took is not None
    assert (took < patience) is answers


def test_what_is_no_terminal_cannot_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "file").open("w+b") as file:
        monkeypatch.setattr("sys.stdin", file)
        assert appearance_options.round_trip() is None


def test_a_lite_screen_in_ascii_without_the_mouse() -> None:
    options = ("-n", "50", "--lite", "--ascii", "--no-mouse")
    with http_server() as url, on_terminal([*COCKPIT, "run", url, *options], (100, 30)) as screen:
        screen.until(b"--no-lite")
        screen.until(b"req/s")
        screen.type(b"q")
        assert screen.end() == 0
        drawn = screen.shown[: screen.shown.index(b"\x1b[?1049l")]
        assert drawn.isascii()
        assert b"lite" in drawn
        assert b"\x1b[?1000h" not in drawn, "the mouse is left to the terminal"
