"""Lines as data: pieces of text, each with a role. Widths are terminal cells, so that wide characters stay aligned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from cockpit.tui.terminal.role_styles import text_style

# (text, role): the role names a style of `Lines`, "" is plain text.
Piece = tuple[str, str]
Line = tuple[Piece, ...]

EMPTY: Line = ()
# Between two entries of a line.
GAP = "  "
# The start of a rule.
_RULE: Piece = ("─ ", "frame")


class Spot(NamedTuple):
    """Clickable cells of line `y`, from `start` up to but excluding `end`; a click runs the action of the screen,
    or of the app."""

    y: int
    start: int
    end: int
    action: str
    arguments: tuple[int | str, ...] = ()
    namespace: str = "screen"

    def moved(self, x: int, y: int) -> Spot:
        return self._replace(start=self.start + x, end=self.end + x, y=self.y + y)


class DrawnList(NamedTuple):
    """Lines of a list; `page` is the number of visible entries, `most` the last entry to which it scrolls."""

    lines: list[Line]
    page: int = 1
    most: int = 0
    spots: tuple[Spot, ...] = ()


def fit(text: str, width: int) -> str:
    """Return `text` in exactly `width` cells: padded on the right, or cut with `…`."""
    if width <= 0:
        return ""
    length = cell_len(text)
    if length <= width:
        return text + " " * (width - length)
    return set_cell_size(text, width - 1) + "…"


def right(text: str, width: int) -> str:
    """Return `text` in exactly `width` cells, padded on the left, or cut with `…`."""
    length = cell_len(text)
    return " " * (width - length) + text if length <= width else fit(text, width)


def middle(text: str, width: int) -> str:
    space = max(0, width - cell_len(text)) // 2
    return fit(" " * space + text, width)


def length(line: Line) -> int:
    """Return the number of cells."""
    return sum(cell_len(text) for text, _ in line)


def clip(line: Line, width: int) -> Line:
    """Cut the line to `width` cells, with `…` at the cut."""
    if length(line) <= width:
        return line
    kept: list[Piece] = []
    for text, role in line:
        taken = cell_len(text)
        if taken >= width:
            kept.append((fit(text + " " * (width + 1), width), role))
            break
        kept.append((text, role))
        width -= taken
    return tuple(kept)


def left_and_right(start: Line, end: Line, width: int) -> Line:
    """Put `start` on the left and `end` on the right; cut `start` if both do not fit."""
    room = width - length(end)
    if room < 4:
        return clip(start, width)
    start = clip(start, room - 1)
    return (*start, (" " * (room - length(start)), ""), *end)


def rule(title: Line, end: Line, width: int) -> Line:
    """Return a pane's title line: a rule with the title on the left, and `end` on the right, cut from its start."""
    first: Line = (_RULE, *title, (" ", ""))
    while end and length(end) > width - min(length(first), 24) - 4:
        end = end[1:]
    last: Line = ((" ", ""), *end, (" ─", "frame")) if end else ()
    room = width - length(last)
    if room < 8:
        first, last, room = clip(first, width), (), width
    first = clip(first, room)
    return (*first, ("─" * (room - length(first)), "frame"), *last)


def framed(lines: Sequence[Line], width: int, height: int, role: str, *, top: bool, bottom: bool) -> list[Line]:
    """Return `height` lines with the sides of a frame, `width` cells wide; a rule joins both sides.

    `top`: a rule in the first line has the upper corners; `bottom`: the last line is the lower edge.
    """
    inner = width - 2
    drawn: list[Line] = []
    for y in range(height):
        line = lines[y] if y < len(lines) else EMPTY
        left, right_ = "│", "│"
        if bottom and y == height - 1:
            left, right_, line = "╰", "╯", (("─" * inner, "frame"),)
        elif line[:1] == (_RULE,):
            left, right_ = ("╭", "╮") if top and not y else ("├", "┤")
        drawn.append(((left, role), *padded(line, inner), (right_, role)))
    return drawn


def join_fitting(parts: Iterable[Line], width: int, gap: str = GAP) -> Line:
    """Join the parts in order, without those that do not fit."""
    line: Line = ()
    room = width
    for part in parts:
        start: Line = ((gap, ""),) if line else ()
        added = length(start) + length(part)
        if added <= room:
            line = (*line, *start, *part)
            room -= added
    return line


def first_visible(selected: int, room: int, total: int) -> int:
    """Return the first visible entry of a list with `room` lines, so that the selected entry is in the middle."""
    return max(0, min(selected - room // 2, total - room))


def padded(line: Line, width: int, role: str = "") -> Line:
    line = clip(line, width)
    return (*line, (" " * (width - length(line)), role))


def side_by_side(columns: Sequence[Sequence[Line]], width: int, gap: Piece = (" │ ", "rule")) -> list[Line]:
    """Put columns of lines side by side, each `width` cells wide."""
    rows = zip_longest(*columns, fillvalue=EMPTY)
    return [tuple(piece for cell in row for piece in (gap, *padded(cell, width)))[1:] for row in rows]


def pairs(values: Iterable[tuple[str, str]], role: str = "", head: str = "") -> Line:
    """Return `head name value name value`; `head` is five cells wide."""
    line: list[Piece] = [(fit(head, 5), "dim")] if head else []
    for name, value in values:
        line += [(name, "dim"), (value, role)]
    return tuple(line)


def centred(texts: Sequence[Piece], width: int, height: int) -> list[Line]:
    """Return the wrapped texts in the middle of an area; `…` ends the last line if there are more."""
    lines = [(line, role) for text, role in texts for line in wrap(text, max(8, width - 4)) or [""]]
    if len(lines) > height > 0:
        lines = [*lines[: height - 1], (f"{lines[height - 1][0]} …", lines[height - 1][1])]
    above = max(0, (height - len(lines)) // 2)
    return [EMPTY] * above + [((middle(text, width), role),) for text, role in lines]


def content(lines: Sequence[Line]) -> Content:
    """Return the lines as Textual content; leading blanks join the piece before them, because SVG drops them."""
    pieces: list[tuple[str, str]] = []
    for at, line in enumerate(lines):
        pieces += [("\n", "")] if at else []
        for text, role in line:
            blanks = len(text) - len(text.lstrip(" "))
            if pieces and " on " not in pieces[-1][1]:
                pieces[-1] = (pieces[-1][0] + text[:blanks], pieces[-1][1])
                text = text[blanks:]
            pieces.append((text, text_style(role)))
    return Content.assemble(*((text, style) if style else text for text, style in pieces if text))
