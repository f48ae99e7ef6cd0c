"""Terminals without braille and blocks: every glyph of the screen has a letter that stands for it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from textual.app import App

import cockpit
from cockpit.model.events import AnyEvent
from cockpit.model.text import neutral
from cockpit.tui.app import CockpitApp
from cockpit.tui.terminal.appearance import Appearance
from cockpit.tui.terminal.glyphs import GLYPHS, to_ascii
from tests.tui.driving import at_rest, first_screen, press, settled
from tests.tui.scenario import Scenario
from tests.tui.scripted import ScriptedSource
from tests.tui.test_start import offers, started
from tests.tui.test_themes import strips
from tests.tui.test_verdicts import changed_under_load

# What words and widgets are made of; the rest of the package says nothing on the screen that does not pass by these.
ROOMS = ("tui", "analysis", "model", "session", "study", "tuning", "hosts", "load", "profiles")
# Letters that are only looked for, never drawn.
SOUGHT = ("model/text.py", "profiles/errors.py", "tui/glyphs.py")


def test_every_glyph_stands_for_as_many_cells() -> None:
    assert {
        glyph for glyph, letter in GLYPHS.items() if cell_len(glyph) != len(letter) or not letter.isascii()
    } == set()


def test_every_glyph_in_the_code_is_in_the_table() -> None:
    root = Path(cockpit.__file__).parent
    missing = {}
    for room in ROOMS:
        for file in (root / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    letters = {letter for letter in node.value if not letter.isascii() and letter not in GLYPHS}
                    if letters and str(file.relative_to(root)) not in SOUGHT:
                        missing[f"{file.name}:{node.lineno}"] = letters
    assert missing == {}, "give each a letter in tui/glyphs.py"


# What each screen is opened with, from the main screen as it is at first.
SCREENS: tuple[tuple[str, ...], ...] = (
    *((), ("v",), ("v", "v"), ("v", "e", "left"), ("o", "l"), ("enter", "down")),
    *(("d",), ("d", "d"), ("d", "d", "d"), ("w",), ("a",), ("p",), ("p", "p")),
    *(("t",), ("question_mark",), ("c",), ("up", "c", "left"), ("m",), ("slash",), ("f",)),
)


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 12)])
@pytest.mark.parametrize("events", [Scenario(2).events(62.5), changed_under_load()], ids=["two hosts", "a change"])
async def test_every_screen_is_drawn_in_ascii(size: tuple[int, int], events: Sequence[AnyEvent]) -> None:
    source = ScriptedSource(events)
    app = CockpitApp(source.session, appearance=Appearance(ascii=True))
    async with app.run_test(size=size) as pilot:
        await settled(pilot, source, len(events))
        for keys in SCREENS:
            await first_screen(pilot)
            await press(pilot, *keys)
            assert not_ascii(app) == set(), keys


@pytest.mark.parametrize("keys", [(), ("n",), ("question_mark",), ("ctrl+p",)], ids=" ".join)
async def test_the_start_screen_is_drawn_in_ascii(keys: tuple[str, ...]) -> None:
    async with started(offers(), (100, 30), appearance=Appearance(ascii=True)) as (pilot, app):
        await pilot.press(*keys)
        await at_rest(pilot)  # type: ignore[arg-type]
        assert not_ascii(app) == set()


async def test_an_empty_screen_is_drawn_in_ascii() -> None:
    source = ScriptedSource()
    app = CockpitApp(source.session, appearance=Appearance(ascii=True))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, source)
        assert not_ascii(app) == set()


def not_ascii(app: App[Any]) -> set[str]:
    """Letters on the screen that a plain terminal has not."""
    text = "".join(strip.text for strip in strips(app))
    assert text.strip()
    return {letter for letter in text if not letter.isascii()}


def test_text_of_servers_stays_what_it_is_where_the_terminal_has_its_letters() -> None:
    assert to_ascii("…/日本 é ▸") == "~/日本 é >"
    assert to_ascii("…/日本 é ▸", "latin-1") == "~/???? é >"
    assert to_ascii("日本", "no such encoding") == "????"


def test_what_is_made_harmless_is_drawn_in_ascii() -> None:
    assert to_ascii(neutral("\x1b[31mred\u202e\x9b2J")).isascii()
