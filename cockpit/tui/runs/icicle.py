"""A call tree as an icicle of lines: callers above their callees, as wide as their CPU. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

from rich.cells import set_cell_size

from cockpit.analysis.stacks.call_tree import Box, CallNode, CallTree, StackChange
from cockpit.model.stacks import KERNEL
from cockpit.model.text import sanitize
from cockpit.tui.terminal.styled_line import Line, Piece, Spot, first_visible, fit

# Boxes of at most this many cells have no ellipsis.
_NARROW = 5
# Callers named in the top row.
_CALLERS = 2
Path = tuple[str, ...]


class StacksView(NamedTuple):
    """The user's view of CPU profiles: a segment's number, with its difference to the baseline or without, the index
    of a host, the kernel counters instead of the profile, the frames down to the top of the drawing and to the selected
    box, a text to highlight, and the number of hidden functions above the table."""

    number: int
    difference: bool = True
    host: int = 0
    counters: bool = False
    top: Path = ()
    selected: Path = ()
    search: str = ""
    above: int = 0


class Icicle(NamedTuple):
    """Drawn lines, a clickable spot per box, and the boxes in cells by depth (the row in the drawing)."""

    lines: list[Line]
    spots: list[Spot]
    rows: list[list[CellBox]]


class CellBox(NamedTuple):
    """A box from cell `start` up to but excluding `end`."""

    start: int
    end: int
    node: CallNode


def icicle(tree: CallTree, view: StacksView, width: int, height: int) -> Icicle:
    """Return at most `height` lines with the selected box. A click on a box runs `frame(DEPTH, INDEX)`."""
    top, selected = tree.at(view.top), tree.at(view.selected)
    rows = cell_rows(tree.boxes(top, 0.5 / max(1, width)), width)
    depth = next((y for y, row in enumerate(rows) if any(box.node is selected for box in row)), 0)
    first = first_visible(depth, height, len(rows))
    lines: list[Line] = []
    spots: list[Spot] = []
    for y, row in enumerate(rows[first : first + height]):
        line: list[Piece] = []
        cell = 0
        for at, box in enumerate(row):
            line += [(" " * (box.start - cell), ""), _piece(tree, box, _name(box.node, top), selected, view.search)]
            cell = box.end
            spots.append(Spot(y, box.start, box.end, "frame", (first + y, at)))
        lines.append(tuple(line))
    return Icicle(lines, spots, rows)


def cell_rows(boxes: Sequence[Box], width: int) -> list[list[CellBox]]:
    """Return the boxes of at least one cell by depth; the others are blank."""
    rows: list[list[CellBox]] = []
    for box in boxes:
        start, end = round(box.start * width), round(box.end * width)
        if start < end:
            if box.depth == len(rows):
                rows.append([])
            rows[box.depth].append(CellBox(start, end, box.node))
    return rows


def _name(node: CallNode, top: CallNode) -> str:
    """Return the name of a frame; of the top with its nearest callers."""
    names = (*["…"] * (len(top.path) > _CALLERS + 1), *top.path[-1 - _CALLERS :])
    return sanitize(" → ".join(names) if node is top and names else node.frame)


def _piece(tree: CallTree, box: CellBox, name: str, selected: CallNode, search: str) -> Piece:
    """Return the text of a box and its role. A sign shows a change, and a triangle a match, also without colours."""
    node, width = box.node, box.end - box.start
    change, matches = tree.change(node), is_match(node.frame, search)
    edge, sign = "▸" if matches else "▏", ""
    if change.clear:
        sign = str(change)
        sign = f"{sign} " if width > len(sign) + len(name) + 1 else sign[0]
        edge = edge if width > 2 or matches else ""
    percent = f" {tree.percent(node):.1f}%"
    text = edge + sign + name + (percent if tree.scale.before is None and width > len(name) + len(percent) else "")
    role = "focus" if node is selected else "match" if matches else shade(node.frame)
    if role not in ("focus", "match") and sign:
        large = abs(change.points) > tree.weight(node) / 2
        role = change_role(change, *(("better", "worse") if large else ("less", "more")))
    # In a narrow box two more letters say more than an ellipsis.
    return set_cell_size(text, width) if width <= _NARROW else fit(text, width), role


def shade(frame: str) -> str:
    """Return the role of a frame: kernel functions are the darkest, neighbours often differ."""
    return "on_heat3" if frame.endswith(KERNEL) else f"on_heat{1 + crc32(frame.encode()) % 2}"


def is_match(frame: str, search: str) -> bool:
    return bool(search) and search.casefold() in frame.casefold()


def change_role(change: StackChange, better: str, worse: str, unclear: str = "") -> str:
    """Return the role of a change of CPU/request, of which less is better."""
    return unclear if not change.clear else better if change.points < 0 else worse


def moved(tree: CallTree, view: StacksView, rows: list[list[CellBox]], x: int, y: int) -> StacksView:
    """Select the box `x` boxes beside the selected one, or its caller (`y` < 0) or widest callee (`y` > 0).

    Above the top, the caller of the top becomes the top.
    """
    places = ((depth, at) for depth, row in enumerate(rows) for at, box in enumerate(row))
    chosen = tree.at(view.selected)
    depth, at = next(((depth, at) for depth, at in places if rows[depth][at].node is chosen), (0, 0))
    row, selected = rows[depth], rows[depth][at].node
    if x:
        return view._replace(selected=row[max(0, min(at + x, len(row) - 1))].node.path)
    if y > 0:
        callees = (box.node for row in rows[depth + 1 : depth + 2] for box in row if box.node.parent is selected)
        return view._replace(selected=next(callees, selected).path)
    caller = view.selected[:-1] if depth else view.top[:-1]
    return view._replace(selected=caller, top=view.top if depth else caller)


def zoomed_out(tree: CallTree, view: StacksView) -> StacksView:
    """Show the innermost caller of the top that is wider than the top."""
    top = tree.at(view.top)
    wider = top.parent
    while wider is not None and wider.parent is not None and tree.weight(wider) <= tree.weight(top):
        wider = wider.parent
    return view._replace(top=() if wider is None else wider.path)
