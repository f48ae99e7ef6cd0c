"""The list below a host's metrics: processes, cores, disks, interfaces, a status page or a tail."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.model.host.state import HostState
from cockpit.tui.draw_context import PROCESSES, SAR, Detail, DrawContext
from cockpit.tui.hosts.processes import process_table
from cockpit.tui.hosts.sar_table import sar_rows
from cockpit.tui.hosts.status_page import page_rows
from cockpit.tui.hosts.tables import core_rows, disk_rows, net_rows
from cockpit.tui.hosts.tails import draw_tail
from cockpit.tui.terminal.styled_line import DrawnList, Line, clip, left_and_right, padded

_TABLES = {"cores": core_rows, "disks": disk_rows, "nets": net_rows}
# Lists that need two samples.
_SAMPLED = ("processes", *_TABLES)


def draw_detail(host: HostState, context: DrawContext, detail: Detail, role: str, width: int, height: int) -> DrawnList:
    """Draw a list of the host in `height` lines; `role` is the role of plain values."""
    if height < 2 or (host.point is None and detail.kind in _SAMPLED):
        return DrawnList([])
    focused = host is context.host and context.view.list_focused and detail == context.detail(host)
    scroll = context.view.scroll if focused else 0
    view = context.view
    if detail.kind == "tail":
        tail = host.tails[detail.place]
        drawn = draw_tail(tail, scroll, view.paused_tail if focused else None, width, height)
    elif detail == SAR:
        head, titles, rows = sar_rows(host, context.segment, role, width)
        drawn = _scrolled(head, rows, scroll, width, height - 1)
        drawn.lines.insert(1, titles)
    elif detail == PROCESSES:
        drawn = process_table(host, view, focused, role, width, height)
    else:
        table = _TABLES.get(detail.kind)
        head, rows = (
            table(host, role, width) if table else page_rows(host.pages[detail.place], context.hosts_now, role, width)
        )
        drawn = _scrolled(head, rows, scroll, width, height)
    if not focused:
        return drawn
    highlighted = tuple((text, "focus") for text, _ in drawn.lines[0])
    return drawn._replace(lines=[padded(highlighted, width, "focus"), *drawn.lines[1:]])


def _scrolled(head: Line, rows: Sequence[Line], scroll: int, width: int, height: int) -> DrawnList:
    """Return the rows from `scroll` on; the header shows the range if not all rows are visible."""
    room = height - 1
    most = max(0, len(rows) - room)
    first = min(scroll, most)
    seen = rows[first : first + room]
    shown: Line = ((f"{first + 1}–{first + len(seen)} of {len(rows)}", "dim"),)
    return DrawnList([left_and_right(head, shown, width) if most else clip(head, width), *seen], room, most)
