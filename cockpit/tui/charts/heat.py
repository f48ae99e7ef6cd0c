"""The heat map of latency: the time axis of the throughput chart, latency upwards, shades for shares of responses."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.analysis.buckets import edges_filling
from cockpit.analysis.time_ranges import TimeRange
from cockpit.model.state import State
from cockpit.model.text import clock
from cockpit.tui.charts.cursor import latency_words, with_cursor
from cockpit.tui.charts.markers import all_markers, letters, markers_by_cell
from cockpit.tui.charts.window import AXIS, ChartWindow
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.role_styles import HEAT
from cockpit.tui.terminal.styled_line import Line, centred, clip, length, right, rule

# Minimum share of a cell's responses, its glyph and role.
_SHADES = ((0.3, "█", "heat4"), (0.1, "▓", "heat3"), (0.02, "▒", "heat2"), (0.0, "░", "heat1"))
# Roles in lite mode, without colours: they are most of the bytes that a frame sends.
_PLAIN = {role: "strong" if role.startswith("on_") else "chart" for role in HEAT}
# Glyphs of percentiles over the shades.
_P50, _P99, _BOTH = "─", "═", "≡"
_SIGNS: Line = tuple(
    piece
    for glyph, words in ((_P50, "p50  "), (_P99, "p99  "), (_BOTH, "both"))
    for piece in ((f"{glyph} ", "strong"), (words, "dim"))
)
# Share of cells whose p1 (or p99) may be beyond the axis; the first and last bucket are open.
_RARE = 0.05
# Below and above any latency, ns.
_ENDS = (0, 1 << 53)


def heat_map(context: DrawContext, window: ChartWindow, width: int, height: int) -> list[Line]:
    """Return title, one line per bucket, a line with signs of failures if there are any, and a legend of the shades."""
    ranges = [context.time_range(window.instant(at), window.span) for at in range(window.cells)]
    cells = [cell if cell and cell.latency.count else None for cell in ranges]
    failing = _failing(ranges)
    title = latency_title(context, window, cells, width, _SIGNS)
    rows = height - 2 - len(failing)
    if rows < 1 or not any(cells):
        return [title, *centred([("no responses in this time range", "dim")], width, height - 1)][:height]
    edges = edges_of(cells, rows)
    signs = letters(markers_by_cell(all_markers(context.state), window), window).ljust(window.cells)
    cursor = context.cursor(window)
    columns = [_column(cell, edges) for cell in cells]
    if context.lite:
        columns = [[(glyph, _PLAIN.get(role, role)) for glyph, role in column] for column in columns]
    lines: list[Line] = []
    for row in reversed(range(len(edges) - 1)):
        line = tuple(
            column[row] if column and column[row][0] != " " else _empty(signs[at]) for at, column in enumerate(columns)
        )
        if cursor is not None:
            line = with_cursor(line, window.cell(cursor))
        lines.append((*_label(row, edges, cells), *line))
    return [title, *lines, *failing, _legend(width)]


def _failing(ranges: Sequence[TimeRange | None]) -> list[Line]:
    """Return a line with signs for failed requests and for seconds without any response; [] if there are none."""
    signs = ["■" if each and each.stalled else "x" if each and each.failed else " " for each in ranges]
    if set(signs) <= {" "}:
        return []
    return [((right("fail", AXIS - 1) + " ", "dim"), ("┤", "rule"), ("".join(signs), "failed"))]


def edges_of(cells: Sequence[TimeRange | None], rows: int) -> tuple[int, ...]:
    """Return the edges (ns) of `rows` buckets. All cells have the same weight, regardless of their responses."""
    lows = sorted(cell.p1 for cell in cells if cell)
    highs = sorted(cell.p99 for cell in cells if cell)
    low, high = lows[int(len(lows) * _RARE)], highs[-1 - int(len(highs) * _RARE)]
    return edges_filling(round(low * 1e9), round(high * 1e9), rows)


def shares(cell: TimeRange, edges: Sequence[int]) -> list[float]:
    """Return the share of responses per bucket; the first and last bucket include responses beyond the ends."""
    counts = cell.latency.between((_ENDS[0], *edges[1:-1], _ENDS[1]))
    return [count / cell.latency.count for count in counts]


def _column(cell: TimeRange | None, edges: Sequence[int]) -> list[tuple[str, str]]:
    """Return the shades of a cell's buckets, the fastest first, with signs for p50 and p99."""
    if cell is None:
        return []
    column = [_shade(share) for share in shares(cell, edges)]
    p50, p99 = (row_of(value, edges) for value in (cell.p50, cell.p99))
    lines = {p50: _P50, p99: _P99} if p50 != p99 else {p50: _BOTH}
    for row, glyph in lines.items():
        role = column[row][1]
        column[row] = (glyph, f"on_{role}" if role else "strong")
    return column


def _shade(share: float) -> tuple[str, str]:
    return next(((glyph, role) for least, glyph, role in _SHADES if share > 0 and share >= least), (" ", ""))


def row_of(seconds: float, edges: Sequence[int]) -> int:
    """Return the bucket of a latency."""
    ns = round(seconds * 1e9)
    return max(0, min(sum(ns >= edge for edge in edges[1:-1]), len(edges) - 2))


def _empty(sign: str) -> tuple[str, str]:
    return ("┊", "mark") if sign != " " else (" ", "")


def _label(row: int, edges: Sequence[int], cells: Sequence[TimeRange | None]) -> Line:
    """Return the lower edge of a bucket in ms, from 10 s on in s; non-empty open ends have < or >."""
    last = row == len(edges) - 2
    text = _edge(edges[row])
    if last and any(cell and cell.latency.max_ns >= edges[-1] for cell in cells):
        text = f">{text}"
    elif row == 0 and any(cell and cell.latency.min_ns < edges[0] for cell in cells):
        text = f"<{_edge(edges[1])}"
    return ((right(text, AXIS - 1) + " ", "dim"), ("┤", "rule"))


def _edge(ns: int) -> str:
    return f"{ns / 1e6:g}" if ns < 1e10 else f"{ns / 1e9:g}s"


def _legend(width: int) -> Line:
    line: list[tuple[str, str]] = [(" " * AXIS, ""), ("└", "rule")]
    for (_, glyph, role), words in zip(reversed(_SHADES), ("some", "2%", "10%", "30%"), strict=True):
        line += [(glyph, role), (f" {words}  ", "dim")]
    line.append(("of a cell's responses ", "dim"))
    return clip((*line, ("─" * (width - length(tuple(line))), "rule")), width)


def latency_title(
    context: DrawContext, window: ChartWindow, cells: Sequence[TimeRange | None], width: int, legend: Line
) -> Line:
    """Return the values under the cursor, else the legend."""
    title: Line = (("latency", "strong"), (f" {kind_of(context.state, window)} over time", "dim"))
    cursor = context.cursor(window)
    if cursor is None:
        return rule((*title, (", ms", "dim")), legend, width)
    column = cells[window.cell(cursor)]
    texts = latency_words(column) if column else (("no responses", "dim"),)
    return rule(title, ((f"{clock(cursor)}  ", "strong"), *texts), width)


def kind_of(state: State, window: ChartWindow) -> str:
    """Return the kind of latency that is drawn: response time under open load, otherwise service time."""
    names = {
        segment.counts.latency_name
        for segment in state.segments
        if segment.counts.completed and segment.start < window.end and segment.last > window.first
    }
    return "service (closed load), response (open)" if len(names) > 1 else next(iter(names), "service")
