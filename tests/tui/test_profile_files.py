"""Profiles are created, edited and deleted while the start screen is open."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from cockpit.profiles import catalogue
from cockpit.tui.dialogs.prompt import ConfirmScreen
from cockpit.tui.start.choices import Choice, StartChoices
from tests.cli.terminals import on_terminal
from tests.cli.test_headless import COCKPIT
from tests.tui.driving import until
from tests.tui.test_start import running_start_app, start_app, start_screen, widget_text

ROOT = Path(__file__).parents[2]
PROFILE = 'question = "{}"\n[target]\nurl = "http://127.0.0.1:1/"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create two profiles in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("aaa", "bbb"):
        (tmp_path / f"{name}.toml").write_text(PROFILE.format(f"What of {name}?"))
    return tmp_path


def choices() -> StartChoices:
    return StartChoices(catalogue.listed())


def selected(pilot: Pilot[Choice]) -> str:
    """Return the name of the selected profile."""
    item = start_screen(pilot).selected
    return item.listed.name if item is not None and item.listed is not None else ""


async def test_new_and_edited_profiles_appear_and_selection_stays(folder: Path) -> None:
    app = start_app(choices(), stamp=catalogue.stamp)
    app._first._load = choices
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "What of bbb?" in widget_text(pilot, "OptionList"))
        while selected(pilot) != "bbb":
            await pilot.press("down")
        (folder / "abc.toml").write_text(PROFILE.format("Is it new?"))
        await until(pilot, lambda: "Is it new?" in widget_text(pilot, "OptionList"))
        (folder / "abc.toml").write_text(PROFILE.format("Is it edited?"))
        await until(pilot, lambda: "Is it edited?" in widget_text(pilot, "OptionList"))
        assert selected(pilot) == "bbb"


async def test_delete_is_confirmed_and_refused_for_shipped_profiles(folder: Path) -> None:
    async with running_start_app(choices()) as (pilot, app):
        app._first._load = choices
        while selected(pilot) != "bbb":
            await pilot.press("down")
        await pilot.press("delete")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        assert "bbb.toml" in str(app.screen.query(Static).first().content)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is start_screen(pilot))
        assert (folder / "bbb.toml").exists()
        await pilot.press("delete")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("y")
        await until(pilot, lambda: "What of bbb?" not in widget_text(pilot, "OptionList"))
        assert not (folder / "bbb.toml").exists() and (folder / "aaa.toml").exists()
        while selected(pilot) != "atime":
            await pilot.press("down")
        await pilot.press("delete")
        await until(pilot, lambda: "shipped profiles cannot be deleted" in widget_text(pilot, "#message"))


def test_editor_gets_terminal_and_list_is_refreshed(folder: Path) -> None:
    editor = folder / "editor.sh"
    editor.write_text('#!/bin/sh\nstty -a | grep -c " icanon" \nsed -i "s/What of/What became of/" "$1"\n')
    editor.chmod(0o755)
    environment = {
        "EDITOR": str(editor),
        "VISUAL": "",
        "PYTHONPATH": str(ROOT),
        "XDG_STATE_HOME": str(folder),
        "TEXTUAL_ANIMATIONS": "none",
    }
    with on_terminal(COCKPIT, environment=environment) as terminal:
        terminal.until(b"What of bbb?")
        terminal.type(b"/aaa\r")
        terminal.until(b"Esc: show all")
        terminal.shown = b""
        terminal.type(b"E")
        shown = terminal.until(b"became of aaa?")
        assert b"\x1b[?1049l" in shown and b"1\r\n" in shown, "the editor has the terminal in canonical mode"
        assert "What became of aaa?" in (folder / "aaa.toml").read_text()
        assert "What of bbb?" in (folder / "bbb.toml").read_text()
        terminal.type(b"q")
        assert terminal.end() == 0
