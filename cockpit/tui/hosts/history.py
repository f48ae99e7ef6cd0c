"""Metrics of a host over time: a line of blocks per metric, on the time axis of the charts, with their markers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from operator import attrgetter
from statistics import fmean
from typing import NamedTuple

from cockpit.analysis.timeline import all_markers
from cockpit.analysis.verdicts.other_load import TAKES
from cockpit.model.host.state import HostPoint, HostState
from cockpit.model.text import si, size
from cockpit.tui.charts.braille import trend
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.styled_line import Line, Piece, fit, right

# Share of the top from which a shaded block has the full colour.
_HALF = 0.5
# Cells of the title and of the newest value.
_TITLE, _VALUE = 9, 5
# Minimum cells of the blocks.
_BLOCKS = 8
# Samples without a change after which a value is dim.
STEADY = 10
_NETWORK = ("rxkB/s", "txkB/s")
# The highest block of a line is an eighth below the line above.
_GAP = 8 / 7
# Intervals without a sample that a value covers.
_COVERS = 2.0


class MetricHistory(NamedTuple):
    """A metric over time. `rank`: lines with the lowest are kept longest if the room is short. `top`: the value of a
    full block, None: a little more than the maximum shown. `shaded`: the shade follows the value, else it is faint.
    `mean`: newest samples in the printed value; a single sample of other programs is off by some percentage points."""

    title: str
    rank: int
    value: Callable[[HostPoint], float | None]
    text: Callable[[float], str]
    top: float | None = None
    shaded: bool = False
    mean: int = 1


def _percent(value: float) -> str:
    return f"{min(100.0, max(0.0, value)):.0f}%"


def _busy(point: HostPoint) -> float | None:
    return 100 - point.cpu.idle if point.cpu else None


def _field(group: str, name: str, point: HostPoint) -> float | None:
    values = getattr(point, group)
    return None if values is None else getattr(values, name)


_HISTORIES = (
    MetricHistory("cpu", 0, _busy, _percent, 100.0, True),
    MetricHistory(" servers", 7, attrgetter("servers"), _percent, 100.0),
    MetricHistory(" gen", 8, attrgetter("generator"), _percent, 100.0),
    MetricHistory(" others", 6, attrgetter("other"), _percent, 100.0, mean=5),
    MetricHistory("busiest", 9, attrgetter("busiest"), _percent, 100.0),
    MetricHistory("spawned/s", 4, attrgetter("spawned"), "{:.0f}".format),
    MetricHistory("accept q.", 5, attrgetter("accept"), "{:.0f}".format),
    MetricHistory("memory", 2, partial(_field, "memory", "used"), lambda value: size(round(value))),
    MetricHistory("rxkB/s", 3, partial(_field, "net", "rxkb"), si),
    MetricHistory("txkB/s", 3, partial(_field, "net", "txkb"), si),
    MetricHistory("tps", 4, partial(_field, "io", "tps"), si),
)


def history_lines(
    host: HostState, context: DrawContext, role: str, width: int, tall: int = 1
) -> list[tuple[int, Line]]:
    """Return (rank, line) of each metric that the host reports; `tall`: lines of the CPU's chart."""
    blocks = width - _TITLE - _VALUE - 1
    columns = _Columns(host, context, blocks) if blocks >= _BLOCKS and not context.lite else None
    lines = _tall_lines(host, columns, role, tall) if columns else []
    for history in _HISTORIES[bool(lines) :]:
        recent = _newest_values(history, host.points, history.mean)
        if not recent or (history.title == "spawned/s" and not host.config.processes):
            continue
        if history.title in _NETWORK and not any(map(history.value, host.points)):
            # All traffic of the host is over its loopback.
            continue
        newest = fmean(recent)
        taken = history.title == " others" and newest >= 100 * TAKES
        texts = {history.text(value) for value in _newest_values(history, host.points, STEADY)}
        weight = "warn" if taken else "dim" if len(texts) == 1 < len(host.points) else role
        drawn = columns.line(history) if columns else ((" " * max(1, blocks), ""),)
        lines.append((history.rank, _labelled(history.title, drawn, history.text(newest), weight)))
    return lines


def _newest_values(history: MetricHistory, points: Sequence[HostPoint], count: int) -> list[float]:
    return [value for point in points[-count:] if (value := history.value(point)) is not None]


def _labelled(title: str, drawn: Line, text: str, role: str) -> Line:
    return ((fit(title, _TITLE), "dim"), (right(text, _VALUE), role), (" ", ""), *drawn)


def _tall_lines(host: HostState, columns: _Columns, role: str, tall: int) -> list[tuple[int, Line]]:
    """Return the chart of the CPU in several lines, beside them the newest value, mean, maximum and minimum."""
    cpu = _HISTORIES[0]
    values = [value for value in columns.values(cpu) if value is not None]
    newest = _newest_values(cpu, host.points, 1)
    if tall < 2 or not values or not newest:
        return []
    facts: list[tuple[str, float | None, str]] = [
        *((cpu.title, newest[0], role or "strong"), (" mean", fmean(values), role)),
        *((" max", max(values), role), (" min", min(values), role)),
        *[("", None, "")] * (tall - 4),
    ]
    lines: list[tuple[int, Line]] = []
    for at, (title, value, weight) in enumerate(facts[:tall]):
        drawn = columns.line(cpu, tall - 1 - at, tall)
        lines.append((cpu.rank, _labelled(title, drawn, "" if value is None else cpu.text(value), weight)))
    return lines


class _Columns:
    """The samples of a host by cell of a line of blocks that covers the time range of the charts."""

    def __init__(self, host: HostState, context: DrawContext, cells: int) -> None:
        window = context.axis
        self._length = (window.end - window.first) / cells
        now = context.hosts_now
        edges = [window.first + at * self._length for at in range(cells + 1)]
        places = [bisect_left(host.points, edge, key=attrgetter("t")) for edge in edges]
        covered = _COVERS * max(host.config.interval, host.sample.interval if host.sample else 0.0)
        self._samples: list[Sequence[HostPoint]] = []
        for at, (first, last) in enumerate(pairwise(places)):
            held = host.points[first - 1 : first] if first else ()
            shown = host.points[first:last] or [point for point in held if edges[at] - point.t < covered]
            self._samples.append(shown if edges[at] <= now else ())
        self._marked = {int((marker.t - window.first) / self._length) for marker in all_markers(context.state)}
        cursor = context.view.cursor
        self._cursor = None if cursor is None else int((cursor - window.first) / self._length)

    def values(self, history: MetricHistory) -> list[float | None]:
        """Return the mean of the samples in each cell."""
        return [fmean(known) if (known := _newest_values(history, each, len(each))) else None for each in self._samples]

    def line(self, history: MetricHistory, row: int = 0, rows: int = 1) -> Line:
        """Return line `row`, counted from below, of a chart with `rows` lines."""
        values = self.values(history)
        top = history.top or _GAP * max((value for value in values if value is not None), default=0.0)
        return tuple(self._cell(at, value, top, history.shaded, row, rows) for at, value in enumerate(values))

    def _cell(self, at: int, value: float | None, top: float, shaded: bool, row: int, rows: int) -> Piece:
        part = None if value is None or (row and value * rows <= top * row) else value * rows - top * row
        char = " " if part is None else trend([part], top)
        if at == self._cursor:
            return ("│" if part is None else char, "focus")
        if at in self._marked:
            return ("┊", "mark") if part is None else (char, "marked")
        share = value / top if value is not None and top > 0 else 0.0
        return char, "chart" if shaded and share >= _HALF else "faint"
