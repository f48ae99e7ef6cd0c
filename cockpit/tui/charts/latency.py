"""Latency: a line of percentiles over a histogram or a table of percentiles of one row of the runs table, or a heat
map of all of them over time."""

from __future__ import annotations

from collections.abc import Callable

from cockpit.analysis.buckets import edges_for
from cockpit.model.histogram import Histogram
from cockpit.model.state import Segment
from cockpit.model.text import milliseconds, si
from cockpit.tui.charts.braille import bar
from cockpit.tui.charts.chart import Chart
from cockpit.tui.charts.heat import heat_map
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.styled_line import Line, centred, fit, right, rule

# The most important first: the room decides how many are shown.
_PERCENTS = (50, 99, 100, 90, 95, 99.9, 75, 98, 80, 66)


class Latency(Chart):
    """`view.latency` names which of `_VIEWS` is drawn below the line of percentiles, or the heat map."""

    def draw(self, scene: DrawContext, width: int, height: int) -> list[Line]:
        self.window = scene.window(width) if scene.view.latency == "heat map" else None
        if self.window is not None and scene.state.seconds:
            return heat_map(scene, self.window, width, height)
        row = scene.row
        if row is None or not row.counts.latency.count:
            waiting = "no responses in this segment yet" if row else "No responses yet"
            empty = centred([(waiting, "dim")], width, height - 1)
            return [rule((("latency", "strong"),), (), width), *empty]
        title: Line = (("latency", "strong"), (f" {row.counts.latency_name}, row {row.number}", "dim"))
        return [
            rule(title, percentile_line(row.counts.latency), width),
            *_VIEWS.get(scene.view.latency, _histogram)(row, width, height - 1),
        ]


def percentile_line(latency: Histogram) -> Line:
    """`p50 1.2 p90 2.1 p99 9.8 max 61 ms`."""
    line: list[tuple[str, str]] = []
    for name, seconds in (
        ("p50", latency.percentile(50)),
        ("p90", latency.percentile(90)),
        ("p99", latency.percentile(99)),
        ("max", latency.max),
    ):
        line += [(f"{name} ", "dim"), (f"{milliseconds(seconds)} ", "strong")]
    return (*line, ("ms", "dim"))


def _histogram(row: Segment, width: int, height: int) -> list[Line]:
    """Draw one bar per bucket. The scale is linear, so that lengths compare; counts show the rare ones."""
    latency = row.counts.latency
    edges = edges_for(latency, height)
    counts = latency.between(edges)
    most = max(counts)
    room = max(4, width - 36)
    lines: list[Line] = []
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        share = f"{100 * count / latency.count:5.1f} %" if count else ""
        span = f"{right(milliseconds(low / 1e9), 6)} – {fit(milliseconds(high / 1e9) + ' ms', 9)}"
        figures = f"{right(_count(count), 9)}{right(share, 9)}"
        lines.append(((span, "text"), (fit(bar(count / most, room), room), "chart"), (figures, "text")))
    return lines


def _count(count: int) -> str:
    if not count:
        return "·"
    return str(count) if count < 10_000_000 else si(count)


def _percentiles(row: Segment, width: int, height: int) -> list[Line]:
    """Response time under open load, service time, and its parts: until the first byte, and making the connection."""
    counts = row.counts
    parts = [("service", counts.service), ("first byte", counts.first_byte), ("connect", counts.connect)]
    if counts.response.count:
        parts.insert(0, ("response", counts.response))
    header: Line = ((right("per cent", 10), "dim"), *((right(f"{name} ms", 16), "dim") for name, _ in parts))
    lines: list[Line] = [header]
    for percent in sorted(_PERCENTS[: max(1, height - 1)]):
        figures = ((right(_within(part, counts.service, percent, name), 16), "") for name, part in parts)
        lines.append(((right(f"{percent:g}", 10), "dim"), *figures))
    return lines


def _within(part: Histogram, service: Histogram, percent: float, name: str) -> str:
    """A part of the service time is never longer than all of it, of which it may be kept in wider buckets."""
    if not part.count:
        return "–"
    found = part.max if percent == 100 else part.percentile(percent)
    return milliseconds(
        found if name == "response" else min(found, service.max if percent == 100 else service.percentile(percent))
    )


# Views of one row.
_VIEWS: dict[str, Callable[[Segment, int, int], list[Line]]] = {
    "histogram": _histogram,
    "percentiles": _percentiles,
}
