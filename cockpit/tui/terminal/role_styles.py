"""Styles of the roles of text: made once per theme and background, shared by all widgets.

Component classes would do the same, but Textual matches each of them again, in every widget, whenever a class changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from rich.style import Style
from textual.color import Color


class _Look(NamedTuple):
    """Colours by their names in the theme, with how much of them there is, and the weight."""

    colour: str
    share: float = 1.0
    ground: str = ""
    ground_share: float = 1.0
    weight: str = ""


# Shades of a heat map, the faintest first, and a line drawn over each; glyphs distinguish them, too.
HEAT = ("heat1", "heat2", "heat3", "heat4", "on_heat1", "on_heat2", "on_heat3", "on_heat4")

_LOOKS = {
    "text": _Look("cockpit-text"),
    "strong": _Look("cockpit-strong", weight="bold"),
    "dim": _Look("cockpit-dim"),
    "rule": _Look("cockpit-rule"),
    "chart": _Look("cockpit-chart"),
    "mark": _Look("cockpit-mark", weight="bold"),
    "warn": _Look("cockpit-warn"),
    "better": _Look("cockpit-better", weight="bold"),
    "worse": _Look("cockpit-worse", weight="bold"),
    "better_value": _Look("cockpit-better"),
    "worse_value": _Look("cockpit-worse"),
    "alarm": _Look("cockpit-alarm", weight="bold reverse"),
    "key": _Look("cockpit-strong", weight="bold"),
    "focus": _Look("cockpit-strong", ground="cockpit-band"),
    "band": _Look("cockpit-chart", ground="cockpit-band"),
    "heat1": _Look("cockpit-chart", 0.55, "cockpit-chart", 0.15),
    "heat2": _Look("cockpit-chart", 0.70, "cockpit-chart", 0.35),
    "heat3": _Look("cockpit-chart", 0.90, "cockpit-chart", 0.60),
    "heat4": _Look("cockpit-chart", 1.00, "cockpit-chart"),
    "on_heat1": _Look("cockpit-strong", 1.0, "cockpit-chart", 0.15),
    "on_heat2": _Look("cockpit-strong", 1.0, "cockpit-chart", 0.35),
    "on_heat3": _Look("cockpit-strong", 1.0, "cockpit-chart", 0.60),
    "on_heat4": _Look("background", 1.0, "cockpit-chart"),
}
# Without colours, weights replace backgrounds.
_COLOURLESS = {"focus": "bold reverse", "band": "underline"}

ROLES = tuple(_LOOKS)
COLOURS = tuple(dict.fromkeys(name for look in _LOOKS.values() for name in (look.colour, look.ground) if name))


@lru_cache(maxsize=64)
def role_styles(colours: tuple[str, ...], ground: Color, colourless: bool) -> Mapping[str, Style]:
    """Return the style of each role, "" being plain text. `colours` are for COLOURS; `ground` is the background."""
    of = dict(zip(COLOURS, map(Color.parse, colours), strict=True))
    styles = {role: _style(look, of, ground) for role, look in _LOOKS.items()}
    if colourless:
        styles |= {role: styles[role] + Style.parse(weight) for role, weight in _COLOURLESS.items()}
    return MappingProxyType({"": styles["text"], **styles})


def _style(look: _Look, of: Mapping[str, Color], ground: Color) -> Style:
    below = ground + of[look.ground].multiply_alpha(look.ground_share) if look.ground else ground
    above = below + of[look.colour].multiply_alpha(look.share)
    return Style.parse(look.weight) + Style.from_color(above.rich_color, below.rich_color if below.a else None)
