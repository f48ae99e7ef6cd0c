"""Latency: a heat map over time, or a histogram of a segment."""

from __future__ import annotations

from cockpit.analysis.buckets import edges_for
from cockpit.model.state import Segment
from cockpit.model.text import milliseconds, si
from cockpit.tui.charts.braille import bar
from cockpit.tui.charts.cursor import Chart, percentile_words
from cockpit.tui.charts.heat import heat_map
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.styled_line import Line, centred, fit, right, rule


class Latency(Chart):
    """The latency chart, in the view named by `view.latency`."""

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        self.window = context.window(width) if context.view.latency == "heat map" else None
        if self.window is not None and context.state.seconds:
            return heat_map(context, self.window, width, height)
        segment = context.segment
        if segment is None or not segment.counts.latency.count:
            waiting = "no responses in this segment yet" if segment else "No responses yet"
            empty = centred([(waiting, "dim")], width, height - 1)
            return [rule((("latency", "title"),), (), width), *empty]
        name = f" {segment.counts.latency_name}, segment {segment.number} "
        title: Line = (("latency", "title"), (name, "dim"))
        latency = segment.counts.latency
        percentiles = ((f"p{percent}", latency.percentile(percent)) for percent in (50, 90, 99))
        words = percentile_words(*percentiles, ("max", latency.max))
        return [rule(title, words, width), *_histogram(segment, width, height - 1)]


def _histogram(segment: Segment, width: int, height: int) -> list[Line]:
    """Draw one bar per bucket on a linear scale, with counts, which show rare values too."""
    latency = segment.counts.latency
    edges = edges_for(latency, height)
    counts = latency.between(edges)
    most = max(counts)
    room = max(4, width - 36)
    lines: list[Line] = []
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        share = f"{100 * count / latency.count:5.1f}%" if count else ""
        span = f"{right(milliseconds(low / 1e9), 6)} – {fit(milliseconds(high / 1e9) + ' ms', 9)}"
        texts = f"{right(_count(count), 9)}{right(share, 9)}"
        lines.append(((span, "text"), (fit(bar(count / most, room), room), "chart"), (texts, "text")))
    return lines


def _count(count: int) -> str:
    if not count:
        return "·"
    return str(count) if count < 10_000_000 else si(count)
