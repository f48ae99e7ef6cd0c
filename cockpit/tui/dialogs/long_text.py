"""A scrollable text that draws only its visible lines, so that long texts open as fast as short ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.events import Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from cockpit.tui.terminal.styled_line import Line, clip

# Cells of border and padding, and of the scroll bar.
_FRAME, _BAR = 4, 1


class LongText(ScrollView, can_focus=True):
    """A scrollable text; `lines_for(width)` returns its lines, whose roles are "", "strong" and "heading"."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"long-text--strong", "long-text--heading"}
    DEFAULT_CSS = """
    LongText { color: $cockpit-text; scrollbar-size: 1 1; overflow-x: hidden; }
    LongText > .long-text--strong { color: $cockpit-strong; text-style: bold; }
    LongText > .long-text--heading { color: $cockpit-strong; text-style: bold underline; }
    """

    def __init__(self, lines_for: Callable[[int], Sequence[Line]]) -> None:
        super().__init__()
        self._lines_for = lines_for
        self._lines: Sequence[Line] = ()
        self._width = 0

    def fit(self, width: int) -> None:
        """Wrap the text for a box of this width, and set the height to its number of lines."""
        if width != self._width:
            self._width = width
            room = max(1, width - _FRAME - _BAR)
            self._lines = self._lines_for(room)
            self.virtual_size = Size(room, len(self._lines))
            self.styles.height = len(self._lines) + 2

    def on_resize(self, event: Resize) -> None:
        self.fit(self.outer_size.width)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        at = y + self.scroll_offset.y
        plain = self.rich_style
        if at >= len(self._lines):
            return Strip.blank(width, plain)
        pieces = [Segment(text, self._style(role)) for text, role in clip(self._lines[at], width) if text]
        filled = sum(cell_len(piece.text) for piece in pieces)
        return Strip([*pieces, Segment(" " * (width - filled), plain)], width)

    def _style(self, role: str) -> Style:
        return self.get_component_rich_style(f"long-text--{role}") if role else self.rich_style
