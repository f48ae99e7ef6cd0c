"""Latency: a histogram or a table of percentiles of one segment, or a heat map over time."""

from __future__ import annotations

from collections.abc import Callable

from cockpit.analysis.buckets import edges_for
from cockpit.model.histogram import Histogram
from cockpit.model.state import Segment
from cockpit.model.text import milliseconds, si
from cockpit.tui.charts.braille import bar
from cockpit.tui.charts.cursor import Chart, percentile_words
from cockpit.tui.charts.heat import heat_map
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.styled_line import Line, centred, fit, right, rule

# The most important first.
_PERCENTS = (50, 99, 100, 90, 95, 99.9, 75, 98, 80, 66)


class Latency(Chart):
    """Below the percentiles, the view that `view.latency` names."""

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        self.window = context.window(width) if context.view.latency == "heat map" else None
        if self.window is not None and context.state.seconds:
            return heat_map(context, self.window, width, height)
        segment = context.segment
        if segment is None or not segment.counts.latency.count:
            waiting = "no responses in this segment yet" if segment else "No responses yet"
            empty = centred([(waiting, "dim")], width, height - 1)
            return [rule((("latency", "strong"),), (), width), *empty]
        title: Line = (("latency", "strong"), (f" {segment.counts.latency_name}, segment {segment.number}", "dim"))
        return [
            rule(title, percentile_line(segment.counts.latency), width),
            *_VIEWS.get(context.view.latency, _histogram)(segment, width, height - 1),
        ]


def percentile_line(latency: Histogram) -> Line:
    named = (("p50", 50), ("p90", 90), ("p99", 99))
    return percentile_words(*((name, latency.percentile(percent)) for name, percent in named), ("max", latency.max))


def _histogram(segment: Segment, width: int, height: int) -> list[Line]:
    """Draw one bar per bucket. The scale is linear, so that lengths compare; counts show the rare ones."""
    latency = segment.counts.latency
    edges = edges_for(latency, height)
    counts = latency.between(edges)
    most = max(counts)
    room = max(4, width - 36)
    lines: list[Line] = []
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        share = f"{100 * count / latency.count:5.1f} %" if count else ""
        span = f"{right(milliseconds(low / 1e9), 6)} – {fit(milliseconds(high / 1e9) + ' ms', 9)}"
        texts = f"{right(_count(count), 9)}{right(share, 9)}"
        lines.append(((span, "text"), (fit(bar(count / most, room), room), "chart"), (texts, "text")))
    return lines


def _count(count: int) -> str:
    if not count:
        return "·"
    return str(count) if count < 10_000_000 else si(count)


def _percentiles(segment: Segment, width: int, height: int) -> list[Line]:
    """Return response time (open load), service time, and its parts: first byte, connect."""
    counts = segment.counts
    parts = [("service", counts.service), ("first byte", counts.first_byte), ("connect", counts.connect)]
    if counts.response.count:
        parts.insert(0, ("response", counts.response))
    header: Line = ((right("per cent", 10), "dim"), *((right(f"{name} ms", 16), "dim") for name, _ in parts))
    lines: list[Line] = [header]
    for percent in sorted(_PERCENTS[: max(1, height - 1)]):
        texts = ((right(_within(part, counts.service, percent, name), 16), "") for name, part in parts)
        lines.append(((right(f"{percent:g}", 10), "dim"), *texts))
    return lines


def _within(part: Histogram, service: Histogram, percent: float, name: str) -> str:
    """Cap a part of the service time at the service time: its histogram may have wider buckets."""
    if not part.count:
        return "–"
    found = part.max if percent == 100 else part.percentile(percent)
    return milliseconds(
        found if name == "response" else min(found, service.max if percent == 100 else service.percentile(percent))
    )


# Views of one segment.
_VIEWS: dict[str, Callable[[Segment, int, int], list[Line]]] = {
    "histogram": _histogram,
    "percentiles": _percentiles,
}
