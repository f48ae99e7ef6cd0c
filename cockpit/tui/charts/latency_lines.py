"""Latency over time: p50, p99 and maximum per cell, with thresholds; numbers of the last seconds and of the segment."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from cockpit.analysis.buckets import edges_filling
from cockpit.analysis.time_ranges import TimeRange, between, of_seconds
from cockpit.model.histogram import Histogram
from cockpit.model.state import Segment, State
from cockpit.model.text import milliseconds, sanitize
from cockpit.tui.charts.cursor import percentile_words, with_cursor
from cockpit.tui.charts.heat import latency_title, row_of
from cockpit.tui.charts.markers import all_markers, letters, markers_by_cell
from cockpit.tui.charts.threshold_lines import is_latency_line, threshold_cells
from cockpit.tui.charts.throughput import VARIANT_ROLES
from cockpit.tui.charts.window import AXIS, ChartWindow
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.styled_line import Line, Piece, centred, length, right

# Length of the recent range in seconds.
RECENT = 10
# Glyphs and roles of the lines; BOTH: p50 and p99 are in the same cell; OUTLIER: a maximum above the axis.
P50, P99, BOTH, MAX, OUTLIER = ("─", "chart"), ("═", "strong"), ("≡", "strong"), ("·", "text"), ("▴", "text")
_LEGEND = ((P50, "p50"), (P99, "p99"), (BOTH, "both"), (MAX, "max"))
_STALLED = ("■", "failed")
# Share of the cells' maxima within the axis, and the most by which a limit may extend it.
_WITHIN, _STRETCH = 0.9, 4
# p99 is coloured from this share of its limit on.
_NEAR = 0.8


def latency_lines(context: DrawContext, window: ChartWindow, width: int, height: int) -> list[Line]:
    """Return title, numbers, and one line per bucket of latency."""
    columns = [context.time_range(window.instant(at), window.span) for at in range(window.cells)]
    cells = [column if column and column.latency.count else None for column in columns]
    legend = tuple(piece for sign, words in _LEGEND for piece in (sign, (f" {words}  ", "dim")))
    title = latency_title(context, window, cells, width, legend)
    rows = height - 2
    if rows < 1 or not any(cells):
        return [title, *centred([("no responses in this time range", "dim")], width, height - 1)][:height]
    thresholds = [(result, result.limit or 0.0) for result in context.thresholds if is_latency_line(result)]
    edges = _edges(cells, [limit for _, limit in thresholds if limit > 0], rows)
    limit = min((limit for result, limit in thresholds if "p99" in result.threshold.name), default=math.inf)
    signs = letters(markers_by_cell(all_markers(context.state), window), window).ljust(window.cells)
    drawn: list[list[Piece]] = [[("┊", "mark") if sign != " " else (" ", "") for sign in signs] for _ in range(rows)]
    for at, column in enumerate(columns):
        for row, piece in _column(column, edges, limit):
            drawn[row][at] = piece
    for result, limit in thresholds:
        at = row_of(limit, edges)
        for cell, piece in threshold_cells(result, "".join(char for char, _ in drawn[at])).items():
            drawn[at][cell] = piece
    cursor = context.cursor(window)
    lines = []
    for row in reversed(range(rows)):
        line: Line = tuple(drawn[row])
        lines.append((*_label(edges[row]), *(with_cursor(line, window.cell(cursor)) if cursor is not None else line)))
    return [title, numbers(context, width), *lines]


def numbers(context: DrawContext, width: int) -> Line:
    """Return p50, p99 and maximum of the last seconds and of the segment."""
    segment = context.segment
    if segment is None:
        return ()
    if segment.plan.variants:
        return _variant_numbers(segment)
    recent = recent_range(context.state, segment)
    whole = (segment.counts.latency, segment.counts.failed)
    lines = []
    for last, total in ((f"last {RECENT} s", f"segment {segment.number}"), (f"{RECENT} s", f"#{segment.number}")):
        first = (_numbers(last, recent.latency, recent.failed),) if recent and recent.latency.count else ()
        lines.append(tuple(piece for part in (*first, _numbers(total, *whole)) for piece in (("  ", ""), *part)))
    return next((line for line in lines if length(line) <= width), lines[-1])


def _variant_numbers(segment: Segment) -> Line:
    """Return p50 and p99 of both variants of a duet, in the colours of their lines."""
    pieces: list[Piece] = []
    for (name, group), role in zip(segment.counts.groups.items(), VARIANT_ROLES, strict=False):
        latency = group.response if group.response.count else group.service
        p50, p99 = (milliseconds(latency.percentile(percent)) for percent in (50, 99))
        pieces += [(f"{sanitize(name)} p50 {p50} p99 {p99}  ", role)]
    return (*pieces, ("ms", "dim"))


def recent_range(state: State, segment: Segment) -> TimeRange | None:
    """Return the last RECENT seconds of a segment; None without load."""
    end = math.ceil(segment.last)
    return of_seconds(between(state.seconds, max(int(segment.start), end - RECENT), end))


def _numbers(name: str, latency: Histogram, failed: int) -> Line:
    if not latency.count:
        return ((f"{name} –", "dim"),)
    values = (("p50", latency.percentile(50)), ("p99", latency.percentile(99)), ("max", latency.max))
    return ((f"{name} ", "dim"), *failed_mark(failed), *percentile_words(*values)[:-1])


def failed_mark(failed: int) -> Line:
    """Return the mark beside latencies of a segment with failed requests, which are missing there or were fast."""
    return (("x ", "failed"),) if failed else ()


def _edges(cells: Sequence[TimeRange | None], limits: list[float], rows: int) -> tuple[int, ...]:
    """Return the ends of the lines (ns), upwards: all of p50 and p99, and most maxima, so that one outlier does not
    flatten the rest."""
    lows = [cell.p50 for cell in cells if cell]
    most = sorted(cell.latency.max for cell in cells if cell)
    high = max(most[math.ceil(_WITHIN * len(most)) - 1], *(cell.p99 for cell in cells if cell))
    near = [limit for limit in limits if limit <= _STRETCH * high]
    return edges_filling(round(min(lows + near) * 1e9), round(max(high, *near, 0.0) * 1e9), rows)


def _column(column: TimeRange | None, edges: Sequence[int], limit: float) -> Iterator[tuple[int, Piece]]:
    """Yield rows and glyphs of a cell; later glyphs overwrite earlier ones. `limit` (s) is that of p99."""
    if column is None:
        return
    if column.variants:
        for percent, glyph in ((99, P99[0]), (50, P50[0])):
            rows = [row_of(part.latency.percentile(percent), edges) for part in column.variants if part.latency.count]
            for row, role in zip(rows, VARIANT_ROLES, strict=False):
                yield row, (glyph, "strong" if len(set(rows)) < len(rows) else role)
    elif column.latency.count:
        p50, p99, most = (row_of(value, edges) for value in (column.p50, column.p99, column.latency.max))
        yield most, OUTLIER if column.latency.max * 1e9 > edges[-1] else MAX
        yield p50, P50
        glyph, role = BOTH if p50 == p99 else P99
        yield p99, (glyph, "failed" if column.p99 > limit else "warn" if column.p99 > _NEAR * limit else role)
    if column.stalled:
        yield len(edges) - 2, _STALLED


def _label(edge: int) -> Line:
    return ((right(milliseconds(edge / 1e9), AXIS - 1) + " ", "dim"), ("┤", "rule"))
