"""A host's processes with the columns of `ps aux`."""

from __future__ import annotations

import time

from rich.cells import cell_len

from cockpit.model.hosts import ProcessCounters
from cockpit.model.state import HostState, ProcessRow
from cockpit.model.text import neutral, size
from cockpit.tui.cells import Line, fit, right
from cockpit.tui.scene import ProcessOrder

_DAY = 24 * 3600


def process_table(host: HostState, order: ProcessOrder, role: str, width: int, height: int) -> list[Line]:
    """A header and the processes that fit, the rest as a number. `role` is that of plain figures."""
    if height < 2 or host.config.processes is None:
        return []
    digits = max(5, *(len(str(row.process.pid)) for row in host.processes), 0)
    pid, cpu = right(_head("PID", order == "pid"), digits + 2), _head("%CPU", order == "cpu")
    header = _line(pid, "STAT", cpu, "VSZ", "RSS", "START")
    rows = sorted(host.processes, key=_by_cpu) if order == "cpu" else list(host.processes)
    room = height - 1
    hidden = len(rows) - room
    if hidden > 0:
        rows = rows[: room - 1]
        hidden += 1
    lines: list[Line] = [((header + " COMMAND", "dim"),)]
    lines += [_row(row, _wall(host), digits, role, width) for row in rows]
    if hidden > 0:
        lines.append(((f"     … and {hidden} more", "dim"),))
    return lines


def _by_cpu(row: ProcessRow) -> tuple[float, int]:
    return -row.cpu, row.process.pid


def _head(title: str, sorts: bool) -> str:
    return f"▾{title}" if sorts else title


def _wall(host: HostState) -> float:
    return host.sample.reading.wall if host.sample else 0.0


def _row(row: ProcessRow, wall: float, digits: int, role: str, width: int) -> Line:
    process = row.process
    figures = _line(
        ("+ " if row.new else "  ") + right(str(process.pid), digits),
        neutral(process.stat, 4),
        f"{row.cpu:.1f}" if row.cpu < 99.95 else f"{row.cpu:.0f}",
        size(process.vsz),
        size(process.rss),
        start_as_ps(row.started, wall),
    )
    command = _cut(shown_command(process), max(0, width - len(figures) - 1))
    gone = process.stat.startswith("Z")
    return ((f"{figures} {command}", "warn" if gone else role),)


def _line(pid: str, stat: str, cpu: str, vsz: str, rss: str, start: str) -> str:
    return f"{pid} {fit(stat, 4)} {right(cpu, 5)} {right(vsz, 5)} {right(rss, 5)} {right(start, 5)}"


def _cut(command: str, room: int) -> str:
    """The command in `room` cells; where it is too long its directory goes first, which tells the least."""
    program, *arguments = command.split(" ")
    if cell_len(command) > room and program.startswith("/"):
        command = " ".join(("…/" + program.rpartition("/")[2], *arguments))
    return fit(command, room).rstrip()


def shown_command(process: ProcessCounters) -> str:
    """The command line as ps prints it: a process without one stands in brackets, a dead one says so."""
    text = process.command or f"[{process.comm}]"
    return neutral(text) + (" <defunct>" if process.stat.startswith("Z") else "")


def start_as_ps(started: float, wall: float) -> str:
    """`START` as ps prints it: the time of day for the day of `wall`, else the day or the year (epoch seconds)."""
    then, now = time.localtime(started), time.localtime(wall)
    if then[:2] == now[:2] and then.tm_yday == now.tm_yday:
        return time.strftime("%H:%M", then)
    if then.tm_year == now.tm_year or wall - started < _DAY:
        return time.strftime("%b%d", then)
    return time.strftime("%Y", then)
