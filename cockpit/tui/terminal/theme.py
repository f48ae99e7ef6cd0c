"""Colour themes.

Blue is for data and titles, white for changes and amber for warnings, which colour-blind people can distinguish; green
for better; red for worse, errors and lost hosts. No meaning depends on colour alone. Each theme has palettes for
terminals of 2^24, 256 and 16 colours, because the nearest of 16 colours to a fine shade may be unreadable.
"""

from __future__ import annotations

from typing import Literal

from textual.theme import Theme

Colours = Literal["truecolor", "256", "16"]

# Uses of the colours in a palette, in order. Text: three weights, lines, charts, warnings and highlights, alarms, good.
# Backgrounds: screen, dialogs, first and last line, selected line.
_USES = (
    *("text", "strong", "dim", "rule", "chart", "warn", "alarm", "good"),
    *("background", "surface", "panel", "band"),
)
# Textual has its own variables for these.
_GROUNDS = ("background", "surface", "panel")

_DARK: dict[Colours, str] = {
    "truecolor": "#d3d7de #ffffff #98a1ab #656e7a #58a6e0 #e6a54a #ff6b6b #5fc27a #12161c #171c24 #1d2430 #2f3947",
    "256": "#d0d0d0 #ffffff #a8a8a8 #767676 #5fafd7 #d7af5f #ff5f5f #5fd787 #121212 #1c1c1c #262626 #3a3a3a",
    "16": "#ffffff #ffffff #aaaaaa #aaaaaa #55ffff #ffff55 #ff5555 #55ff55 #000000 #000000 #000000 #0000aa",
}
_LIGHT: dict[Colours, str] = {
    "truecolor": "#24292f #000000 #57606a #7b848e #0a5ca8 #8a4b00 #b3261e #116329 #ffffff #f4f5f7 #e9ecef #d5dae0",
    "256": "#262626 #000000 #585858 #808080 #005faf #875f00 #af0000 #005f00 #ffffff #eeeeee #eeeeee #d0d0d0",
    "16": "#000000 #000000 #000000 #555555 #0000aa #aa0000 #aa0000 #00aa00 #ffffff #ffffff #ffffff #aaaaaa",
}
_CONTRAST: dict[Colours, str] = {
    "truecolor": "#ffffff #ffffff #dadada #b2b2b2 #5fd7ff #ffd700 #ff8787 #5fff87 #000000 #000000 #000000 #303030",
    "256": "#ffffff #ffffff #dadada #b2b2b2 #5fd7ff #ffd700 #ff8787 #5fff87 #000000 #000000 #000000 #303030",
    "16": "#ffffff #ffffff #ffffff #ffffff #55ffff #ffff55 #ff5555 #55ff55 #000000 #000000 #000000 #0000aa",
}

_PALETTES = {"dark": _DARK, "light": _LIGHT, "contrast": _CONTRAST}

# Variables of Textual's widgets, and the use whose colour they get.
_TEXTUAL = dict(
    pair.split("=")
    for pair in [
        "text-disabled=dim",
        "block-cursor-foreground=background",
        "block-cursor-background=chart",
        "block-cursor-blurred-foreground=strong",
        "block-cursor-blurred-background=band",
        "block-hover-background=band",
        "input-cursor-foreground=background",
        "input-cursor-background=text",
        "input-selection-foreground=strong",
        "input-selection-background=band",
        "scrollbar=rule",
        "scrollbar-hover=chart",
        "scrollbar-active=chart",
        "scrollbar-background=surface",
        "scrollbar-background-hover=surface",
        "scrollbar-background-active=surface",
        "scrollbar-corner-color=surface",
    ]
)

NAMES = tuple(_PALETTES)
DEFAULT = "dark"


def palette(name: str, colours: Colours = "truecolor") -> dict[str, str]:
    """Return the colours of a theme by use. Raises KeyError."""
    by_use = dict(zip(_USES, _PALETTES[name][colours].split(), strict=True))
    return {**by_use, "mark": by_use["strong"]}


def theme(name: str, colours: Colours = "truecolor") -> Theme:
    """Return the theme for Textual. Raises KeyError."""
    by_use = palette(name, colours)
    return Theme(
        name=name,
        primary=by_use["chart"],
        secondary=by_use["dim"],
        accent=by_use["mark"],
        warning=by_use["warn"],
        error=by_use["alarm"],
        success=by_use["good"],
        foreground=by_use["text"],
        background=by_use["background"],
        surface=by_use["surface"],
        panel=by_use["panel"],
        dark=name != "light",
        variables={
            **_own(by_use),
            **{variable: by_use[use] for variable, use in _TEXTUAL.items()},
        },
    )


def _own(by_use: dict[str, str]) -> dict[str, str]:
    """Return the variables of cockpit's own styles."""
    variables = {f"cockpit-{use}": by_use[use] for use in by_use if use not in _GROUNDS}
    return {**variables, "cockpit-better": by_use["good"], "cockpit-worse": by_use["alarm"]}


# Used until a theme is chosen.
VARIABLES = _own(palette(DEFAULT))
