"""Appearance of the screen: options, saved settings, terminal capabilities and round-trip time."""

import os
import pty
import threading
from pathlib import Path

import pytest

from cockpit.cli import appearance_options
from cockpit.cli.arguments import make_parser
from cockpit.tui.terminal.appearance import Appearance, read_settings, save_settings, settings_file


@pytest.fixture(autouse=True)
def default_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start without saved settings, on a common terminal."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("COLORTERM", raising=False)
    monkeypatch.delenv("SSH_CONNECTION", raising=False)


def appearance(*options: str) -> Appearance:
    return appearance_options.appearance_of(make_parser().parse_args(["run", "http://127.0.0.1/", *options]))


def test_ascii_only_if_terminal_lacks_utf8() -> None:
    for term, encoding, ascii_only in (
        *((term, "UTF-8", False) for term in ("xterm-256color", "tmux-256color")),
        *((term, "UTF-8", True) for term in ("linux", "vt100", "dumb")),
        *(("xterm", "utf8", False), ("xterm", "ISO-8859-1", True), ("xterm", "ANSI_X3.4-1968", True)),
    ):
        assert appearance_options.needs_ascii({"TERM": term}, encoding) is ascii_only


@pytest.mark.parametrize(
    ("term", "depth"),
    [("xterm-256color", "256"), ("screen-256color", "256"), ("xterm", "16"), ("linux", "16"), ("dumb", "16")],
)
def test_colour_depth_follows_terminal(term: str, depth: str) -> None:
    assert appearance_options.colours({"TERM": term}) == depth
    assert appearance_options.colours({"TERM": "xterm-256color", "COLORTERM": "truecolor"}) == "truecolor"


def test_options_override_detection(monkeypatch: pytest.MonkeyPatch) -> None:
    assert appearance("--theme", "light").theme == "light"
    assert appearance("--ascii").ascii is True
    monkeypatch.setenv("TERM", "linux")
    assert appearance().ascii is True
    assert appearance("--no-ascii").ascii is False
    assert (appearance().mouse, appearance("--no-mouse").mouse) == (True, False)
    assert (appearance().outlive, appearance("--on-hangup", "continue").outlive) == (False, True)
    lite = [(found.lite, found.may_lite) for found in (appearance(), appearance("--lite"), appearance("--no-lite"))]
    assert lite == [(False, True), (True, False), (False, False)]


def test_saved_theme_is_default() -> None:
    assert appearance().theme == "dark"
    save_settings({"theme": "contrast"})
    assert appearance().theme == "contrast"
    assert appearance("--theme", "light").theme == "light"
    assert read_settings() == {"theme": "contrast"}, "an option is not saved"


def test_invalid_settings_give_one_notice_and_defaults_and_are_replaced() -> None:
    for text in ("{", "[1]", '{"theme": "mauve"}', '{"theme": 7}', "\x00", '{"a": ' + "[" * 200_000, " " * (65 << 20)):
        settings_file().parent.mkdir(parents=True, exist_ok=True)
        settings_file().write_text(text)
        found = appearance()
        assert found.theme == "dark"
        (notice,) = found.notices
        assert notice.startswith(str(settings_file())) and "defaults are used" in notice and "\n" not in notice
        save_settings({"theme": "light"})
        save_settings({"other": 1})
        assert read_settings() == {"theme": "light", "other": 1}
        assert [file.name for file in settings_file().parent.iterdir()] == ["settings.json"]


def test_slow_ssh_connection_makes_screen_lite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appearance_options, "round_trip", lambda: 0.4)
    assert appearance().lite is False, "no SSH connection"
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22")
    assert (appearance().lite, appearance().why) == (True, "the round trip to this terminal takes 400 ms")
    assert appearance("--no-lite").lite is False
    monkeypatch.setattr(appearance_options, "round_trip", lambda: 0.02)
    assert appearance().lite is False
    monkeypatch.setattr(appearance_options, "round_trip", lambda: None)
    assert appearance().lite is False


@pytest.mark.parametrize("answers", [True, False])
def test_round_trip_is_measured_with_cursor_query(answers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, theirs = pty.openpty()

    def answer() -> None:
        query = b""
        while b"\x1b[6n" not in query:
            query += os.read(terminal, 100)
        if answers:
            os.write(terminal, b"\x1b[12;40R")

    answering = threading.Thread(target=answer)
    answering.start()
    with os.fdopen(theirs, "r+b", buffering=0) as stream:
        monkeypatch.setattr("sys.stdin", stream)
        monkeypatch.setattr("sys.stderr", stream)
        timeout = 20.0 if answers else 0.2
        took = appearance_options.round_trip(timeout)
    answering.join()
    os.close(terminal)
    assert took is not None
    assert (took < timeout) is answers


def test_round_trip_of_file_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "file").open("w+b") as file:
        monkeypatch.setattr("sys.stdin", file)
        assert appearance_options.round_trip() is None
