"""Styles of the roles of text, computed once per theme and background and shared by all widgets.

Textual's component classes would be matched again in every widget whenever a class changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from rich.style import Style
from textual.color import Color
from textual.widget import Widget


class _RoleStyle(NamedTuple):
    """Names of theme colours for text and background, their opacities, and the text's weight."""

    colour: str
    share: float = 1.0
    ground: str = ""
    ground_share: float = 1.0
    weight: str = ""


# Shades of a heat map, the faintest first, then the styles of text over them.
HEAT = ("heat1", "heat2", "heat3", "heat4", "on_heat1", "on_heat2", "on_heat3", "p50", "p99")

_STYLES = {
    "text": _RoleStyle("cockpit-text"),
    "strong": _RoleStyle("cockpit-strong", weight="bold"),
    "dim": _RoleStyle("cockpit-dim"),
    "rule": _RoleStyle("cockpit-rule"),
    "frame": _RoleStyle("cockpit-rule", 0.7),
    "title": _RoleStyle("cockpit-chart", weight="bold"),
    "chart": _RoleStyle("cockpit-chart"),
    "faint": _RoleStyle("cockpit-chart", 0.65),
    "mark": _RoleStyle("cockpit-mark", weight="bold"),
    "marked": _RoleStyle("cockpit-mark", 0.5),
    "warn": _RoleStyle("cockpit-warn"),
    "better": _RoleStyle("cockpit-better", weight="bold reverse"),
    "worse": _RoleStyle("cockpit-worse", weight="bold reverse"),
    "better_value": _RoleStyle("cockpit-better"),
    "worse_value": _RoleStyle("cockpit-worse"),
    "alarm": _RoleStyle("cockpit-alarm", weight="bold reverse"),
    "failed": _RoleStyle("cockpit-alarm", weight="bold"),
    "key": _RoleStyle("cockpit-strong", weight="bold"),
    "focus": _RoleStyle("cockpit-strong", ground="cockpit-band"),
    "before": _RoleStyle("cockpit-chart"),
    "after": _RoleStyle("cockpit-strong"),
    "both": _RoleStyle("cockpit-chart", ground="cockpit-strong"),
    "match": _RoleStyle("cockpit-warn", weight="bold reverse"),
    "less": _RoleStyle("cockpit-better", 1.0, "cockpit-chart", 0.15),
    "more": _RoleStyle("cockpit-worse", 1.0, "cockpit-chart", 0.15),
    "heat1": _RoleStyle("cockpit-chart", 0.55, "cockpit-chart", 0.15),
    "heat2": _RoleStyle("cockpit-chart", 0.70, "cockpit-chart", 0.35),
    "heat3": _RoleStyle("cockpit-chart", 0.90, "cockpit-chart", 0.60),
    "heat4": _RoleStyle("cockpit-chart", 1.00, "cockpit-chart"),
    "on_heat1": _RoleStyle("cockpit-strong", 1.0, "cockpit-chart", 0.15),
    "on_heat2": _RoleStyle("cockpit-strong", 1.0, "cockpit-chart", 0.35),
    "on_heat3": _RoleStyle("cockpit-strong", 1.0, "cockpit-chart", 0.60),
    # A dark line on light cells and a light one on dark cells, which colour-blind people distinguish too.
    "p50": _RoleStyle("background", 1.0, "cockpit-chart", weight="bold"),
    "p99": _RoleStyle("cockpit-strong", 1.0, "cockpit-chart", 0.25, weight="bold"),
}
# Without colours, weights replace backgrounds.
_COLOURLESS = {"focus": "bold reverse", "marked": "bold"}

ROLES = tuple(_STYLES)
COLOURS = tuple(dict.fromkeys(name for style in _STYLES.values() for name in (style.colour, style.ground) if name))


def text_style(role: str) -> str:
    """Return the role's style in Textual's markup; "" for an unknown role and for shades of a heat map."""
    style = _STYLES.get(role)
    if style is None or role in HEAT:
        return ""
    ground = f" on ${style.ground}" if style.ground else ""
    return f"{style.weight} ${style.colour} {style.share:.0%}{ground}".lstrip()


def styles_on(widget: Widget) -> Mapping[str, Style]:
    """Return the style of each role on the widget's background, in the current theme."""
    colours = tuple(widget.app.theme_variables[name] for name in COLOURS)
    return _role_styles(colours, widget.background_colors[1], widget.app.no_color)


@lru_cache(maxsize=64)
def _role_styles(colours: tuple[str, ...], ground: Color, colourless: bool) -> Mapping[str, Style]:
    """Return the style of each role ("": plain text). `colours` are the values of COLOURS, `ground` the background."""
    parsed = dict(zip(COLOURS, map(Color.parse, colours), strict=True))
    styles = {role: _style(style, parsed, ground) for role, style in _STYLES.items()}
    if colourless:
        styles |= {role: styles[role] + Style.parse(weight) for role, weight in _COLOURLESS.items()}
    return MappingProxyType({"": styles["text"], **styles})


def _style(style: _RoleStyle, colours: Mapping[str, Color], ground: Color) -> Style:
    background = ground + colours[style.ground].multiply_alpha(style.ground_share) if style.ground else ground
    text = background + colours[style.colour].multiply_alpha(style.share)
    return Style.parse(style.weight) + Style.from_color(
        text.rich_color, background.rich_color if background.a else None
    )
