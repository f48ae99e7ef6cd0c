"""Profiles that appear, are edited and are deleted while the start screen is open."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from cockpit.profiles import catalogue
from cockpit.tui.start.choices import Choice, StartChoices
from cockpit.tui.start.profile_files import DeleteScreen
from tests.cli.terminals import on_terminal
from tests.cli.test_headless import COCKPIT
from tests.tui.driving import until
from tests.tui.test_start import first, start_app, started, text

ROOT = Path(__file__).parents[2]
PROFILE = 'question = "{}"\n[target]\nurl = "http://127.0.0.1:1/"\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two profiles of this folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("aaa", "bbb"):
        (tmp_path / f"{name}.toml").write_text(PROFILE.format(f"What of {name}?"))
    return tmp_path


def offers() -> StartChoices:
    return StartChoices(catalogue.listed())


def selected(pilot: Pilot[Choice]) -> str:
    """The name of the selected profile."""
    offer = first(pilot).selected
    return offer.listed.name if offer is not None and offer.listed is not None else ""


async def test_a_new_profile_and_an_edited_one_appear_and_the_selection_stays(here: Path) -> None:
    app = start_app(offers(), stamp=catalogue.stamp)
    app._first._load = offers
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "What of bbb?" in text(pilot, "OptionList"))
        while selected(pilot) != "bbb":
            await pilot.press("down")
        (here / "abc.toml").write_text(PROFILE.format("Is it new?"))
        await until(pilot, lambda: "Is it new?" in text(pilot, "OptionList"))
        (here / "abc.toml").write_text(PROFILE.format("Is it edited?"))
        await until(pilot, lambda: "Is it edited?" in text(pilot, "OptionList"))
        assert selected(pilot) == "bbb"


async def test_delete_asks_first_and_keeps_shipped_profiles(here: Path) -> None:
    async with started(offers()) as (pilot, app):
        app._first._load = offers
        while selected(pilot) != "bbb":
            await pilot.press("down")
        await pilot.press("delete")
        await until(pilot, lambda: isinstance(app.screen, DeleteScreen))
        assert "bbb.toml" in str(app.screen.query(Static).first().content)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is first(pilot))
        assert (here / "bbb.toml").exists()
        await pilot.press("delete")
        await until(pilot, lambda: isinstance(app.screen, DeleteScreen))
        await pilot.press("y")
        await until(pilot, lambda: "What of bbb?" not in text(pilot, "OptionList"))
        assert not (here / "bbb.toml").exists() and (here / "aaa.toml").exists()
        while selected(pilot) != "atime":
            await pilot.press("down")
        await pilot.press("delete")
        await until(pilot, lambda: "comes with cockpit and is not deleted" in text(pilot, "#message"))


def test_the_editor_gets_the_terminal_and_the_list_shows_its_work(here: Path) -> None:
    editor = here / "editor.sh"
    editor.write_text('#!/bin/sh\nstty -a | grep -c " icanon" \nsed -i "s/What of/What became of/" "$1"\n')
    editor.chmod(0o755)
    environment = {
        "EDITOR": str(editor),
        "VISUAL": "",
        "PYTHONPATH": str(ROOT),
        "XDG_STATE_HOME": str(here),
        "TEXTUAL_ANIMATIONS": "none",
    }
    with on_terminal(COCKPIT, environment=environment) as terminal:
        terminal.until(b"What of bbb?")
        terminal.type(b"/aaa\r")
        terminal.until(b"Esc shows all")
        terminal.shown = b""
        terminal.type(b"E")
        shown = terminal.until(b"became of aaa?")
        assert b"\x1b[?1049l" in shown and b"1\r\n" in shown, "the editor has a terminal of lines"
        assert "What became of aaa?" in (here / "aaa.toml").read_text()
        assert "What of bbb?" in (here / "bbb.toml").read_text()
        terminal.type(b"q")
        assert terminal.end() == 0
