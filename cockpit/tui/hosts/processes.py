"""A host's processes with the columns of `ps aux`: sorted, filtered, scrolled, identical processes folded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap
from typing import NamedTuple

from rich.cells import cell_len

from cockpit.model.host.samples import ProcessCounters
from cockpit.model.host.state import HostState, ProcessRow
from cockpit.model.text import sanitize, size
from cockpit.tui.draw_context import ProcessOrder, View
from cockpit.tui.key_table import ViewKey
from cockpit.tui.terminal.styled_line import (
    EMPTY,
    DrawnList,
    Line,
    Spot,
    first_visible,
    fit,
    join_fitting,
    left_and_right,
    padded,
    right,
)

_DAY = 24 * 3600

# Lines for the command of the selected process; lines for its details; minimum height of a table with details.
_COMMAND = 2
IN_FULL = 2 + _COMMAND
_TALL = 12
# Minimum number of identical processes for a common line.
_FOLDED = 3

# Cells of the user name.
_USER = 8

# A line of the table: a process, or identical processes in the order of the table.
ProcessEntry = tuple[ProcessRow, ...]


class ProcessColumn(NamedTuple):
    """A column of the table, shown from `need` cells of width on, and always if the table is sorted by it."""

    title: str
    width: int
    need: int
    order: ProcessOrder | None
    text: Callable[[ProcessEntry, HostState], str]


def process_table(host: HostState, view: View, focused: bool, role: str, width: int, height: int) -> DrawnList:
    """Return a header and the visible processes. `role` is the role of plain values; `focused`: the table has a
    selected line."""
    rows = entries(host, view)
    at = place_of(rows, view) if focused else 0
    columns = columns_for(view, width)
    digits = max(5, *(len(str(row.process.pid)) for row in host.processes), 0)
    below = process_details(rows[at], width) if focused and rows and height >= _TALL else []
    room = height - 1 - len(below)
    first = first_visible(at, room, len(rows))
    seen = rows[first : first + room]
    head = _header(columns, digits, view) + " " + _head("COMMAND", "command", view)
    lines: list[Line] = [left_and_right(((head, "dim"),), _range(host, rows, first, len(seen), view), width)]
    for number, row in enumerate(seen, first):
        lines.append(_row(row, host, columns, digits, role, width, focused and number == at))
    if not rows:
        lines.append(((_no_rows(host, view), "dim"),))
    lines += [EMPTY] * (room - len(seen)) if below else []
    spots = [Spot(y, 0, width, "process", identity(row[0])) for y, row in enumerate(seen, 1)]
    spots += _order_spots(columns, digits, width)
    return DrawnList(lines + below, room, max(0, len(rows) - 1), tuple(spots))


def _no_rows(host: HostState, view: View) -> str:
    if host.processes:
        total, text = len(host.processes), sanitize(view.filter, 30)
        return f"none of {total} has “{text}” in PID or command; {ViewKey.FILTER}: change the filter"
    return f"no process named {sanitize(host.config.watched)}"


def columns_for(view: View, width: int) -> list[ProcessColumn]:
    """Return the columns that fit; the sort column is always included, with room for its arrow."""
    columns = []
    for column in _COLUMNS:
        if column.order == view.order:
            columns.append(column._replace(width=max(column.width, len(column.title) + 1)))
        elif width >= column.need:
            columns.append(column)
    return columns


def entries(host: HostState, view: View) -> list[ProcessEntry]:
    """Return the lines of the table, sorted and filtered; identical processes are at the position of their first."""
    rows = sorted_rows(host, view)
    if not view.folded:
        return [(row,) for row in rows]
    alike: dict[tuple[object, ...], list[ProcessRow]] = {}
    for row in rows:
        alike.setdefault(_fold_key(row.process), []).append(row)
    folds = {key: tuple(members) for key, members in alike.items() if len(members) >= _FOLDED}
    entries: list[ProcessEntry] = []
    for row in rows:
        fold = folds.get(_fold_key(row.process), (row,))
        if row is fold[0]:
            entries.append(fold)
    return entries


def _fold_key(process: ProcessCounters) -> tuple[object, ...]:
    """Return the key by which identical processes are folded."""
    return process.ppid, process.user, process.comm, process.command, process.stat.startswith("Z")


def sorted_rows(host: HostState, view: View) -> list[ProcessRow]:
    text = view.filter.casefold()
    rows = [row for row in host.processes if text in filterable(row)] if text else list(host.processes)
    key, descending = _ORDERS[view.order]
    rows.sort(key=lambda row: row.process.pid)
    rows.sort(key=key, reverse=descending is not view.reverse_order)
    return rows


def place_of(rows: Sequence[ProcessEntry], view: View) -> int:
    """Return the index of the line with the selected process; if the process is gone, its last index."""
    for at, entry in enumerate(rows):
        if any(identity(row) == view.process for row in entry):
            return at
    return max(0, min(view.scroll, len(rows) - 1))


def identity(row: ProcessRow) -> tuple[int, int]:
    return row.process.pid, row.process.start


def filterable(row: ProcessRow) -> str:
    """Return the text that a filter searches: PID and command."""
    return f"{row.process.pid} {shown_command(row.process)}".casefold()


def process_details(entry: ProcessEntry, width: int) -> list[Line]:
    """Return the details of the selected line below a rule: facts, then the command."""
    row, process = entry[0], entry[0].process
    unshared = max(0, process.rss - process.shared)
    facts = [
        *(f"PID {process.pid}", f"parent {process.ppid}", f"threads {process.threads}"),
        *(f"rss {size(process.rss)} (rss−shr {size(unshared)})", f"age {age(row.age)}"),
        f"user {sanitize(process.user) or '–'}",
    ]
    if len(entry) > 1:
        rss = sorted(each.process.rss for each in entry)
        facts = [
            *(f"{len(entry)} identical processes, {ViewKey.FOLD}: show each", f"parent {process.ppid}"),
            f"%CPU {_cpu(entry)}, sum {percent(sum(each.cpu for each in entry))}",
            *(f"rss {size(rss[0])}–{size(rss[-1])}", f"user {sanitize(process.user) or '–'}"),
        ]
    command = wrap(shown_command(process), max(12, width), max_lines=_COMMAND, placeholder=" …")
    command += [""] * (_COMMAND - len(command))
    below = join_fitting((((fact, ""),) for fact in facts), width)
    return [(("─" * width, "rule"),), below, *(((line, "dim"),) for line in command)]


def _range(host: HostState, rows: Sequence[ProcessEntry], first: int, seen: int, view: View) -> Line:
    """Return the filter and the visible range, for the right end of the header."""
    parts: list[tuple[str, str]] = []
    if view.filter:
        parts.append((f"/{sanitize(view.filter, 20)} {sum(map(len, rows))} of {len(host.processes)}", "warn"))
    if seen < len(rows):
        span = f"{first + 1}–{first + seen} of " if first else f"{seen}/"
        parts.append((f"{'  ' if parts else ''}{span}{len(rows)}", "dim"))
    return tuple(parts) or ((f"sum {sum(row.cpu for row in host.processes):.0f}%", "dim"),)


def _header(columns: Sequence[ProcessColumn], digits: int, view: View) -> str:
    texts = [fit("", 2) + right(_head("PID", "pid", view), digits), fit("STAT", 4)]
    texts += [right(_head(column.title, column.order, view), column.width) for column in columns]
    return " ".join(texts)


def _order_spots(columns: Sequence[ProcessColumn], digits: int, width: int) -> Iterator[Spot]:
    """Yield clickable spots of the titles of sortable columns."""
    widths = [(2 + digits, "pid"), (4, None), *((column.width, column.order) for column in columns)]
    x = 0
    for cells, order in (*widths, (width, "command")):
        if order is not None:
            yield Spot(0, x, min(width, x + cells), "sort_by", (order,))
        x += cells + 1


def _head(title: str, order: ProcessOrder | None, view: View) -> str:
    if order != view.order:
        return title
    descending = _ORDERS[view.order][1] is not view.reverse_order
    return f"{'▾' if descending else '▴'}{title}"


def _row(
    entry: ProcessEntry,
    host: HostState,
    columns: Sequence[ProcessColumn],
    digits: int,
    role: str,
    width: int,
    chosen: bool,
) -> Line:
    process = entry[0].process
    mark = "+" if any(row.new for row in entry) else " "
    number = str(process.pid) if len(entry) == 1 else f"×{len(entry)}"
    texts = [f" {right(number, digits)}", fit(_states(entry), 4)]
    texts += [right(column.text(entry, host), column.width) for column in columns]
    values = " ".join(texts)
    command = _cut(shown_command(process), max(0, width - len(values) - 2))
    role = "warn" if process.stat.startswith("Z") else role
    line: Line = ((mark, "mark"), (f"{values} {command}", role))
    return padded(tuple((text, "focus") for text, _ in line), width, "focus") if chosen else line


def _cut(command: str, room: int) -> str:
    """Return the command in `room` cells; the program's directory is dropped if the command is too long."""
    program, *arguments = command.split(" ")
    if cell_len(command) > room and program.startswith("/"):
        command = " ".join(("…/" + program.rpartition("/")[2], *arguments))
    return fit(command, room).rstrip()


