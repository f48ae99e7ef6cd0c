"""Terminals without braille and blocks: every glyph of the screen has an ASCII replacement."""

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
from cockpit.model.glyphs import ASCII
from cockpit.model.text import sanitize
from cockpit.tui.app import CockpitApp
from cockpit.tui.terminal.appearance import Appearance
from cockpit.tui.terminal.glyphs import to_ascii
from tests.tui.driving import press, reset_screen, wait_for_events
from tests.tui.scenario import Scenario
from tests.tui.scripted import ScriptedSource
from tests.tui.test_start import running_start_app, start_choices
from tests.tui.test_themes import strips
from tests.tui.test_verdicts import changed_under_load

# Packages whose strings appear on the screen.
PACKAGES = ("tui", "analysis", "model", "session", "study", "tuning", "hosts", "load", "profiles")
# Modules whose letters are only searched for, never drawn.
SEARCHED_ONLY = ("model/text.py", "profiles/errors.py", "tui/glyphs.py")


def test_ascii_replacement_has_same_cell_width() -> None:
    assert [glyph for glyph, sign in ASCII.items() if cell_len(glyph) != len(sign) or not sign.isascii()] == []
    assert len(set(to_ascii("░▒▓█─═≡"))) == 7, "signs of the heat map are distinct"


def test_every_glyph_in_code_has_ascii_replacement() -> None:
    root = Path(cockpit.__file__).parent
    missing = {}
    for package in PACKAGES:
        for file in (root / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    letters = {letter for letter in node.value if not letter.isascii() and letter not in ASCII}
                    if letters and str(file.relative_to(root)) not in SEARCHED_ONLY:
                        missing[f"{file.name}:{node.lineno}"] = letters
    assert missing == {}, "add a replacement for each in tui/terminal/glyphs.py"


# Keys that open each screen from the initial main screen.
SCREENS = (
    *("", "v", "v v", "v e left", "o l", "enter down", "d", "d d", "d d d", "w", "a", "p", "p p"),
    *("t", "question_mark", "c", "up c left", "m", "slash", "f"),
)


@pytest.mark.parametrize(
    ("events", "size", "screens"),
    [
        (Scenario(2).events(62.5), (120, 40), SCREENS),
        (changed_under_load(), (80, 24), SCREENS),
        (changed_under_load(), (40, 12), ("", "c")),
        ([], (120, 40), ("",)),
    ],
    ids=["two hosts", "a change", "tiny", "empty"],
)
async def test_every_screen_is_drawn_in_ascii(
    events: Sequence[AnyEvent], size: tuple[int, int], screens: Sequence[str]
) -> None:
    source = ScriptedSource(events)
    app = CockpitApp(source.session, appearance=Appearance(ascii=True))
    async with app.run_test(size=size) as pilot:
        await wait_for_events(pilot, source, len(events))
        for keys in screens:
            await reset_screen(pilot)
            await press(pilot, *keys.split())
            assert non_ascii(app) == set(), keys


async def test_start_screen_is_drawn_in_ascii() -> None:
    async with running_start_app(start_choices(), (100, 30), appearance=Appearance(ascii=True)) as (pilot, app):
        for keys in ("", "n", "question_mark", "ctrl+p"):
            await reset_screen(pilot)
            await press(pilot, *keys.split())  # type: ignore[arg-type]
            assert non_ascii(app) == set(), keys


def non_ascii(app: App[Any]) -> set[str]:
    """Return the characters on the screen that are not ASCII."""
    text = "".join(strip.text for strip in strips(app))
    assert text.strip()
    return {letter for letter in text if not letter.isascii()}


def test_server_text_is_kept_if_encoding_supports_characters() -> None:
    assert to_ascii("…/日本 é ▸") == "~/日本 é >"
    assert to_ascii("…/日本 é ▸", "latin-1") == "~/???? é >"
    assert to_ascii("日本", "no such encoding") == "????"
    assert to_ascii(sanitize("\x1b[31mred\u202e\x9b2J")).isascii(), "neutralized text"
