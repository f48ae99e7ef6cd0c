"""The places of the panes by the size of the terminal."""

from __future__ import annotations

LAYOUTS = ("wide", "narrow", "tiny")

# Lines of the verdict: in a narrow terminal, and in a wide one by its minimum height.
_NARROW_VERDICT = 4
_VERDICT = ((34, 9), (0, 5))


def layout_for(width: int, height: int) -> str:
    """Return the layout: "wide" has two columns, "narrow" the left one and a line per host, "tiny" only numbers."""
    if width >= 104 and height >= 28:
        return "wide"
    return "narrow" if width >= 72 and height >= 20 else "tiny"


def verdict_height(layout: str, height: int) -> int:
    """Return the lines of the verdict, also while there is none, so that a verdict moves no pane."""
    if layout == "wide":
        return next(lines for least, lines in _VERDICT if height >= least)
    return _NARROW_VERDICT if layout == "narrow" else 0
