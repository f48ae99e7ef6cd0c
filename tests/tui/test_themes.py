"""Themes: colours that can be read in every terminal, others while the screen is up, none where none are wanted."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.color import Color, ColorSystem
from rich.color_triplet import ColorTriplet
from textual.app import App
from textual.strip import Strip

from cockpit.cli.appearance_options import THEMES
from cockpit.tui.terminal import theme
from cockpit.tui.terminal.appearance import read_settings
from cockpit.tui.terminal.base_app import CockpitBase
from cockpit.tui.terminal.theme import Colours
from tests.tui.driving import driven, first_screen, press, settled
from tests.tui.scenario import Scenario
from tests.tui.scripted import scripted_app

TEXT, SHAPE = 4.5, 3.0
GROUNDS = ("background", "surface", "panel")
DEPTHS: dict[Colours, ColorSystem] = {
    "truecolor": ColorSystem.TRUECOLOR,
    "256": ColorSystem.EIGHT_BIT,
    "16": ColorSystem.STANDARD,
}


@pytest.fixture(autouse=True)
def nothing_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def luminance(colour: ColorTriplet) -> float:
    parts = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour.normalized)
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def contrast(one: ColorTriplet, other: ColorTriplet) -> float:
    """As WCAG 2 defines it: from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def as_shown(colour: str, depth: Colours) -> ColorTriplet:
    """What a terminal of so many colours shows in its place."""
    return Color.parse(colour).downgrade(DEPTHS[depth]).get_truecolor()


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", theme.NAMES)
def test_every_pair_of_colours_can_be_told_apart(name: str, depth: Colours) -> None:
    of = {use: as_shown(colour, depth) for use, colour in theme.palette(name, depth).items()}
    for ground in GROUNDS:
        for use in ("text", "strong", "dim", "warn", "mark", "alarm"):
            assert contrast(of[use], of[ground]) >= TEXT, (use, ground)
        for use in ("rule", "chart", "mark"):
            assert contrast(of[use], of[ground]) >= SHAPE, (use, ground)
        # The dark green of 16 colours on white: its word is bold and has a glyph.
        assert contrast(of["good"], of[ground]) >= (SHAPE if (name, depth) == ("light", "16") else TEXT), ground
    assert contrast(of["strong"], of["band"]) >= TEXT
    assert contrast(of["text"], of["band"]) >= TEXT
    assert contrast(of["chart"], of["band"]) >= SHAPE
    assert contrast(of["background"], of["chart"]) >= SHAPE, "the chosen line of a list"


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", theme.NAMES)
def test_charts_and_warnings_differ_in_more_than_red_from_green(name: str, depth: Colours) -> None:
    """Blue against yellow is what the commonest kinds of colour blindness leave."""
    of = {use: as_shown(colour, depth) for use, colour in theme.palette(name, depth).items()}
    for use in ("mark", "warn", "alarm"):
        assert abs(of["chart"].blue - of[use].blue) >= 64, use


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", theme.NAMES)
def test_better_is_green_worse_red_and_a_warning_neither(name: str, depth: Colours) -> None:
    of = {use: as_shown(colour, depth) for use, colour in theme.palette(name, depth).items()}
    assert of["good"].green > max(of["good"].red, of["good"].blue)
    assert of["alarm"].red > max(of["alarm"].green, of["alarm"].blue)
    if (name, depth) != ("light", "16"):  # None of these is an amber that can be read on white.
        assert min(of["warn"].red, of["warn"].green) > of["warn"].blue
    assert of["chart"].blue > of["chart"].red
    variables = theme.theme(name, depth).variables
    assert variables["cockpit-better"] == theme.palette(name, depth)["good"]
    assert variables["cockpit-worse"] == theme.palette(name, depth)["alarm"]


def test_the_command_line_offers_the_themes_there_are() -> None:
    assert THEMES == theme.NAMES
    assert THEMES[0] == theme.DEFAULT


async def test_a_key_goes_on_to_the_next_theme_which_is_remembered() -> None:
    async with driven(Scenario().events(20)) as (pilot, _):
        seen = [pilot.app.theme]
        for _ in range(3):
            await press(pilot, "T")
            seen.append(pilot.app.theme)
            assert read_settings() == {"theme": pilot.app.theme}
    assert seen == ["dark", "light", "contrast", "dark"]


async def test_another_theme_colours_every_screen_at_once() -> None:
    own = set(theme.palette("light").values())
    dark = set(theme.palette("dark").values()) - own
    async with driven(Scenario().events(76)) as (pilot, _):
        for keys in ((), ("t",), ("question_mark",), ("c",), ("up", "C")):
            await first_screen(pilot)
            pilot.app.theme = "dark"
            await press(pilot, *keys)
            assert colours_on(pilot.app) & dark, keys
            pilot.app.theme = "light"
            await press(pilot)
            assert not colours_on(pilot.app) & dark, keys


async def test_what_cannot_be_remembered_is_said_and_holds_for_the_session(tmp_path: Path) -> None:
    (tmp_path / "cockpit").write_text("in the way")
    async with driven(Scenario().events(20)) as (pilot, _):
        await press(pilot, "T")
        assert pilot.app.theme == "light"
        assert "this session only" in next(iter(pilot.app._notifications)).message


async def test_no_colour_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    events = Scenario(2, hostile=True).events(76)
    app, source = scripted_app(events)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, source, len(events))
        for keys in ((), ("t",), ("enter",), ("question_mark",)):
            await first_screen(pilot)
            await press(pilot, *keys)
            assert colours_on(app) == {"default"}, keys


def colours_on(app: App[object]) -> set[str]:
    """Every colour that the terminal would be told."""
    found = set()
    for strip in strips(app):
        for segment in strip:
            if segment.style is not None:
                found |= {colour.name for colour in (segment.style.color, segment.style.bgcolor) if colour is not None}
    return found


def strips(app: App[object]) -> list[Strip]:
    """The screen as it goes to the terminal."""
    assert isinstance(app, CockpitBase)
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    return [Strip.join(line) for line in update.strips]  # type: ignore[union-attr]
