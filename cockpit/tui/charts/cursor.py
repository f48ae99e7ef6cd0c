"""The cursor of the charts over time: its movements, and the values under it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import replace

from textual.events import Click
from textual.message import Message

from cockpit.analysis.time_ranges import TimeRange
from cockpit.analysis.timeline import all_markers
from cockpit.model.host.state import HostState
from cockpit.model.text import clock, milliseconds, sanitize, si
from cockpit.tui.charts.window import AXIS, ChartWindow, coarser_scale, finer_scale
from cockpit.tui.draw_context import DrawContext, View
from cockpit.tui.terminal.lines import Pane
from cockpit.tui.terminal.styled_line import Line, Piece


class Chart(Pane):
    """Base of the charts over time; `window` is the drawn part of the session, None if nothing is drawn."""

    class TimeSelected(Message):
        """A click on an instant (session seconds)."""

        def __init__(self, t: float) -> None:
            super().__init__()
            self.t = t

    window: ChartWindow | None = None

    def has_keys(self, context: DrawContext) -> bool:
        return context.view.cursor is not None

    def on_click(self, event: Click) -> None:
        # Left of the plot are the frame, the labels and the axis.
        cell = event.x - AXIS - 2
        if self.window is not None and 0 <= cell < self.window.cells:
            self.post_message(self.TimeSelected(self.window.instant(cell)))


# Seconds during which the text of a new marker is shown.
_READ = 5.0


def toggle_cursor(context: DrawContext, window: ChartWindow) -> View:
    """Put the cursor on the newest second, or remove it."""
    if context.view.cursor is not None:
        return replace(context.view, cursor=None)
    newest = context.second
    return placed_at(context, window, min(context.chart_end, newest.second if newest else context.chart_end))


def placed_at(context: DrawContext, window: ChartWindow, t: float) -> View:
    """Put the cursor on an instant (session seconds), limited to the range of the charts."""
    at = window.instant(window.cell(max(context.chart_start, min(t, context.chart_end))))
    return replace(context.view, cursor=at, list_entered=False, room="column")


def moved(context: DrawContext, window: ChartWindow, cells: int) -> View:
    here = context.cursor(window)
    return context.view if here is None else placed_at(context, window, here + cells * window.span)


def to_marker(context: DrawContext, window: ChartWindow, step: int) -> View:
    """Move the cursor to the next (1) or previous (-1) marker or segment start in another cell."""
    here = context.cursor(window)
    if here is None:
        return context.view
    starts = (segment.start for segment in context.state.segments)
    times = sorted({*(marker.t for marker in all_markers(context.state)), *starts})
    ahead = [t for t in times if (window.cell(t) - window.cell(here)) * step > 0]
    return placed_at(context, window, (ahead[0] if step > 0 else ahead[-1])) if ahead else context.view


def zoomed(context: DrawContext, window: ChartWindow, step: int) -> View:
    """Show more time (1) or less (-1); the cursor stays."""
    length = context.chart_end - context.chart_start
    span = coarser_scale(window, length) if step > 0 else finer_scale(window)
    return context.view if span == window.span else replace(context.view, span=span)


def marker_text_range(context: DrawContext, window: ChartWindow) -> tuple[float, float]:
    """Return the time range (from, to) whose markers show their text: the cursor's cell, or the last seconds."""
    cursor = context.cursor(window)
    if cursor is not None:
        return cursor, cursor + window.span
    return max(0.0, context.now - _READ), context.now


