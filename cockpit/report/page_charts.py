"""Charts of a session: the timeline and the latency distributions."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from cockpit.analysis.comparison import distribution
from cockpit.analysis.words.timeline import marker_sign, marker_text
from cockpit.model.histogram import Histogram
from cockpit.model.load.seconds import LATENCY_EDGES, LoadSecond
from cockpit.model.state import Segment, State
from cockpit.model.text import clock, milliseconds
from cockpit.report.charts import (
    HEIGHT,
    WIDTH,
    Axis,
    ChartSeries,
    Point,
    SvgChart,
    TimelineMark,
    decades,
    draw,
    from_zero,
)

# Maximum number of segments in one drawing; more could not be distinguished.
MOST_SEGMENTS = 8
_BUCKETS = 60
_STEPS = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800)
# Possible ends of the percentile axis: one in this many responses is slower.
_NINES = (2, 10, 100, 1000, 10_000, 100_000)
_TROUBLE = ("gap", "restart", "worker")


def time_axis(state: State) -> Axis:
    """Return the axis of session time, labelled at three to six round instants."""
    end = max(1.0, state.t)
    step = next((step for step in _STEPS if end / step <= 5.5), 86400)
    return Axis(0.0, end, tuple((float(at), _instant(at)) for at in range(0, int(end) + 1, step)))


def _instant(seconds: int) -> str:
    """Return an instant as a short label, for phones: `0:10`, `12:30`, `1:05:00`."""
    label = clock(seconds).removeprefix("00:")
    return label[1:] if label.startswith("0") else label


def timeline(state: State) -> str:
    """Return charts of rate, latency and generator and the heat map over session time, with segments and markers."""
    x = time_axis(state)
    if not state.seconds:
        return "<p class=soft>No load was sent in this session.</p>\n"
    bands = [(one.start, one.last, str(one.number)) for one in state.segments if one.last > one.start]
    signs = [TimelineMark(one.t, marker_sign(one), marker_text(one), _kind(one.kind)) for one in state.markers]
    charts = [_rate(state, x, bands, signs), _latency(state, x, bands, signs), _generator(state, x, bands)]
    name = state.segments[-1].counts.latency_name
    heat = heat_map(state.seconds, x, f"{name} time (ms) of responses over time; stronger colour: more responses")
    return "".join(draw(chart) for chart in (*charts[:2], *([heat] if heat else []), charts[2]))


def drawn_segments(state: State) -> list[Segment]:
    """Return the segments whose distribution is drawn: the first one and the newest ones with responses."""
    segments = [segment for segment in state.segments if not segment.warmup and segment.counts.latency.count]
    return segments if len(segments) <= MOST_SEGMENTS else [segments[0], *segments[1 - MOST_SEGMENTS :]]


def distributions(segments: Sequence[Segment]) -> str:
    """Return the latencies of segments in common charts: by share of responses, and by percentile."""
    if not segments:
        return "<p class=soft>No responses.</p>\n"
    latencies = [(f"segment {one.number}", one.counts.latency, colour) for colour, one in enumerate(segments)]
    return (
        f'<div class="charts">{_shares_chart(latencies)}{percentiles("latency (ms) by percentile", latencies)}</div>\n'
    )


def _shares_chart(latencies: Sequence[tuple[str, Histogram, int]]) -> str:
    """Return the shares of responses by latency."""
    everything = Histogram.merged(histogram for _, histogram, _ in latencies)
    edges = distribution(everything, everything, _BUCKETS).edges
    x = decades(max(1e-6, edges[0] / 1e9), edges[-1] / 1e9, milliseconds)
    series, highest = [], 0.0
    for name, histogram, colour in latencies:
        shares = [100 * count / histogram.count for count in histogram.between(edges)]
        highest = max(highest, *shares)
        points: list[Point] = [(edge / 1e9, share) for edge, share in zip(edges, (*shares, 0.0), strict=True)]
        series.append(ChartSeries(name, points, colour, fill=len(latencies) == 1, steps=True))
    y = from_zero(highest, lambda value: f"{value:g}%")
    return draw(SvgChart("share of responses by latency (ms)", x, y, series, tall=True))


def percentiles(title: str, latencies: Sequence[tuple[str, Histogram, int]]) -> str:
    """Return latency by percentile, a line per (name, histogram, colour); none may be empty.

    The axis is logarithmic towards the slowest: 90%, 99% and 99.9% are equally spaced.
    """
    most = max(histogram.count for _, histogram, _ in latencies)
    nines = [one for one in _NINES if one <= max(10, most)]
    x = Axis(1.0, float(nines[-1]), tuple((float(one), f"{100 - 100 / one:g}%") for one in nines), log=True)
    lowest = min(histogram.percentile(1) for _, histogram, _ in latencies)
    highest = max(histogram.max for _, histogram, _ in latencies)
    y = decades(max(1e-6, lowest), max(highest, 1e-6), milliseconds)
    series = []
    for name, histogram, colour in latencies:
        ranks = [10 ** (step / 40) for step in range(int(40 * math.log10(min(nines[-1], histogram.count))) + 1)]
        points = [(rank, histogram.percentile(100 - 100 / rank) if rank > 1 else histogram.min) for rank in ranks]
        series.append(ChartSeries(name, points, colour))
    return draw(SvgChart(title, x, y, series, tall=True))


def _rate(state: State, x: Axis, bands: list[tuple[float, float, str]], signs: list[TimelineMark]) -> SvgChart:
    seconds = state.seconds
    series = [ChartSeries("requests/s", _by_second(seconds, lambda one: one.rate), 0, fill=True)]
    if any(second.failed for second in seconds):
        series.append(ChartSeries("failed", _by_second(seconds, lambda one: float(one.failed)), 6))
    y = from_zero(max(second.rate for second in seconds))
    return SvgChart("throughput (requests/s)", x, y, series, signs, bands)


def _latency(state: State, x: Axis, bands: list[tuple[float, float, str]], signs: list[TimelineMark]) -> SvgChart:
    seconds = [second for second in state.seconds if second.max > 0]
    if not seconds:
        return SvgChart("latency", x, from_zero(1.0), (), signs, bands)
    name = state.segments[-1].counts.latency_name
    y = decades(max(1e-6, min(second.p50 for second in seconds)), max(second.max for second in seconds), milliseconds)
    columns = (("p50", 0), ("p99", 1), ("max", 7))
    series = [ChartSeries(which, _by_second(seconds, attrgetter(which)), at) for which, at in columns]
    return SvgChart(f"{name} time (ms), each second", x, y, series, signs, bands)


def _generator(state: State, x: Axis, bands: list[tuple[float, float, str]]) -> SvgChart:
    """Return the CPU of the load generator, with dots for the seconds in which it was the bottleneck."""
    seconds = state.seconds
    series = [
        ChartSeries("CPU of the busiest process", _by_second(seconds, lambda one: 100 * min(1.0, one.generator)), 5),
        ChartSeries("waiting for a CPU", _by_second(seconds, lambda one: 100 * one.cpu_wait), 7),
    ]
    bound: list[Point] = [(second.second + 0.5, 100.0) for second in seconds if second.saturated]
    if bound:
        series.append(ChartSeries("saturated: the generator is the bottleneck", bound, 6, marks=True))
    labels = tuple((float(value), f"{value}%") for value in (0, 50, 100))
    return SvgChart("the load generator (% of a core)", x, Axis(0.0, 100.0, labels), series, (), bands)


def _by_second(seconds: Sequence[LoadSecond], value: Callable[[LoadSecond], float]) -> list[Point]:
    """Return a point in the middle of the covered part of each second, with gaps for missing seconds."""
    points: list[Point] = []
    before = None
    for second in seconds:
        if before is not None and second.second > before + 1:
            points.append((before + 1.0, None))
        points.append(((second.start + second.end) / 2, float(value(second))))
        before = second.second
    return points


def _kind(kind: str) -> str:
    return "trouble" if kind in _TROUBLE else "note" if kind in ("note", "action") else "change"


def lines_over_time(
    title: str, x: Axis, y: Axis, series: Iterable[tuple[str, Sequence[Point]]], signs: Sequence[TimelineMark] = ()
) -> str:
    drawn = [
        ChartSeries(name, points, colour)
        for colour, (name, points) in enumerate(series)
        if any(value is not None for _, value in points)
    ]
    return draw(SvgChart(title, x, y, drawn, signs)) if drawn else ""


# Maximum number of columns; in longer sessions several seconds share a column.
_COLUMNS = 400
# Minimum opacity, so that even the rarest responses of a column are visible.
_FAINTEST = 40
# A blue with contrast to white and to nearly black. Its opacity shows the count.
_COLOUR = (0x2F, 0x86, 0xD0)

_Grid = npt.NDArray[np.float64]


def heat_map(seconds: Sequence[LoadSecond], x: Axis, title: str) -> SvgChart | None:
    """Return the heat map over the time of `x`; None without responses."""
    counts = _counts(seconds, x)
    used = np.flatnonzero(counts.sum(axis=0))
    if not len(used):
        return None
    low, high = int(used[0]), int(used[-1]) + 1
    y = decades(LATENCY_EDGES[low] / 1e9, LATENCY_EDGES[high] / 1e9, milliseconds)
    return SvgChart(title=title, x=x, y=y, inside=_image(counts[:, low:high], low, high, y), tall=True)


def _counts(seconds: Sequence[LoadSecond], x: Axis) -> _Grid:
    width = max(1.0, (x.high - x.low) / _COLUMNS)
    columns = max(1, math.ceil((x.high - x.low) / width))
    counts = np.zeros((columns, len(LATENCY_EDGES) - 1))
    for second in seconds:
        if second.density:
            at = int((second.second + 0.5 - x.low) / width)
            counts[min(columns - 1, max(0, at))] += np.asarray(second.density, dtype=np.float64)
    return counts


def _image(counts: _Grid, low: int, high: int, y: Axis) -> str:
    """Return an `image` element at the position of its buckets on the axis."""
    strength = np.log1p(counts) / math.log1p(float(counts.max()))
    alpha = np.where(counts > 0, _FAINTEST + strength * (255 - _FAINTEST), 0).round().astype(np.uint8)
    # The first line of an image is at the top, which is the slowest bucket.
    encoded = base64.b64encode(png(alpha.T[::-1])).decode()
    top, bottom = (HEIGHT * (1 - y.at(LATENCY_EDGES[at] / 1e9)) for at in (high, low))
    return (
        f'<image class="heat" x="0" y="{top:.2f}" width="{WIDTH:g}" height="{bottom - top:.2f}" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{encoded}"/>'
    )


def png(alpha: npt.NDArray[np.uint8]) -> bytes:
    """Return a PNG of one colour with the opacity `alpha` (lines x columns)."""
    lines, columns = alpha.shape
    palette = bytes(_COLOUR) * 256
    raw = b"".join(b"\0" + line.tobytes() for line in np.ascontiguousarray(alpha))
    head = struct.pack(">IIBBBBB", columns, lines, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"PLTE", palette), (b"tRNS", bytes(range(256))), (b"IDAT", zlib.compress(raw, 9)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in (*chunks, (b"IEND", b"")))


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
