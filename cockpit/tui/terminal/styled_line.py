"""Lines as data: pieces of text, each with a role. Widths are terminal cells, so that wide characters stay aligned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap

from rich.cells import cell_len, set_cell_size

# (text, role): the role names a style of `Lines`, "" is plain text.
Piece = tuple[str, str]
Line = tuple[Piece, ...]

EMPTY: Line = ()


def fit(text: str, width: int) -> str:
    """`text` in exactly `width` cells: padded on the right, or cut with `…`."""
    if width <= 0:
        return ""
    length = cell_len(text)
    if length <= width:
        return text + " " * (width - length)
    return set_cell_size(text, width - 1) + "…"


def right(text: str, width: int) -> str:
    """`text` in exactly `width` cells, padded on the left, or cut with `…`."""
    length = cell_len(text)
    return " " * (width - length) + text if length <= width else fit(text, width)


def middle(text: str, width: int) -> str:
    """`text` in the middle of `width` cells."""
    space = max(0, width - cell_len(text)) // 2
    return fit(" " * space + text, width)


def length(line: Line) -> int:
    """Cells that the line takes."""
    return sum(cell_len(text) for text, _ in line)


def clip(line: Line, width: int) -> Line:
    """The line cut to `width` cells, with `…` where something is missing."""
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


def ends(start: Line, end: Line, width: int) -> Line:
    """`start` on the left, `end` on the right; the start gives way."""
    room = width - length(end)
    if room < 4:
        return clip(start, width)
    start = clip(start, room - 1)
    return (*start, (" " * (room - length(start)), ""), *end)


def rule(title: Line, end: Line, width: int) -> Line:
    """A pane's first line: a thin rule with the title on the left and figures on the right, of which the last ones stay
    where there is not room for all."""
    first: Line = (("─ ", "rule"), *title, (" ", ""))
    while end and length(end) > width - min(length(first), 24) - 4:
        end = end[1:]
    last: Line = ((" ", ""), *end, (" ─", "rule")) if end else ()
    room = width - length(last)
    if room < 8:
        first, last, room = clip(first, width), (), width
    first = clip(first, room)
    return (*first, ("─" * (room - length(first)), "rule"), *last)


def packed(parts: Iterable[Line], width: int, gap: str = "  ") -> Line:
    """As many whole parts as fit, in order; what does not fit is left out."""
    line: Line = ()
    for part in parts:
        longer = (*line, (gap, ""), *part) if line else part
        if length(longer) <= width:
            line = longer
    return line


def padded(line: Line, width: int, role: str = "") -> Line:
    """The line in exactly `width` cells."""
    line = clip(line, width)
    return (*line, (" " * (width - length(line)), role))


def beside(columns: Sequence[Sequence[Line]], width: int, height: int) -> list[Line]:
    """Columns of lines side by side, each `width` cells wide, a thin line between them."""
    lines: list[Line] = []
    for y in range(height):
        line: list[Piece] = []
        for at, column in enumerate(columns):
            line += [(" │ ", "rule")] if at else []
            line += padded(column[y] if y < len(column) else EMPTY, width)
        lines.append(tuple(line))
    return lines


def pairs(figures: Iterable[tuple[str, str]], role: str = "", head: str = "") -> Line:
    """`name figure name figure`, names in the background; `head` in five cells before them."""
    line: list[Piece] = [(fit(head, 5), "dim")] if head else []
    for name, figure in figures:
        line += [(name, "dim"), (figure, role)]
    return tuple(line)


def centred(texts: Sequence[Piece], width: int, height: int) -> list[Line]:
    """Texts one under the other in the middle of an area, those that are too long over several lines."""
    lines = [(line, role) for text, role in texts for line in wrap(text, max(8, width - 4)) or [""]]
    above = max(0, (height - len(lines)) // 2)
    return [EMPTY] * above + [((middle(text, width), role),) for text, role in lines]
