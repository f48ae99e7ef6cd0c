"""Themes: readable colours in every terminal, switching at run time, NO_COLOR, and ASCII instead of glyphs."""

import ast
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.color import Color, ColorSystem
from rich.color_triplet import ColorTriplet
from textual.app import App
from textual.strip import Strip

import cockpit
from cockpit.cli.appearance_options import THEMES
from cockpit.model.events import AnyEvent
from cockpit.model.glyphs import ASCII
from cockpit.model.text import sanitize
from cockpit.tui.app import CockpitApp
from cockpit.tui.charts.latency import Latency
from cockpit.tui.terminal import theme
from cockpit.tui.terminal.appearance import Appearance, read_settings
from cockpit.tui.terminal.glyphs import to_ascii
from cockpit.tui.terminal.role_styles import styles_on
from cockpit.tui.terminal.theme import Colours
from tests.tui.driving import main, press, reset_screen, running_app, wait_for_events
from tests.tui.scenario import Scenario
from tests.tui.screens import notices
from tests.tui.scripted import ScriptedSource, scripted_app
from tests.tui.test_start import running_start_app, start_choices
from tests.tui.test_verdicts import changed_under_load

TEXT_CONTRAST, SHAPE_CONTRAST = 4.5, 3.0
BACKGROUNDS = ("background", "surface", "panel")
DEPTHS = {"truecolor": ColorSystem.TRUECOLOR, "256": ColorSystem.EIGHT_BIT, "16": ColorSystem.STANDARD}


@pytest.fixture(autouse=True)
def no_saved_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def luminance(colour: ColorTriplet) -> float:
    parts = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour.normalized)
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def contrast(first: ColorTriplet, second: ColorTriplet) -> float:
    """Return the contrast ratio as defined by WCAG 2, from 1 to 21."""
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def as_shown(colour: str, depth: Colours) -> ColorTriplet:
    """Return the colour that a terminal of this colour depth shows."""
    return Color.parse(colour).downgrade(DEPTHS[depth]).get_truecolor()


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", theme.NAMES)
def test_colours_are_readable_and_differ(name: str, depth: Colours) -> None:
    colours = {use: as_shown(colour, depth) for use, colour in theme.palette(name, depth).items()}
    # 16 colours have no amber that is readable on white. Dark green on white has less contrast; its text is bold and
    # has a glyph.
    few = (name, depth) == ("light", "16")
    for background in BACKGROUNDS:
        for use in ("text", "strong", "dim", "warn", "mark", "alarm"):
            assert contrast(colours[use], colours[background]) >= TEXT_CONTRAST, (use, background)
        for use in ("rule", "chart", "mark"):
            assert contrast(colours[use], colours[background]) >= SHAPE_CONTRAST, (use, background)
        assert contrast(colours["good"], colours[background]) >= (SHAPE_CONTRAST if few else TEXT_CONTRAST), background
    assert contrast(colours["strong"], colours["band"]) >= TEXT_CONTRAST
    assert contrast(colours["text"], colours["band"]) >= TEXT_CONTRAST
    assert contrast(colours["chart"], colours["band"]) >= SHAPE_CONTRAST
    assert contrast(colours["background"], colours["chart"]) >= SHAPE_CONTRAST, "selected line of a list"
    # The most common kinds of colour blindness preserve blue vs yellow.
    for use in ("warn", "alarm"):
        assert abs(colours["chart"].blue - colours[use].blue) >= 64, use
    assert colours["good"].green > max(colours["good"].red, colours["good"].blue)
    assert colours["alarm"].red > max(colours["alarm"].green, colours["alarm"].blue)
    assert few or min(colours["warn"].red, colours["warn"].green) > colours["warn"].blue
    assert colours["chart"].blue > colours["chart"].red
    variables = theme.theme(name, depth).variables
    assert variables["cockpit-better"] == theme.palette(name, depth)["good"]
    assert variables["cockpit-worse"] == theme.palette(name, depth)["alarm"]


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", theme.NAMES)
async def test_number_chart_and_secondary_text_differ_in_weight(name: str, depth: Colours) -> None:
    app = CockpitApp(ScriptedSource([]).session, appearance=Appearance(theme=name, colours=depth))
    async with app.run_test() as pilot:
        styles = styles_on(main(pilot.app).query_one(Latency))

        def weight(role: str) -> float:
            style = styles[role]
            assert style.color and style.bgcolor
            return contrast(style.color.get_truecolor(), style.bgcolor.get_truecolor())

        assert styles["strong"].bold and not styles["dim"].bold and not styles["chart"].bold
        assert weight("strong") >= weight("text") >= weight("dim")
        assert weight("chart") > weight("faint") >= 1.8, "charts of the load and histories of hosts"
        assert styles["chart"].color not in (styles["strong"].color, styles["text"].color, styles["dim"].color)


