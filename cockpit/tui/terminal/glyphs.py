"""Filters of finished lines, whichever widget draws them: ASCII replacements of glyphs, no control characters."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from cockpit.model.glyphs import ASCII
from cockpit.model.text import inert

_TABLE = str.maketrans(ASCII)


def to_ascii(text: str, encoding: str = "utf-8") -> str:
    """Replace the glyphs of the table; keep other characters that `encoding` has, replace the rest by `?`."""
    if text.isascii():
        return text
    text = text.translate(_TABLE)
    try:
        text.encode(encoding)
        return text
    except (UnicodeEncodeError, LookupError):
        return "".join(char if _has(char, encoding) else "?" * cell_len(char) for char in text)


def _has(char: str, encoding: str) -> bool:
    try:
        char.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return char.isascii()
    return True


class Inert(LineFilter):
    """Draw no character that a terminal would execute, whichever widget has it. Such characters have no width."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        if all(text.isprintable() for text, _, _ in segments):
            return segments
        return [Segment(inert(text, ""), style, control) for text, style, control in segments]


class Ascii(LineFilter):
    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(to_ascii(text, self._encoding), style, control) for text, style, control in segments]