def shown_command(process: ProcessCounters) -> str:
    """Return the command line as ps prints it: the name in brackets if there is none, `<defunct>` if defunct."""
    text = sanitize(process.command or f"[{process.comm}]")
    return f"{text} <defunct>" if process.stat.startswith("Z") and not text.endswith("<defunct>") else text


def start_as_ps(started: float, wall: float) -> str:
    """Return START as ps prints it: the time of day on the day of `wall`, else the day or the year (epoch seconds)."""
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


def _states(entry: ProcessEntry) -> str:
    """Return STAT; for identical processes the number of running ones."""
    if len(entry) == 1:
        return sanitize(entry[0].process.stat, 4)
    running = sum(row.process.stat.startswith("R") for row in entry)
    return f"R×{running}" if running else sanitize(entry[0].process.stat[:1])


def _cpu(entry: ProcessEntry) -> str:
    """Return %CPU; for identical processes minimum–maximum."""
    lowest, highest = min(row.cpu for row in entry), max(row.cpu for row in entry)
    shown = f"{lowest:.0f}–{highest:.0f}"
    if len(entry) == 1 or f"{lowest:.0f}" == f"{highest:.0f}":
        return percent(highest)
    return shown if len(shown) <= 5 else f"≤{highest:.0f}"


def _user(entry: ProcessEntry) -> str:
    return fit(sanitize(entry[0].process.user) or "–", _USER)


