"""Lines with their roles as content of Textual's own widgets."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from cockpit.tui.terminal.styled_line import Line

_STYLES = {
    "strong": "bold $cockpit-strong",
    "dim": "$cockpit-dim",
    "chart": "$cockpit-chart",
    "warn": "$cockpit-warn",
    "rule": "$cockpit-rule",
    "better_value": "$cockpit-better",
    "worse_value": "$cockpit-worse",
    "before": "$cockpit-chart",
    "after": "$cockpit-mark",
    "both": "$cockpit-chart on $cockpit-mark",
}


def content(lines: Sequence[Line]) -> Content:
    """One under the other."""
    pieces: list[str | tuple[str, str]] = []
    for at, line in enumerate(lines):
        pieces += ["\n"] if at else []
        pieces += [(text, _STYLES[role]) if role in _STYLES else text for text, role in line]
    return Content.assemble(*pieces)
