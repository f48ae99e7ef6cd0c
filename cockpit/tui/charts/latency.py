"""Latency: lines or a heat map over time, histogram or percentiles of a segment, a segment over its baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cockpit.analysis.buckets import edges_for
from cockpit.analysis.words.comparison import overlaid
from cockpit.model.histogram import Histogram
from cockpit.model.state import Segment
from cockpit.model.text import milliseconds, si
from cockpit.tui.charts.braille import bar
from cockpit.tui.charts.cursor import Chart, percentile_words
from cockpit.tui.charts.heat import heat_map
from cockpit.tui.charts.latency_lines import failed_mark, latency_lines
from cockpit.tui.charts.window import ChartWindow
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.key_table import MainKey
from cockpit.tui.terminal.styled_line import Line, Piece, centred, fit, right, rule

# The most important first; fewer in a small pane.
_PERCENTS = (50, 99, 100, 90, 95, 99.9, 75, 98, 80, 66)


class Latency(Chart):
    """The latency chart, in the view named by `view.latency`."""

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        over_time = _OVER_TIME.get(context.view.latency)
        self.window = context.window(width) if over_time else None
        if over_time and self.window is not None and context.state.seconds:
            return over_time(context, self.window, width, height)
        segment = context.segment
        if segment is None or not segment.counts.latency.count:
            waiting = "no responses in this segment yet" if segment else "No responses yet"
            empty = centred([(waiting, "dim")], width, height - 1)
            return [rule((("latency", "strong"),), (), width), *empty]
        if context.view.latency == "overlay":
            return _overlay(context, segment, width, height)
        name = f" {segment.counts.latency_name}, segment {segment.number} "
        title: Line = (("latency", "strong"), (name, "dim"), *failed_mark(segment.counts.failed))
        return [
            rule(title, percentile_line(segment.counts.latency), width),
            *_VIEWS.get(context.view.latency, _histogram)(segment, width, height - 1),
        ]


def _overlay(context: DrawContext, segment: Segment, width: int, height: int) -> list[Line]:
    """Return the latency distribution of the segment over its baseline's."""
    base = context.before(segment)
    title: Line = (("latency", "strong"), (f" {segment.counts.latency_name}, ms", "dim"))
    if base is None or not base.counts.latency.count:
        text = f"no other segment to compare with; {MainKey.BASELINE}: make the selected segment the baseline"
        return [rule(title, (), width), *centred([(text, "dim")], width, height - 1)]
    legend: Line = ((f"▀ segment {base.number}  ", "before"), (f"▄ segment {segment.number}", "after"))
    drawn = overlaid(base.counts.latency, segment.counts.latency, max(1, height - 1), max(8, width - _TEXTS))
    return [
        rule(title, legend, width),
        *(((f"{span} ", "dim"), *coloured(bars), (f" {shares}", "")) for span, bars, shares in drawn),
    ]


def coloured(bars: str) -> Iterator[Piece]:
    """Yield the pieces of two overlaid bars: their common cells, then the rest of the longer bar."""
    both = bars.count("█")
    if both:
        yield "▀" * both, "both"
    yield bars[both:], "before" if "▀" in bars else "after"


def percentile_line(latency: Histogram) -> Line:
    named = (("p50", 50), ("p90", 90), ("p99", 99))
    return percentile_words(*((name, latency.percentile(percent)) for name, percent in named), ("max", latency.max))


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


def _percentiles(segment: Segment, width: int, height: int) -> list[Line]:
    """Return a table of response time (open load only), service time, and its parts: first byte, connect, the head of
    line waiting of HTTP/2, and TLS handshakes."""
    counts = segment.counts
    parts = [("service", counts.service), ("first byte", counts.first_byte), ("connect", counts.connect)]
    if counts.head_of_line.count:
        parts.append(("head of line", counts.head_of_line))
    if counts.response.count:
        parts.insert(0, ("response", counts.response))
    tls = [part for part in (("TLS full", counts.tls), ("TLS resumed", counts.tls_resumed)) if part[1].count]
    parts += sorted(tls, key=lambda part: -part[1].count)
    column = 16 if 10 + 16 * len(parts) <= width else 15
    parts = parts[: max(1, (width - 10) // column)]
    header: Line = ((right("per cent", 10), "dim"), *((right(f"{name} ms", column), "dim") for name, _ in parts))
    lines: list[Line] = [header]
    for percent in sorted(_PERCENTS[: max(1, height - 1)]):
        texts = ((right(_within(part, counts.service, percent, name), column), "") for name, part in parts)
        lines.append(((right(f"{percent:g}", 10), "dim"), *texts))
    return lines


def _within(part: Histogram, service: Histogram, percent: float, name: str) -> str:
    """Return a percentile of a part, at most the service time's: histograms can differ in their bucket widths."""
    if not part.count:
        return "–"
    value = part.max if percent == 100 else part.percentile(percent)
    return milliseconds(
        value if name == "response" else min(value, service.max if percent == 100 else service.percentile(percent))
    )


# Cells of the texts beside the bars of an overlay.
_TEXTS = 36
_OVER_TIME: dict[str, Callable[[DrawContext, ChartWindow, int, int], list[Line]]] = {
    "lines": latency_lines,
    "heat map": heat_map,
}
# Views of one segment.
_VIEWS: dict[str, Callable[[Segment, int, int], list[Line]]] = {
    "histogram": _histogram,
    "percentiles": _percentiles,
}
