"""Plots of a session: its timeline and its latency distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter

import numpy as np

from cockpit.analysis.comparison import distribution
from cockpit.analysis.words.timeline import marker_sign, marker_text
from cockpit.document.model import Heat, Plot, PlotSeries, Point, Sign, SignKind
from cockpit.document.scale import PERCENT, Axis, decades, from_zero
from cockpit.model.histogram import Histogram
from cockpit.model.load.seconds import LATENCY_EDGES, LoadSecond
from cockpit.model.state import State
from cockpit.model.text import clock, milliseconds

# A name, its latencies, and its colour.
Latencies = Sequence[tuple[str, Histogram, int]]

_BUCKETS = 60
_STEPS = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800)
# Possible ends of the percentile axis: one in this many responses is slower.
_NINES = (2.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0)
# Maximum number of columns of the heat map; in longer sessions several seconds share a column.
_COLUMNS = 400
# Minimum opacity, so that even the rarest responses of a column are visible.
_FAINTEST = 40


def time_axis(state: State) -> Axis:
    """Return the axis of session time, labelled at three to six round instants."""
    end = max(1.0, state.t)
    step = next((step for step in _STEPS if end / step <= 5.5), 86400)
    return Axis(0.0, end, tuple((float(at), _instant(at)) for at in range(0, int(end) + 1, step)))


def _instant(seconds: int) -> str:
    """Return an instant as a short label, for phones: `0:10`, `12:30`, `1:05:00`."""
    label = clock(seconds).removeprefix("00:")
    return label[1:] if label.startswith("0") else label


def timeline(state: State) -> list[Plot]:
    """Return plots of rate, latency, and generator over session time, with segments and markers; none without load."""
    seconds, x = state.seconds, time_axis(state)
    if not seconds:
        return []
    bands = [
        (segment.start, segment.last, str(segment.number)) for segment in state.segments if segment.last > segment.start
    ]
    signs = [Sign(marker.t, marker_sign(marker), marker_text(marker), _kind(marker.kind)) for marker in state.markers]

    def plot(title: str, y: Axis, *series: PlotSeries, signs: Sequence[Sign] = signs) -> Plot:
        return Plot(kind="time", title=title, x=x, y=y, series=series, signs=signs, bands=bands, wide=True)

    failed = (
        [PlotSeries("failed", _by_second(seconds, attrgetter("failed")), 6)]
        if any(second.failed for second in seconds)
        else []
    )
    rates = PlotSeries("requests/s", _by_second(seconds, attrgetter("rate")), 0, fill=True)
    plots = [plot("throughput (requests/s)", from_zero(max(second.rate for second in seconds)), rates, *failed)]
    known = [second for second in seconds if second.max > 0]
    name = state.segments[-1].counts.latency_name
    if known:
        y = decades(min(second.p50 for second in known), max(second.max for second in known), milliseconds)
        columns = (("p50", 0), ("p99", 1), ("max", 7))
        lines = [PlotSeries(which, _by_second(known, attrgetter(which)), colour) for which, colour in columns]
        plots.append(plot(f"{name} time (ms), each second", y, *lines))
        plots += _heat_map(seconds, x, f"{name} time (ms) of responses over time; stronger colour: more responses")
    return [*plots, plot("the load generator (% of a core)", PERCENT, *_generator(seconds), signs=())]


def _generator(seconds: Sequence[LoadSecond]) -> list[PlotSeries]:
    """Return the CPU of the load generator, with dots for the seconds in which it was the bottleneck."""
    bound: list[Point] = [(second.second + 0.5, 100.0) for second in seconds if second.saturated]
    return [
        PlotSeries(
            "CPU of the busiest process", _by_second(seconds, lambda second: 100 * min(1.0, second.generator)), 5
        ),
        PlotSeries("waiting for a CPU", _by_second(seconds, lambda second: 100 * second.cpu_wait), 7),
        *([PlotSeries("saturated: the generator is the bottleneck", bound, 6, dots=True)] if bound else ()),
    ]


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


def _kind(kind: str) -> SignKind:
    if kind in ("gap", "restart", "setting", "worker"):
        return "trouble"
    return "note" if kind in ("note", "action") else "change"


def _heat_map(seconds: Sequence[LoadSecond], x: Axis, title: str) -> list[Plot]:
    """Return the heat map over the time of `x`; nothing without responses."""
    width = max(1.0, (x.high - x.low) / _COLUMNS)
    columns = max(1, math.ceil((x.high - x.low) / width))
    counts = np.zeros((columns, len(LATENCY_EDGES) - 1))
    for second in seconds:
        if second.density:
            at = int((second.second + 0.5 - x.low) / width)
            counts[min(columns - 1, max(0, at))] += np.asarray(second.density, dtype=np.float64)
    used = np.flatnonzero(counts.sum(axis=0))
    if not len(used):
        return []
    first, last = int(used[0]), int(used[-1]) + 1
    strength = np.log1p(counts[:, first:last]) / math.log1p(float(counts.max()))
    opacity = np.where(strength > 0, _FAINTEST + strength * (255 - _FAINTEST), 0).round().astype(np.uint8)
    low, high = LATENCY_EDGES[first] / 1e9, LATENCY_EDGES[last] / 1e9
    heat = Heat([line.tobytes() for line in np.ascontiguousarray(opacity.T)], low, high)
    return [Plot(kind="time", title=title, x=x, y=decades(low, high, milliseconds), heat=heat, wide=True)]


def latency_plots(latencies: Latencies, of: str = "") -> list[Plot]:
    """Return plots of latencies, of which none may be empty: by share of responses, and by percentile."""
    return [_shares(latencies, of), _percentiles(latencies, of)] if latencies else []


def _shares(latencies: Latencies, of: str) -> Plot:
    everything = Histogram.merged(histogram for _, histogram, _ in latencies)
    edges = distribution(everything, everything, _BUCKETS).edges
    series, highest = [], 0.0
    for name, histogram, colour in latencies:
        shares = [100 * count / histogram.count for count in histogram.between(edges)]
        highest = max(highest, *shares)
        points: list[Point] = [(edge / 1e9, share) for edge, share in zip(edges, (*shares, 0.0), strict=True)]
        series.append(PlotSeries(name, points, colour, fill=len(latencies) == 1))
    x = decades(edges[0] / 1e9, edges[-1] / 1e9, milliseconds)
    y = from_zero(highest, lambda value: f"{value:.3g}%")
    return Plot(kind="steps", title=f"share of responses by latency (ms){of}", x=x, y=y, series=series)


def _percentiles(latencies: Latencies, of: str) -> Plot:
    """Return latency by percentile. The axis is logarithmic towards the slowest: 90%, 99% and 99.9% are equally
    spaced."""
    most = max(histogram.count for _, histogram, _ in latencies)
    nines = [rank for rank in _NINES if rank <= max(10, most)]
    x = Axis(1.0, nines[-1], tuple((rank, f"{100 - 100 / rank:g}%") for rank in nines), log=True)
    lowest = min(histogram.percentile(1) for _, histogram, _ in latencies)
    y = decades(lowest, max(histogram.max for _, histogram, _ in latencies), milliseconds)
    series = []
    for name, histogram, colour in latencies:
        end = min(nines[-1], histogram.count)
        steps = (10 ** (step / 40) for step in range(int(40 * math.log10(end)) + 1))
        ranks = sorted({*steps, *(rank for rank in nines if rank <= end)})
        points = [(rank, histogram.percentile(100 - 100 / rank) if rank > 1 else histogram.min) for rank in ranks]
        series.append(PlotSeries(name, points, colour))
    return Plot(kind="values", title=f"latency (ms) by percentile{of}", x=x, y=y, series=series)
