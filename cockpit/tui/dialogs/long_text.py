"""A scrollable text that draws only its visible lines, so that long texts open as fast as short ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.events import Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from cockpit.tui.terminal.role_styles import styles_on
from cockpit.tui.terminal.styled_line import Line, clip

# Cells of border and padding, and of the scroll bar.
_FRAME, _BAR = 4, 1


class LongText(ScrollView, can_focus=True):
    """A scrollable text; `lines_for(width)` returns its lines."""

    DEFAULT_CSS = "LongText { color: $cockpit-text; scrollbar-size: 1 1; overflow-x: hidden; }"

    def __init__(self, lines_for: Callable[[int], Sequence[Line]]) -> None:
        super().__init__()
        self._lines_for = lines_for
        self._lines: Sequence[Line] = ()
        self._width = 0
        self._styles: Mapping[str, Style] = {}

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles = {}

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
        # Computed once: a style of Textual is computed from all layers below, for each line again.
        self._styles = self._styles or styles_on(self)
        plain = self._styles[""]
        if at >= len(self._lines):
            return Strip.blank(width, plain)
        pieces = [Segment(text, self._styles[role]) for text, role in clip(self._lines[at], width) if text]
        filled = sum(cell_len(piece.text) for piece in pieces)
        return Strip([*pieces, Segment(" " * (width - filled), plain)], width)