def _mean(entry: ProcessEntry, metric: Callable[[ProcessRow], int]) -> str:
    return size(sum(map(metric, entry)) / len(entry))


def _pss(entry: ProcessEntry, host: HostState) -> str:
    known = [row.process.pss for row in entry if row.process.pss is not None]
    return size(sum(known) / len(known)) if known else "–"


def _memory(entry: ProcessEntry, host: HostState) -> str:
    total = host.point.memory.total if host.point else 0
    return f"{100 * sum(row.process.rss for row in entry) / total:.1f}" if total else "–"


def _start(entry: ProcessEntry, host: HostState) -> str:
    return start_as_ps(min(row.started for row in entry), host.sample.reading.wall if host.sample else 0.0)


def _time(entry: ProcessEntry, host: HostState) -> str:
    """Return the CPU time as ps aux prints it: minutes and seconds."""
    ticks = sum(row.process.utime + row.process.stime for row in entry)
    seconds = ticks // host.facts.hz if host.facts else 0
    return f"{seconds // 60}:{seconds % 60:02d}"


def _unshared(row: ProcessRow) -> int:
    return max(0, row.process.rss - row.process.shared)


# For identical processes: memory is the mean per process, %MEM, THR and TIME are sums, START and AGE of the oldest.
_COLUMNS = (
    ProcessColumn("USER".ljust(_USER), _USER, 116, None, lambda entry, host: _user(entry)),
    ProcessColumn("%CPU", 5, 0, "cpu", lambda entry, host: _cpu(entry)),
    ProcessColumn("%MEM", 5, 84, None, _memory),
    ProcessColumn("THR", 4, 110, None, lambda entry, host: str(sum(row.process.threads for row in entry))),
    ProcessColumn("VSZ", 5, 56, None, lambda entry, host: _mean(entry, lambda row: row.process.vsz)),
    ProcessColumn("RSS", 5, 0, "rss", lambda entry, host: _mean(entry, lambda row: row.process.rss)),
    ProcessColumn("PSS", 5, 78, None, _pss),
    ProcessColumn("RSS−SHR", 7, 72, "unshared", lambda entry, host: _mean(entry, _unshared)),
    ProcessColumn("START", 5, 0, "start", _start),
    ProcessColumn("TIME", 6, 84, None, _time),
    ProcessColumn("AGE", 5, 72, "age", lambda entry, host: age(max(row.age for row in entry))),
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
