"""A host's processes with the columns of `ps aux`, sorted, filtered and scrolled."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import NamedTuple

from rich.cells import cell_len

from cockpit.model.host_state import HostState, ProcessRow
from cockpit.model.hosts import ProcessCounters
from cockpit.model.text import neutral, size
from cockpit.tui.draw_context import ProcessOrder, View
from cockpit.tui.terminal.styled_line import EMPTY, DrawnList, Line, ends, fit, packed, padded, right

_DAY = 24 * 3600

# Lines for the command of the selected process, and the minimum height of a table with them.
_COMMAND = 2
IN_FULL = 2 + _COMMAND
_TALL = 12


class ProcessColumn(NamedTuple):
    """Shown in tables of at least `need` cells, and in all that are sorted by it (`order`)."""

    title: str
    width: int
    need: int
    order: ProcessOrder | None
    text: Callable[[ProcessRow, HostState], str]


def process_table(host: HostState, view: View, mine: bool, role: str, width: int, height: int) -> DrawnList:
    """Return a header and the processes that fit, the rest as a number. `role` is that of plain numbers; `mine`: the
    arrows act on this table, so that one of its rows is selected."""
    rows = chosen_rows(host, view)
    at = place_of(rows, view) if mine else 0
    columns = columns_for(view, width)
    digits = max(5, *(len(str(row.process.pid)) for row in host.processes), 0)
    below = in_full(rows[at], host, width) if mine and rows and height >= _TALL else []
    room = height - 1 - len(below)
    first = max(0, min(at - room // 2, len(rows) - room))
    seen = rows[first : first + room]
    head = _header(columns, digits, view) + " " + _head("COMMAND", "command", view)
    lines: list[Line] = [ends(((head, "dim"),), _range(host, rows, first, len(seen), view), width)]
    for number, row in enumerate(seen, first):
        lines.append(_row(row, host, columns, digits, role, width, mine and number == at))
    if not rows:
        lines.append(((_no_rows(host, view), "dim"),))
    lines += [EMPTY] * (room - len(seen)) if below else []
    return DrawnList(lines + below, room, max(0, len(rows) - 1))


def _no_rows(host: HostState, view: View) -> str:
    if host.processes:
        return f"none of {len(host.processes)} has “{neutral(view.filter, 30)}” in its PID or command; / changes that"
    return f"no process is called {neutral(host.config.processes or '')}"


def columns_for(view: View, width: int) -> list[ProcessColumn]:
    """Return the columns that fit; the sorting column is always shown, with room for its mark."""
    found = []
    for column in _COLUMNS:
        if column.order == view.order:
            found.append(column._replace(width=max(column.width, len(column.title) + 1)))
        elif width >= column.need:
            found.append(column)
    return found


def chosen_rows(host: HostState, view: View) -> list[ProcessRow]:
    wanted = view.filter.casefold()
    rows = [row for row in host.processes if wanted in filterable(row)] if wanted else list(host.processes)
    key, downward = _ORDERS[view.order]
    rows.sort(key=lambda row: row.process.pid)
    rows.sort(key=key, reverse=downward is not view.turned)
    return rows


def place_of(rows: Sequence[ProcessRow], view: View) -> int:
    """Return the position of the selected process; if it is gone, its last position."""
    for at, row in enumerate(rows):
        if identity(row) == view.chosen:
            return at
    return max(0, min(view.scroll, len(rows) - 1))


def identity(row: ProcessRow) -> tuple[int, int]:
    return row.process.pid, row.process.start


def filterable(row: ProcessRow) -> str:
    """Return the text that filters search: PID and command."""
    return f"{row.process.pid} {shown_command(row.process)}".casefold()


def in_full(row: ProcessRow, host: HostState, width: int) -> list[Line]:
    """Return one process below a thin rule: facts without a column, then its command."""
    process = row.process
    unshared = max(0, process.rss - process.shared)
    facts = [
        *(f"PID {process.pid}", f"parent {process.ppid}", f"threads {process.threads}"),
        *(f"rss {size(process.rss)} (rss−shr {size(unshared)})", f"age {age(row.age)}"),
    ]
    command = wrap(shown_command(process), max(12, width), max_lines=_COMMAND, placeholder=" …")
    command += [""] * (_COMMAND - len(command))
    below = packed((((fact, ""),) for fact in facts), width)
    return [(("─" * width, "rule"),), below, *(((line, "dim"),) for line in command)]


def _range(host: HostState, rows: Sequence[ProcessRow], first: int, seen: int, view: View) -> Line:
    """Return the filter and the visible range, for the right end of the header."""
    parts: list[tuple[str, str]] = []
    if view.filter:
        parts.append((f"/{neutral(view.filter, 20)} {len(rows)} of {len(host.processes)}", "warn"))
    if seen < len(rows):
        span = f"{first + 1}–{first + seen} of " if first else f"{seen}/"
        parts.append((f"{'  ' if parts else ''}{span}{len(rows)}", "dim"))
    return tuple(parts)


def _header(columns: Sequence[ProcessColumn], digits: int, view: View) -> str:
    texts = [fit("", 2) + right(_head("PID", "pid", view), digits), fit("STAT", 4)]
    texts += [right(_head(column.title, column.order, view), column.width) for column in columns]
    return " ".join(texts)


def _head(title: str, order: ProcessOrder | None, view: View) -> str:
    if order != view.order:
        return title
    downward = _ORDERS[view.order][1] is not view.turned
    return f"{'▾' if downward else '▴'}{title}"


def _row(
    row: ProcessRow, host: HostState, columns: Sequence[ProcessColumn], digits: int, role: str, width: int, chosen: bool
) -> Line:
    process = row.process
    mark = "+" if row.new else " "
    texts = [f" {right(str(process.pid), digits)}", fit(neutral(process.stat, 4), 4)]
    texts += [right(column.text(row, host), column.width) for column in columns]
    values = " ".join(texts)
    command = _cut(shown_command(process), max(0, width - len(values) - 2))
    role = "warn" if process.stat.startswith("Z") else role
    line: Line = ((mark, "mark"), (f"{values} {command}", role))
    return padded(tuple((text, "focus") for text, _ in line), width, "focus") if chosen else line


def _cut(command: str, room: int) -> str:
    """Return the command in `room` cells, without its directory if it is too long."""
    program, *arguments = command.split(" ")
    if cell_len(command) > room and program.startswith("/"):
        command = " ".join(("…/" + program.rpartition("/")[2], *arguments))
    return fit(command, room).rstrip()


def shown_command(process: ProcessCounters) -> str:
    """Return the command line as ps prints it: in brackets without arguments, marked if defunct."""
    text = neutral(process.command or f"[{process.comm}]")
    return f"{text} <defunct>" if process.stat.startswith("Z") and not text.endswith("<defunct>") else text


def start_as_ps(started: float, wall: float) -> str:
    """`START` as ps prints it: the time of day for the day of `wall`, else the day or the year (epoch seconds)."""
    then, now = time.localtime(started), time.localtime(wall)
    if then[:2] == now[:2] and then.tm_yday == now.tm_yday:
        return time.strftime("%H:%M", then)
    if then.tm_year == now.tm_year or wall - started < _DAY:
        return time.strftime("%b%d", then)
    return time.strftime("%Y", then)


def age(seconds: float) -> str:
    """Return e.g. 0.4s, 12s, 3m, 5h, 12d."""
    for below, factor, unit in ((60, 1, "s"), (3600, 60, "m"), (2 * _DAY, 3600, "h")):
        if seconds < below:
            value = seconds / factor
            return f"{value:.1f}{unit}" if value < 10 and unit == "s" else f"{int(value)}{unit}"
    return f"{int(seconds / _DAY)}d"


def percent(share: float) -> str:
    """Return at most four cells, e.g. 4.2, 100."""
    return f"{share:.1f}" if share < 99.95 else f"{share:.0f}"


def _memory(row: ProcessRow, host: HostState) -> str:
    total = host.point.memory.total if host.point else 0
    return f"{100 * row.process.rss / total:.1f}" if total else "–"


def _start(row: ProcessRow, host: HostState) -> str:
    return start_as_ps(row.started, host.sample.reading.wall if host.sample else 0.0)


def _time(row: ProcessRow, host: HostState) -> str:
    """CPU time as in ps aux: minutes and seconds."""
    ticks = row.process.utime + row.process.stime
    seconds = ticks // host.facts.hz if host.facts else 0
    return f"{seconds // 60}:{seconds % 60:02d}"


def _unshared(row: ProcessRow) -> int:
    return max(0, row.process.rss - row.process.shared)


_COLUMNS = (
    ProcessColumn("%CPU", 5, 0, "cpu", lambda row, host: percent(row.cpu)),
    ProcessColumn("%MEM", 5, 84, None, _memory),
    ProcessColumn("VSZ", 5, 56, None, lambda row, host: size(row.process.vsz)),
    ProcessColumn("RSS", 5, 0, "rss", lambda row, host: size(row.process.rss)),
    ProcessColumn("RSS−SHR", 7, 72, "unshared", lambda row, host: size(_unshared(row))),
    ProcessColumn("START", 5, 0, "start", _start),
    ProcessColumn("TIME", 6, 84, None, _time),
    ProcessColumn("AGE", 5, 72, "age", lambda row, host: age(row.age)),
)

# Sort keys, and whether the largest is first.
_ORDERS: dict[ProcessOrder, tuple[Callable[[ProcessRow], float | str], bool]] = {
    "pid": (lambda row: row.process.pid, False),
    "cpu": (lambda row: row.cpu, True),
    "rss": (lambda row: row.process.rss, True),
    "unshared": (_unshared, True),
    "age": (lambda row: row.age, True),
    "start": (lambda row: row.started, False),
    "command": (lambda row: shown_command(row.process), False),
}
