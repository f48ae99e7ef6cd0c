"""Replies a second over time, with changes, gaps, errors and seconds not to be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cockpit.analysis.time_ranges import TimeRange
from cockpit.model.state import Segment
from cockpit.model.text import si
from cockpit.tui.action_keys import how_to_begin
from cockpit.tui.charts import braille
from cockpit.tui.charts.chart import Chart
from cockpit.tui.charts.cursor import crossed, load_under, named, times
from cockpit.tui.charts.markers import (
    ASKED,
    RELOADING,
    all_markers,
    bands_of,
    letters,
    over,
    placed,
    shades,
    with_threads,
    with_words,
)
from cockpit.tui.charts.window import AXIS, ChartWindow
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.runs.state_line import state_line
from cockpit.tui.terminal.styled_line import EMPTY, Line, centred, length, packed, right, rule

# On the time axis, below seconds that are not reliable, and below those with errors.
_SATURATED = "▒"
_FAILED = "x"

# From this height on the last line explains the state.
_ROOMY = 10

# Markers that are neither a change nor a note, whose sign is to be explained.
_KINDS = (("gap", "host lost"), ("restart", "restart"), ("worker", "load worker lost"))


class Throughput(Chart):
    """As many seconds as fit, one a column of dots, more while there are few, or as few as somebody zoomed to."""

    def draw(self, scene: DrawContext, width: int, height: int) -> list[Line]:
        state = scene.state
        self.window = window = scene.window(width)
        cursor = scene.cursor(window)
        if not state.seconds:
            empty = centred([("nothing has been sent yet", "text"), *how_to_begin(scene)], width, height - 1)
            return [rule((("throughput", "strong"),), (), width), *empty]
        columns = columns_of(scene, window)
        title = _title(scene, columns, window, width)
        # An even number of lines, so that half of the top has a line of its own.
        plot = (height - 4 - (height >= _ROOMY)) // 2 * 2
        if plot < 2:
            return [title]
        top = nice_ceiling(max((column.most for column in columns if column), default=0.0))
        markers = placed(all_markers(state), window)
        signs, shaded = letters(markers, window), shades(bands_of(state), window)
        start, end = named(scene, window)
        told = {at: marker for at, marker in markers.items() if start <= marker.t <= end and marker.text}
        lines: list[Line] = [((with_words(over(shaded, signs), told, window.cells), "mark"),)]
        rows = braille.area([column.least if column else None for column in columns], top, plot, _marks(columns))
        lines += [with_threads(row, signs, shaded) for row in rows]
        if cursor is not None:
            at = window.cell(cursor)
            lines[1:] = [crossed(line, at) for line in lines[1:]]
        axes = [((" " * (AXIS + 1), ""),), *(_label(at, plot, top) for at in range(plot))]
        lines = [(*axis, *line) for axis, line in zip(axes, lines, strict=True)]
        lines.append(((right("0", AXIS - 1) + " ", "dim"), ("└", "rule"), *_axis(state.segments, columns, window)))
        lines.append(((" " * (AXIS + 1), ""), *times(window, cursor, window.scale, _scale(window))))
        if len(lines) + 1 < height:
            said: Line = ((" " * (AXIS + 1), ""), *state_line(scene, width - AXIS - 1))
            lines += [*[EMPTY] * (height - len(lines) - 2), said]
        return [title, *lines]


def columns_of(scene: DrawContext, window: ChartWindow) -> list[TimeRange | None]:
    """The load under each column of dots, two a cell; a column of less than a second is one of that second."""
    span = window.span / 2
    return [scene.stretch(window.first + at * span, span) for at in range(window.cells * 2)]


def _marks(columns: Iterable[TimeRange | None]) -> list[tuple[float, ...]]:
    """Draw columns of several seconds: mean and maximum, above the minimum."""
    return [(column.rate, column.most) if column and column.seconds > 1 else () for column in columns]


def nice_ceiling(value: float) -> float:
    """The next even step of a power of ten: a top that holds still while the rate wavers."""
    if value <= 0:
        return 1.0
    power = 10.0 ** (len(str(int(value))) - 1) if value >= 1 else 1.0
    return next((step * power for step in (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8) if step * power >= value), 10 * power)


def _title(scene: DrawContext, columns: Sequence[TimeRange | None], window: ChartWindow, width: int) -> Line:
    """Return the values under the cursor; without one the current rate, and a legend of visible signs."""
    name: Line = (("throughput", "strong"),)
    under = load_under(scene, window)
    figures = packed(under, width - length(name) - 6) if under else _figures(scene, columns, window)
    return rule(name, figures, width)


def _figures(scene: DrawContext, columns: Sequence[TimeRange | None], window: ChartWindow) -> Line:
    # The least important is first: it is dropped first.
    said = [("reading …  ", "text")] if scene.stretches.behind else []
    if any(window.first <= band.effect and band.asked < window.end for band in bands_of(scene.state)):
        said.append((f"{ASKED} change {RELOADING} reload  ", "mark"))
    if any(column and column.saturated for column in columns):
        said.append((f"{_SATURATED} saturated  ", "warn"))
    if any(column and column.failed for column in columns):
        said.append((f"{_FAILED} errors  ", "warn"))
    signs = {marker.kind: marker.sign for marker in scene.state.markers if window.first <= marker.t < window.end}
    said += [(f"{signs[kind]} {words}  ", "warn") for kind, words in _KINDS if kind in signs]
    now = scene.second
    if now is None:
        return (*said, ("no load now", "dim"))
    return (*said, (si(now.rate), "strong"), (" req/s", "text"))


def _scale(window: ChartWindow) -> str:
    """Return the time per cell, and how a column of several seconds is drawn."""
    return f"least · mean · most   {window.scale}" if window.span > 2 else window.scale


def _label(at: int, plot: int, top: float) -> Line:
    figure = si(top) if at == 0 else si(top / 2) if plot >= 6 and at == plot // 2 else ""
    return ((right(figure, AXIS - 1) + " ", "dim"), ("┤" if figure else "│", "rule"))


def _axis(segments: Sequence[Segment], columns: Sequence[TimeRange | None], window: ChartWindow) -> Line:
    """Return the time axis: starts of segments, and seconds with warnings."""
    axis = ["─"] * window.cells
    for at, column in enumerate(columns):
        if column and column.saturated:
            axis[at // 2] = _SATURATED
        elif column and column.failed and axis[at // 2] == "─":
            axis[at // 2] = _FAILED
    for segment in segments:
        number = str(segment.number)
        place = _room_for(number, axis, window.cell(segment.start))
        if place is not None:
            axis[place : place + len(number)] = number
    pieces = [(char, "rule" if char == "─" else "warn" if char in (_SATURATED, _FAILED) else "text") for char in axis]
    return tuple(pieces) or EMPTY


def _room_for(number: str, axis: Sequence[str], at: int) -> int | None:
    """Return the position of a segment's number so that it hides no other sign: at its start, or one cell beside, or
    among equal signs."""
    wide = len(number)
    if not 0 <= at <= len(axis) - wide:
        return None
    for place in (at, at + 1, at - 1):
        if 0 <= place <= len(axis) - wide and all(sign == "─" for sign in axis[place : place + wide]):
            return place
    around = axis[max(0, at - 1) : at + wide + 1]
    return at if len(around) > wide and len(set(around)) == 1 and not around[0].isdigit() else None
