"""Latency over time: a heat map with p50 and p99 of each cell, failures and thresholds; of a duet the percentiles of
both variants."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from cockpit.analysis.buckets import edges_filling
from cockpit.analysis.time_ranges import TimeRange, between, of_seconds
from cockpit.analysis.timeline import all_markers
from cockpit.model.state import Segment, State
from cockpit.model.text import clock, milliseconds, sanitize
from cockpit.tui.charts.cursor import latency_words, with_cursor
from cockpit.tui.charts.markers import letters, markers_by_cell
from cockpit.tui.charts.threshold_lines import is_latency_line, threshold_line
from cockpit.tui.charts.window import AXIS, ChartWindow
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.role_styles import HEAT
from cockpit.tui.terminal.styled_line import Line, Piece, centred, right, rule

# Minimum share of a cell's responses, its glyph and role.
_SHADES = ((0.3, "█", "heat4"), (0.1, "▓", "heat3"), (0.02, "▒", "heat2"), (0.0, "░", "heat1"))
# Roles in lite mode, without colours: they are most of the bytes that a frame sends.
_PLAIN = {**dict.fromkeys(HEAT, "chart"), "p50": "strong", "p99": "strong"}
# Roles of the two variants of a duet.
VARIANT_ROLES = ("before", "after")
# Glyphs of percentiles over the shades.
_P50, _P99, _BOTH = "─", "═", "≡"
# Minimum lines for one with the cells beyond the axis.
_BEYOND = 4
# Share of cells whose p1 (or p99) may be beyond the axis; the first and last bucket are open.
_RARE = 0.1
# Minimum lines per limit of a threshold.
_PER_LIMIT = 3
# The most by which a limit may extend the axis, and the share of its limit from which p99 is coloured.
_STRETCH, _NEAR = 4, 0.8
# Below and above any latency, ns.
_ENDS = (0, 1 << 53)
# Length (s) of the recent range.
RECENT = 10


def heat_map(context: DrawContext, window: ChartWindow, width: int, height: int) -> list[Line]:
    """Return title, one line per bucket, and a line with signs of failures if there are any."""
    ranges = [context.time_range(window.instant(at), window.span) for at in range(window.cells)]
    cells = [cell if cell and cell.latency.count else None for cell in ranges]
    failing = _failing(ranges)
    title = _title(context, window, cells, width)
    rows = height - 1 - len(failing)
    if rows < 1 or not any(cells):
        return [title, *centred([("no responses in this time range", "dim")], width, height - 1)][:height]
    thresholds = [(result, result.limit or 0.0) for result in context.thresholds if is_latency_line(result)]
    limits = sorted({limit for _, limit in thresholds})
    lined = limits[: rows // _PER_LIMIT]
    edges = with_limits(edges_of(cells, rows - len(lined), limits), lined)
    limit = min((limit for result, limit in thresholds if "p99" in result.threshold.name), default=math.inf)
    signs = letters(markers_by_cell(all_markers(context.state), window), window).ljust(window.cells)
    columns = [_column(cell, edges, limit) for cell in cells]
    if context.lite:
        columns = [[(glyph, _PLAIN.get(role, role)) for glyph, role in column] for column in columns]
    drawn: list[list[Piece]] = [
        [
            column[row] if column and column[row][0] != " " else ("┊", "mark") if sign != " " else (" ", "")
            for column, sign in zip(columns, signs, strict=True)
        ]
        for row in range(len(edges) - 1)
    ]
    lines = [(_label(row, edges, cells), tuple(pieces)) for row, pieces in enumerate(drawn)]
    for value in reversed(lined):
        # Limits without a line of their own share the last one.
        same = [result for result, limit in thresholds if limit == value or (value == lined[-1] and limit > value)]
        ns = round(value * 1e9)
        label: Line = ((right("" if ns in edges else _edge(ns), AXIS), "dim"), ("┤", "rule"))
        lines.insert(bisect_left(edges[:-1], ns), (label, threshold_line(same, window.cells)))
    cursor = context.cursor(window)
    if cursor is not None:
        lines = [(label, with_cursor(plot, window.cell(cursor))) for label, plot in lines]
    return [title, *((*label, *plot) for label, plot in reversed(lines)), *failing]


def _failing(ranges: Sequence[TimeRange | None]) -> list[Line]:
    """Return a line with signs for failed requests and for seconds without any response; [] if there are none."""
    signs = ["■" if each and each.stalled else "x" if each and each.failed else " " for each in ranges]
    if set(signs) <= {" "}:
        return []
    return [((right("fail", AXIS), "dim"), ("┤", "rule"), ("".join(signs), "failed"))]


def edges_of(cells: Sequence[TimeRange | None], rows: int, limits: Sequence[float] = ()) -> tuple[int, ...]:
    """Return the edges (ns) of `rows` buckets. All cells have the same weight, regardless of their responses. `limits`
    (s) of thresholds extend the axis if they are near. The last bucket is for the few cells beyond the axis, above the
    lowest limit that they exceed."""
    lows = sorted(cell.p1 for cell in cells if cell)
    highs = sorted(cell.p99 for cell in cells if cell)
    low, high = lows[int(len(lows) * _RARE)], highs[-1 - int(len(highs) * _RARE)]
    near = [each for each in limits if 0 < each <= max(_STRETCH * high, highs[-1] if rows < _BEYOND else 0.0)]
    # Round ends keep the axis, and so most cells, while the percentiles vary: each changed cell is sent.
    ends = _rounded(min(low, *near, low), False), _rounded(max(high, *near, high), True)
    if rows < _BEYOND or (most := round(highs[-1] * 1e9)) <= ends[1]:
        return edges_filling(*ends, rows)
    exceeded = [ns for ns in (round(limit * 1e9) for limit in sorted(limits)) if ends[1] < ns <= most][:1]
    edges = (*edges_filling(*ends, rows - 1 - len(exceeded)), *exceeded)
    return (*edges, 10 * edges[-1])


def with_limits(edges: Sequence[int], limits: Sequence[float]) -> tuple[int, ...]:
    """Return the edges (ns), the nearest inner one replaced by each limit (s) on the axis."""
    moved = list(edges)
    for limit in (round(limit * 1e9) for limit in limits):
        inner = sorted(set(moved[1:-1]) - {round(each * 1e9) for each in limits})
        if inner and limit not in moved and moved[0] < limit < moved[-1]:
            moved[moved.index(min(inner, key=lambda edge: abs(math.log(edge / limit))))] = limit
    return tuple(sorted(set(moved)))


def _rounded(seconds: float, up: bool) -> int:
    """Return the next 1, 3 or 10 times a power of ten in ns; above the value, or at or below it."""
    ns = max(1, round(seconds * 1e9))
    power = int(10 ** (len(str(ns)) - 1))
    steps = [step * power for step in (1, 3, 10)]
    return next(step for step in steps if step > ns) - 1 if up else max(step for step in steps if step <= ns)


def shares(cell: TimeRange, edges: Sequence[int]) -> list[float]:
    """Return the share of responses per bucket; the first and last bucket include responses beyond the ends."""
    counts = cell.latency.between((_ENDS[0], *edges[1:-1], _ENDS[1]))
    return [count / cell.latency.count for count in counts]


def _column(cell: TimeRange | None, edges: Sequence[int], limit: float) -> list[Piece]:
    """Return the shades of a cell's buckets, the fastest first, with signs for p50 and p99; `limit` (s) is that of
    p99. The variants of a duet have signs only, in their colours."""
    if cell is None:
        return []
    if cell.variants:
        column: list[Piece] = [(" ", "")] * (len(edges) - 1)
        for percent, glyph in ((99, _P99), (50, _P50)):
            rows = [row_of(part.latency.percentile(percent), edges) for part in cell.variants if part.latency.count]
            for row, role in zip(rows, VARIANT_ROLES, strict=False):
                column[row] = (glyph, "strong" if len(set(rows)) < len(rows) else role)
        return column
    column = [
        next(((glyph, role) for least, glyph, role in _SHADES if 0 < share >= least), (" ", ""))
        for share in shares(cell, edges)
    ]
    p50, p99 = (row_of(value, edges) for value in (cell.p50, cell.p99))
    column[p99] = (_P99, "p99")
    column[p50] = (_P50 if p50 != p99 else _BOTH, "p50")
    if cell.p99 > _NEAR * limit:
        column[p99] = (column[p99][0], "failed" if cell.p99 > limit else "warn")
    return column


def row_of(seconds: float, edges: Sequence[int]) -> int:
    """Return the bucket of a latency."""
    ns = round(seconds * 1e9)
    return max(0, min(sum(ns >= edge for edge in edges[1:-1]), len(edges) - 2))


def _label(row: int, edges: Sequence[int], cells: Sequence[TimeRange | None]) -> Line:
    """Return the lower edge of a bucket in ms, from 10 s on in s; non-empty open ends have < or >."""
    last = row == len(edges) - 2
    text = _edge(edges[row])
    if last and any(cell and cell.latency.max_ns >= edges[-1] for cell in cells):
        text = f">{text}"
    elif row == 0 and any(cell and cell.latency.min_ns < edges[0] for cell in cells):
        text = f"<{_edge(edges[1])}"
    return ((right(text, AXIS), "dim"), ("┤", "rule"))


def _edge(ns: int) -> str:
    return f"{ns / 1e6:g}" if ns < 1e10 else f"{ns / 1e9:g}s"


def _title(context: DrawContext, window: ChartWindow, cells: Sequence[TimeRange | None], width: int) -> Line:
    """Return the kind of latency, and the values under the cursor, else those of the last seconds."""
    title: Line = (("latency", "title"), (f" {kind_of(context.state, window)}, ms", "dim"))
    cursor = context.cursor(window)
    if cursor is not None:
        column = cells[window.cell(cursor)]
        texts = latency_words(column) if column else (("no responses", "dim"),)
        return rule(title, ((f"{clock(cursor)}  ", "strong"), *texts), width)
    segment = context.segment
    if segment is not None and segment.plan.variants:
        return rule(title, _variant_values(segment), width)
    end = math.ceil(segment.last) if segment else 0
    recent = of_seconds(between(context.state.seconds, max(int(segment.start), end - RECENT), end)) if segment else None
    if recent is None or not recent.latency.count:
        return rule(title, (), width)
    # Failed requests are missing in the latencies, or were fast.
    failed = "failed" if recent.failed else ""
    return rule(
        title,
        (
            (f"{'' if context.view.segment is None else f'#{context.view.segment} '}last {RECENT} s  ", "dim"),
            *((_P50, "p50"), (f" p50 {milliseconds(recent.p50)}  ", failed)),
            *((_P99, "p99"), (f" p99 {milliseconds(recent.p99)}  ", failed or "strong")),
            (f"max {milliseconds(recent.latency.max)}", failed),
        ),
        width,
    )


def _variant_values(segment: Segment) -> Line:
    """Return p50 and p99 of both variants of a duet, in the colours of their signs."""
    pieces: list[Piece] = []
    for (name, group), role in zip(segment.counts.groups.items(), VARIANT_ROLES, strict=False):
        latency = group.response if group.response.count else group.service
        p50, p99 = (milliseconds(latency.percentile(percent)) for percent in (50, 99))
        pieces.append((f"{sanitize(name)} p50 {p50} p99 {p99}  ", role))
    return tuple(pieces)


def kind_of(state: State, window: ChartWindow) -> str:
    """Return the kind of latency that is drawn: response time under open load, otherwise service time."""
    names = {
        segment.counts.latency_name
        for segment in state.segments
        if segment.counts.completed and segment.start < window.end and segment.last > window.first
    }
    return "service (closed load), response (open)" if len(names) > 1 else next(iter(names), "service")
