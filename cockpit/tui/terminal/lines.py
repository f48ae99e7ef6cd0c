"""The base of all widgets with numbers: lines of text, of which only changed cells are repainted.

Repainting the whole widget for one number would send ten times as many bytes, also over SSH.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import on
from textual.content import Content
from textual.events import Click
from textual.geometry import Region
from textual.strip import Strip
from textual.visual import VisualType
from textual.widget import Widget

from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.role_styles import HEAT, styles_on
from cockpit.tui.terminal.styled_line import EMPTY, Line, Spot, clip, framed

# Roles with a background, which is visible on a blank.
_FILLED = ("alarm", "better", "worse", "focus", "match", "less", "more", *HEAT)


class Lines(Widget):
    """A widget of lines from `draw(context, width, height)`; the role of a piece is one of ROLES, or "" for plain text.

    `draw` also sets `spots`: a click runs the action of the first spot at that cell.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = "Lines { color: $cockpit-text; }"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.spots: Sequence[Spot] = ()
        self._shown: DrawContext | None = None
        self._lines: list[Line] = []
        self._strips: list[Strip] = []
        self._styles: Mapping[str, Style] = {}

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        """Return at most `height` lines of at most `width` cells; the rest is cut."""
        raise NotImplementedError

    def draw_whole(self, context: DrawContext, width: int, height: int) -> list[Line]:
        """Return the lines of the whole widget."""
        return self.draw(context, width, height)

    def show(self, context: DrawContext) -> None:
        """Repaint the lines that changed."""
        self._shown = context
        self._repaint()

    def on_resize(self) -> None:
        self._lines = []
        self._repaint()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self.is_mounted:
            # The layers below may be updated only after the widget itself.
            self.call_later(self._restyle)

    def _restyle(self) -> None:
        """Redraw if the theme or the background changed."""
        styles = styles_on(self)
        if styles is not self._styles:
            self._styles = styles
            self._lines = []
            self._repaint()

    def _repaint(self) -> None:
        width, height = self.size
        if self._shown is None or not width or not height:
            return
        if not self._styles:
            self._restyle()
            return
        lines = [clip(line, width) for line in self.draw_whole(self._shown, width, height)[:height]]
        lines += [EMPTY] * (height - len(lines))
        whole = len(self._lines) != height
        if whole:
            self._strips = [Strip.blank(width)] * height
        changed = []
        for y, line in enumerate(lines):
            if whole or line != self._lines[y]:
                self._strips[y] = self._strip(line, width)
                if not whole:
                    start, end = _changed_cells(self._lines[y], line, width)
                    changed.append(Region(start, y, end - start, 1))
        self._lines = lines
        if whole:
            self.refresh()
        elif changed:
            self.refresh(*changed)

    @on(Click)
    async def run_spot(self, event: Click) -> None:
        """Run the action of the clicked spot."""
        at = event.get_content_offset(self)
        hit = (spot for spot in self.spots if at is not None and spot.y == at.y and spot.start <= at.x < spot.end)
        if (spot := next(hit, None)) is not None:
            event.stop()
            await self.app.run_action((spot.namespace, spot.action, spot.arguments), self.screen)

    @property
    def tooltip(self) -> VisualType | None:
        from cockpit.tui.tips import tip

        at = self.app.mouse_position - self.content_region.offset
        text = tip(type(self).__name__, self._lines, at.x, at.y)
        return None if text is None else Content(text)

    @tooltip.setter
    def tooltip(self, tooltip: VisualType | None) -> None:
        """Computed from the shown lines."""

    def render_line(self, y: int) -> Strip:
        if y < len(self._strips):
            return self._strips[y]
        return Strip.blank(self.size.width, self.rich_style)

    def _strip(self, line: Line, width: int) -> Strip:
        segments = []
        filled = 0
        for text, role in _joined(line):
            segments.append(Segment(text, self._styles[role]))
            filled += cell_len(text)
        if filled < width:
            segments.append(Segment(" " * (width - filled), self._styles[""]))
        return Strip(segments, width)


class Pane(Lines):
    """Lines between the sides of a frame, which is continued by the panes above and below.

    `opens`: the first line has the upper corners. `closes`: in a wide terminal the last line is the lower edge.
    """

    opens: ClassVar[bool] = False
    closes: ClassVar[bool] = False

    @property
    def inner_width(self) -> int:
        return max(0, self.size.width - 2)

    def has_keys(self, context: DrawContext) -> bool:
        """Return whether the arrows act on this pane; its frame is then brighter."""
        return False

    def draw_whole(self, context: DrawContext, width: int, height: int) -> list[Line]:
        bottom = self.closes and self.screen.has_class("-wide")
        lines = self.draw(context, max(0, width - 2), height - bottom)
        self.spots = [spot.moved(1, 0) for spot in self.spots]
        role = "chart" if self.has_keys(context) else "frame"
        return framed(lines, width, height, role, top=self.opens, bottom=bottom)


def _changed_cells(old: Line, new: Line, width: int) -> tuple[int, int]:
    """Return the first and the end of the cells in which two lines of `width` cells differ."""
    before, after = ([(char, role) for text, role in line for char in text] for line in (old, new))
    same = next((at for at, (was, now) in enumerate(zip(before, after, strict=False)) if was != now), None)
    start = min(len(before), len(after)) if same is None else same
    left = cell_len("".join(char for char, _ in after[:start]))
    if cell_len("".join(char for char, _ in before)) != (total := cell_len("".join(char for char, _ in after))):
        return left, width
    tail = 0
    while tail < min(len(before), len(after)) - start and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return left, total - cell_len("".join(char for char, _ in after[len(after) - tail :]))


def _joined(line: Line) -> Line:
    """Join adjacent pieces of one role, and blanks with the piece before them: each piece costs about 40 bytes."""
    pieces: list[tuple[str, str]] = []
    for text, role in line:
        if not text:
            continue
        blank = text.isspace() and role not in _FILLED
        if pieces and (pieces[-1][1] == role or (blank and pieces[-1][1] not in _FILLED)):
            pieces[-1] = (pieces[-1][0] + text, pieces[-1][1])
        else:
            pieces.append((text, role))
    return tuple(pieces)
