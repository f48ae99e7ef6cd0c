"""The places of the panes by the size of the terminal."""

from __future__ import annotations

LAYOUTS = ("wide", "narrow", "tiny")

# Minimum height (lines) of a wide terminal for all parts of the verdict; its lines there, and elsewhere.
_TALL = 34
_WHOLE, _COMPACT = 8, 4


def layout_for(width: int, height: int) -> str:
    """Return the layout: "wide" has two columns, "narrow" the left one and a line per host, "tiny" only numbers."""
    if width >= 104 and height >= 28:
        return "wide"
    return "narrow" if width >= 72 and height >= 20 else "tiny"


def verdict_height(layout: str, height: int) -> int:
    """Return the lines of the verdict, also while there is none, so that a verdict moves no pane."""
    if layout == "tiny":
        return 0
    return _WHOLE if layout == "wide" and height >= _TALL else _COMPACT
