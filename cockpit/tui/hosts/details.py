"""The list below a host's metrics: its processes, cores, disks, interfaces, a status page, a tail, averages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cockpit.model.host_state import HostState
from cockpit.tui.draw_context import PROCESSES, Detail, DrawContext
from cockpit.tui.hosts.averages import averages_rows
from cockpit.tui.hosts.pages import page_rows
from cockpit.tui.hosts.processes import process_table
from cockpit.tui.hosts.tables import core_rows, disk_rows, net_rows
from cockpit.tui.hosts.tails import draw_tail
from cockpit.tui.terminal.styled_line import EMPTY, Line, clip, ends, length, padded

# Derived from two samples: empty before the second.
_SAMPLED = ("processes", "cores", "disks", "nets")


class Reach(NamedTuple):
    """How many lines of a detail are in sight, and how far it can be scrolled."""

    page: int = 1
    most: int = 0


class Drawn(NamedTuple):
    """Lines of a detail, and how far they can be scrolled."""

    lines: list[Line]
    reach: Reach


def draw_detail(host: HostState, scene: DrawContext, role: str, width: int, height: int) -> Drawn:
    """Draw the chosen list of the host in `height` lines; `role` is that of plain numbers."""
    detail = scene.detail(host)
    if height < 2 or (host.point is None and detail.kind in _SAMPLED):
        return Drawn([], Reach())
    mine = host is scene.host and scene.view.inside
    view = scene.view
    if detail.kind == "tail":
        tail = host.tails[detail.place]
        drawn = draw_tail(tail, view.scroll if mine else 0, view.held if mine else None, width, height)
        return Drawn([_head(drawn.lines[0], mine, width), *drawn.lines[1:]], Reach(height - 1, drawn.most))
    if detail == PROCESSES:
        table = process_table(host, view, mine, role, width, height)
        return Drawn([_head(table.lines[0], mine, width), *table.lines[1:]], Reach(table.page, table.most))
    head, rows = _rows(host, scene, detail, role, width)
    return _scrolled(head, rows, view.scroll if mine else 0, mine, width, height)


def _rows(host: HostState, scene: DrawContext, detail: Detail, role: str, width: int) -> tuple[Line, Sequence[Line]]:
    match detail.kind:
        case "cores":
            return core_rows(host, role, width)
        case "disks":
            return disk_rows(host, role, width)
        case "nets":
            return net_rows(host, role, width)
        case "page":
            return page_rows(host.pages[detail.place], scene.hosts_now, role, width)
        case _:
            return averages_rows(host, scene.row, width)


def _scrolled(head: Line, rows: Sequence[Line], scroll: int, mine: bool, width: int, height: int) -> Drawn:
    """Return the rows from `scroll` on; the head shows the range if not all are visible."""
    room = height - 1
    most = max(0, len(rows) - room)
    first = min(scroll, most)
    seen = rows[first : first + room]
    said: Line = ((f"{first + 1}–{first + len(seen)} of {len(rows)}", "dim"),) if most else EMPTY
    line = ends(head, said, width) if length(said) else clip(head, width)
    return Drawn([_head(line, mine, width), *seen], Reach(room, most))


def _head(line: Line, mine: bool, width: int) -> Line:
    """Highlight the first line of the focused list."""
    return padded(tuple((text, "focus") for text, _ in line), width, "focus") if mine else line