def test_command_line_offers_all_themes() -> None:
    assert THEMES == theme.NAMES
    assert THEMES[0] == theme.DEFAULT


async def test_key_switches_theme_saves_choice_and_recolours_every_screen(tmp_path: Path) -> None:
    own = set(theme.palette("light").values())
    dark = set(theme.palette("dark").values()) - own
    async with running_app(Scenario().events(76)) as (pilot, _):
        themes = [pilot.app.theme]
        for _ in range(3):
            await press(pilot, "T")
            themes.append(pilot.app.theme)
            assert read_settings() == {"theme": pilot.app.theme}
        assert themes == ["dark", "light", "contrast", "dark"]
        for keys in ((), ("t",), ("question_mark",), ("c",), ("up", "C")):
            await reset_screen(pilot)
            pilot.app.theme = "dark"
            await press(pilot, *keys)
            assert colours_on(pilot.app) & dark, keys
            pilot.app.theme = "light"
            await press(pilot)
            assert not colours_on(pilot.app) & dark, keys
        await reset_screen(pilot)
        shutil.rmtree(tmp_path / "webcockpit")
        (tmp_path / "webcockpit").write_text("in the way")
        await press(pilot, "T")
        assert pilot.app.theme == "contrast"
        assert "this session only" in notices(pilot)[0]


async def test_percentiles_differ_in_brightness_in_every_theme() -> None:
    async with running_app() as (pilot, _):
        for name in theme.NAMES:
            pilot.app.theme = name
            styles = styles_on(main(pilot.app).query_one(Latency))
            (p50, over), (p99, under) = (
                [as_shown(colour.name, "truecolor") for colour in (styles[role].color, styles[role].bgcolor) if colour]
                for role in ("p50", "p99")
            )
            assert contrast(p50, p99) >= 2 * TEXT_CONTRAST, "also without hues, as for colour-blind people"
            assert contrast(p50, over) >= SHAPE_CONTRAST and contrast(p99, under) >= TEXT_CONTRAST, name


async def test_no_color_disables_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    events = Scenario(2, hostile=True).events(76)
    app, source = scripted_app(events)
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_for_events(pilot, source, len(events))
        for keys in ((), ("t",), ("enter",), ("question_mark",)):
            await reset_screen(pilot)
            await press(pilot, *keys)
            assert colours_on(app) == {"default"}, keys


def colours_on(app: App[object]) -> set[str]:
    """Return every colour that is sent to the terminal."""
    found = set()
    for strip in strips(app):
        for segment in strip:
            if segment.style is not None:
                found |= {colour.name for colour in (segment.style.color, segment.style.bgcolor) if colour is not None}
    return found


def strips(app: App[object]) -> list[Strip]:
    """Return the lines of the screen as sent to the terminal."""
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    return [Strip.join(line) for line in update.strips]  # type: ignore[union-attr]


# Packages whose strings appear on the screen.
PACKAGES = ("tui", "analysis", "model", "session", "study", "tuning", "hosts", "load", "profiles")
# Modules whose letters are only searched for, never drawn.
SEARCHED_ONLY = ("model/text.py", "profiles/errors.py", "tui/glyphs.py")


def test_ascii_replacements_keep_width_and_server_text() -> None:
    assert [glyph for glyph, sign in ASCII.items() if cell_len(glyph) != len(sign) or not sign.isascii()] == []
    assert len(set(to_ascii("░▒▓█─═≡"))) == 7, "signs of the heat map are distinct"
    assert to_ascii("…/日本 é ▸") == "~/日本 é >"
    assert to_ascii("…/日本 é ▸", "latin-1") == "~/???? é >"
    assert to_ascii("日本", "no such encoding") == "????"
    assert to_ascii(sanitize("\x1b[31mred\u202e\x9b2J")).isascii(), "neutralized text"


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
async def test_screens_are_drawn_in_ascii(
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