def values_under_cursor(context: DrawContext, window: ChartWindow) -> list[Line]:
    """Return the values under the cursor, the most important first; [] without a cursor."""
    cursor = context.cursor(window)
    if cursor is None:
        return []
    parts: list[Line] = [((clock(cursor), "strong"),)]
    column = context.time_range(cursor, window.span)
    busy = [((words, "text"),) for host in context.state.hosts.values() for words in _busy(host, cursor, window.span)]
    if column is None:
        return [*parts, (("no load", "dim"),), *busy]
    parts.append(((si(column.rate), "strong"), (" req/s", "text")))
    if column.failed:
        parts.append(((f"x {si(column.failed)} failed", "failed"),))
    if column.stalled:
        parts.append(((f"■ no response for {column.stalled} s" if column.seconds > 1 else "■ no response", "failed"),))
    if column.saturated:
        parts.append(((f"▒ {column.saturated} s saturated" if column.seconds > 1 else "▒ saturated", "warn"),))
    if context.view.latency != "heat map" and column.latency.count:
        parts.append(latency_words(column))
    parts += busy
    number = sum(segment.start < cursor + window.span for segment in context.state.segments)
    parts += [((f"segment {number}", "dim"),)] if number else []
    return [*parts, ((f"{si(column.least)} to {si(column.most)}", "dim"),)] if column.seconds > 1 else parts


def latency_words(column: TimeRange) -> Line:
    return percentile_words(("p50", column.p50), ("p99", column.p99), ("max", column.latency.max))


def percentile_words(*values: tuple[str, float]) -> Line:
    """Return e.g. `p50 1.2 p99 9.8 max 61 ms`."""
    words = (piece for name, value in values for piece in ((f"{name} ", "dim"), (f"{milliseconds(value)} ", "strong")))
    return (*words, ("ms", "dim"))


def _busy(host: HostState, start: float, span: float) -> Iterator[str]:
    """Yield the mean CPU of a host over a cell."""
    low, high = (bisect_left(host.points, t, key=lambda point: point.t) for t in (start, start + max(1.0, span)))
    shares = [100 - point.cpu.idle for point in host.points[low:high] if point.cpu]
    if shares:
        yield f"{sanitize(host.config.name)} cpu {sum(shares) / len(shares):.0f}%"


def with_cursor(line: Line, at: int) -> Line:
    """Return the line with the cursor in cell `at`: a vertical line in an empty cell, otherwise a highlight."""
    pieces: list[tuple[str, str]] = []
    start = 0
    for text, role in line:
        place = at - start
        if 0 <= place < len(text):
            pieces += [(text[:place], role), _highlighted(text[place]), (text[place + 1 :], role)]
        else:
            pieces.append((text, role))
        start += len(text)
    return tuple(pieces) if at < start else (*pieces, (" " * (at - start), ""), _highlighted(" "))


def with_cells(line: Line, cells: Mapping[int, Piece]) -> Line:
    """Return the line with some cells replaced; each replacement is one character."""
    if not cells:
        return line
    chars = [(char, role) for text, role in line for char in text]
    chars += [(" ", "")] * (max(cells) + 1 - len(chars))
    return tuple(cells.get(at, piece) for at, piece in enumerate(chars))


def _highlighted(char: str) -> tuple[str, str]:
    return ("│", "strong") if char in " ┊" else (char, "focus")


def axis_labels(window: ChartWindow, cursor: float | None, *scales: str) -> Line:
    """Return the labels below the time axis: the cursor's instant, the longest of `scales` that fits at the right end,
    and regular instants; overlapping labels are left out."""
    labels: list[tuple[int, str, str]] = []

    def put(at: int, text: str, role: str) -> bool:
        clear = all(at + len(text) < start or start + len(other) < at for start, other, _ in labels)
        fits = at >= 0 and at + len(text) <= window.cells and clear
        if fits:
            labels.append((at, text, role))
        return fits

    right = window.cells - min(len(scale) for scale in scales)
    if cursor is not None:
        at, label = window.cell(cursor), clock(cursor)
        # Left of the cursor if the label would cover the scale.
        before, after = (at - len(label), f"{label}▲"), (at, f"▲{label}")
        for start, text in (after, before) if at + len(label) + 1 < right else (before, after, (at, "▲")):
            if not labels:
                put(start, text, "strong")
    any(put(window.cells - len(scale), scale, "dim") for scale in sorted(scales, key=len, reverse=True))
    for t in window.labels:
        put(window.cell(t), clock(t), "dim")
    line: list[tuple[str, str]] = []
    end = 0
    for at, text, role in sorted(labels):
        line += [(" " * (at - end), ""), (text, role)]
        end = at + len(text)
    return tuple(line)
