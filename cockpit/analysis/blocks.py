"""Metrics of windows as arrays for comparison: one value per block, or per run.

Metric names: `rate`, `p50`, `p99`, `errors` (share of requests that failed) and of each host `HOST.cpu.busy` (percent:
user, nice, system), `HOST.cpu.per_request` (CPU seconds), `HOST.memory.used` (bytes), `HOST.processes.spawned_per_s`,
`HOST.speed.cpu` (the probe's loops per second of CPU time).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cockpit.analysis.intervals import Floats
from cockpit.analysis.windows import Window
from cockpit.metrics.results import segments_result
from cockpit.metrics.values import host_metrics, is_metric, metric_value
from cockpit.model.histogram import Histogram
from cockpit.model.host.sar import SPEED_METRIC
from cockpit.model.host.state import HostPoint
from cockpit.model.load.seconds import LoadSecond
from cockpit.model.state import Segment

# Minimum share of counted seconds in a block that counts.
FILLED = 0.8
# Seconds per block.
BLOCK = 5

PERCENTILES = {"p50": 50.0, "p99": 99.0}


class LatencyBlocks(NamedTuple):
    """Latency histograms of blocks: `counts` (blocks x buckets); each bucket starts at `lower` and is `width` wide
    (ns)."""

    counts: Floats
    lower: Floats
    width: Floats

    @classmethod
    def of(cls, parts: Sequence[Histogram]) -> LatencyBlocks:
        """Build one row per histogram; the histograms must be coarse."""
        lengths = [len(part.indices) for part in parts]
        if not sum(lengths):
            return cls(np.zeros((len(parts), 1)), np.zeros(1), np.ones(1))
        indices, places = np.unique(np.concatenate([part.indices for part in parts]), return_inverse=True)
        counts = np.zeros((len(parts), len(indices)))
        counts[np.repeat(np.arange(len(parts)), lengths), places] = np.concatenate([part.counts for part in parts])
        shifts = np.maximum((indices >> 10) - 1, 0)
        lower = (indices - (shifts << 10)) << shifts
        return cls(counts, lower.astype(np.float64), (np.int64(16) << shifts).astype(np.float64))

    def grouped(self, places: Sequence[Sequence[int]]) -> LatencyBlocks:
        return self._replace(counts=np.array([self.counts[list(group)].sum(axis=0) for group in places]))

    def percentiles(self, percent: float) -> Floats:
        """Return a percentile of each row, seconds, interpolated linearly within buckets; nan for an empty row."""
        return self.percentiles_of(self.counts, percent)

    def percentiles_of(self, counts: Floats, percent: float) -> Floats:
        running = np.cumsum(counts, axis=1)
        total = running[:, -1]
        rank = total * percent / 100
        at = np.minimum((running < rank[:, None]).sum(axis=1), counts.shape[1] - 1)
        rows = np.arange(len(counts))
        in_bucket = counts[rows, at]
        with np.errstate(invalid="ignore", divide="ignore"):
            within = (rank - (running[rows, at] - in_bucket)) / in_bucket
            values: Floats = np.where(total > 0, (self.lower[at] + self.width[at] * within) / 1e9, np.nan)
        return values


class Sample(NamedTuple):
    """Values of each metric: `blocks` has one per block, nan without readings; `overall` has one over all blocks."""

    blocks: Mapping[str, Floats]
    overall: Mapping[str, float]

    @property
    def size(self) -> int:
        return len(next(iter(self.blocks.values())))


def block_sample(window: Window) -> Sample:
    """Return the metrics of a window by block, from its first second; an incomplete last block is left out."""
    seconds = window.seconds
    places = _block_indices(seconds)
    table = _values_by_second(window)
    by_second = {name: values for name, values in table.items() if not name.startswith("+")}
    spread = LatencyBlocks.of([second.latency for second in seconds])
    grouped = spread.grouped(places) if places else spread._replace(counts=np.zeros((0, spread.counts.shape[1])))
    blocks = {name: _means(values, places) for name, values in by_second.items()}
    blocks |= _rates({name: _sums(values, places) for name, values in table.items() if name.startswith("+")})
    blocks |= {name: grouped.percentiles(percent) for name, percent in PERCENTILES.items()}
    used = [place for group in places for place in group]
    return Sample(_with_cost(blocks, window.cpus), _overall(table, by_second, spread, used, window.cpus))


def block_count(window: Window) -> int:
    return len(_block_indices(window.seconds))


def window_values(windows: Sequence[Window]) -> dict[str, Floats]:
    """Return each metric's values: one per window, over its counted seconds."""
    rows = [dict(block_sample(window).overall) for window in windows]
    for values, window in zip(rows, windows, strict=True):
        if window.capacity is not None:
            values["capacity"] = window.capacity
        values.update(window.standardized)
    names = sorted({name for values in rows for name in values})
    return {name: np.array([values.get(name, np.nan) for values in rows]) for name in names}


def run_values(windows: Sequence[Window]) -> dict[str, Floats]:
    """Return each metric's values: one per segment of the windows, warm-up included. For runs too short for blocks."""
    segments = [segment for window in windows for segment in window.segments]
    cpus = {name: cores for window in windows for name, cores in window.cpus.items()}
    counts = [segment.counts for segment in segments]
    table = {
        "+completed": np.array([float(part.completed) for part in counts]),
        "+seconds": np.array([segment.seconds for segment in segments]),
        "+failed": np.array([float(part.failed) for part in counts]),
        "+requests": np.array([float(part.completed + sum(part.errors.values())) for part in counts]),
    }
    read = [_host_metrics_of_segment(segment) for segment in segments]
    values = {
        name: np.array([metrics.get(name, np.nan) for metrics in read])
        for name in sorted({name for metrics in read for name in metrics})
    }
    spread = LatencyBlocks.of([part.latency.coarse() for part in counts])
    values |= _rates(table) | {name: spread.percentiles(percent) for name, percent in PERCENTILES.items()}
    return _with_cost(values, cpus)


def segment_metrics(windows: Sequence[Window], names: Iterable[str]) -> dict[str, Floats]:
    """Return the values of metrics, named as in thresholds: one per segment of the windows, nan if unknown."""
    segments = [segment for window in windows for segment in window.segments]
    results = [segments_result([segment], segment.plan, segment.seconds) for segment in segments]
    rows = {name: [metric_value(result, name) for result in results] for name in names if is_metric(name)}
    return {name: np.array([np.nan if value is None else value for value in row]) for name, row in rows.items()}


def _block_indices(seconds: tuple[LoadSecond, ...]) -> list[list[int]]:
    """Return the indices of the seconds in each filled block; the last block is included once it is complete."""
    if not seconds:
        return []
    first, last = seconds[0].second, seconds[-1].second
    groups: dict[int, list[int]] = {}
    for at, second in enumerate(seconds):
        groups.setdefault((second.second - first) // BLOCK, []).append(at)
    whole = (last + 1 - first) // BLOCK
    return [places for block, places in groups.items() if block < whole and len(places) >= FILLED * BLOCK]


def _values_by_second(window: Window) -> dict[str, Floats]:
    """Return values per second. Names with a leading + are counts to be summed, all others are samples."""
    seconds = window.seconds
    table = {
        "+completed": np.array([float(second.completed) for second in seconds]),
        "+seconds": np.array([second.end - second.start for second in seconds]),
        "+failed": np.array([float(second.failed) for second in seconds]),
        "+requests": np.array([float(second.completed + second.errors) for second in seconds]),
    }
    for name, points in window.hosts.items():
        for reading, values in _host_values_by_second(points, seconds).items():
            table[f"{name}.{reading}"] = values
    return table


def _host_values_by_second(points: tuple[HostPoint, ...], seconds: tuple[LoadSecond, ...]) -> dict[str, Floats]:
    """Assign each sample to the second with most of its interval; nan for seconds without one."""
    place = {second.second: at for at, second in enumerate(seconds)}
    busy, used, spawned, speed = (np.full(len(seconds), np.nan) for _ in range(4))
    for point in points:
        at = place.get(int(point.t - 0.5))
        if at is None:
            continue
        used[at] = point.memory.used
        if point.cpu is not None:
            busy[at] = point.cpu.user + point.cpu.nice + point.cpu.system
        if point.spawned is not None and point.count:
            spawned[at] = point.spawned
        if point.speed is not None:
            speed[at] = point.speed
    known = {"cpu.busy": busy, "memory.used": used, "processes.spawned_per_s": spawned, SPEED_METRIC: speed}
    return {name: values for name, values in known.items() if not np.isnan(values).all()}


def _host_metrics_of_segment(segment: Segment) -> dict[str, float]:
    values: dict[str, float] = {}
    for name, window in segment.hosts.items():
        if window.seconds <= 0:
            continue
        metrics = host_metrics(window)
        if "cpu.user" in metrics:
            values[f"{name}.cpu.busy"] = metrics["cpu.user"] + metrics["cpu.nice"] + metrics["cpu.system"]
        if "memory.used" in metrics:
            values[f"{name}.memory.used"] = metrics["memory.used"]
        if SPEED_METRIC in metrics:
            values[f"{name}.{SPEED_METRIC}"] = metrics[SPEED_METRIC]
        if metrics.get("processes.count"):
            values[f"{name}.processes.spawned_per_s"] = metrics["processes.spawned_per_s"]
    return values


def _rates(counts: Mapping[str, Floats]) -> dict[str, Floats]:
    requests, seconds = counts["+requests"], counts["+seconds"]
    return {
        "rate": np.divide(counts["+completed"], seconds, out=np.full(len(seconds), np.nan), where=seconds > 0),
        "errors": np.divide(counts["+failed"], requests, out=np.zeros_like(requests), where=requests > 0),
    }


def _with_cost(metrics: dict[str, Floats], cpus: Mapping[str, int]) -> dict[str, Floats]:
    """Return the metrics, with each host's CPU seconds per response added."""
    for name, cores in cpus.items():
        busy = metrics.get(f"{name}.cpu.busy")
        if busy is not None:
            rate = metrics["rate"]
            cost = np.full(len(rate), np.nan)
            metrics[f"{name}.cpu.per_request"] = np.divide(busy / 100 * cores, rate, out=cost, where=rate > 0)
    return metrics


def _sums(values: Floats, places: Iterable[Sequence[int]]) -> Floats:
    return np.array([values[list(group)].sum() for group in places])


def _means(values: Floats, places: Iterable[Sequence[int]]) -> Floats:
    """Return means of samples; nan if the samples cover less than half of a block."""
    means = []
    for group in places:
        read = values[list(group)]
        read = read[~np.isnan(read)]
        means.append(float(read.mean()) if 2 * len(read) >= len(group) else np.nan)
    return np.array(means)


def _overall(
    table: Mapping[str, Floats],
    read: Mapping[str, Floats],
    spread: LatencyBlocks,
    used: list[int],
    cpus: Mapping[str, int],
) -> dict[str, float]:
    if not used:
        return {}
    totals = {name: values[used].sum(keepdims=True) for name, values in table.items() if name.startswith("+")}
    metrics = _rates(totals)
    for name, values in read.items():
        known = values[used][~np.isnan(values[used])]
        if len(known):
            metrics[name] = known.mean(keepdims=True)
    pooled = spread.counts[used].sum(axis=0, keepdims=True)
    metrics |= {name: spread.percentiles_of(pooled, percent) for name, percent in PERCENTILES.items()}
    return {name: float(values[0]) for name, values in _with_cost(metrics, cpus).items()}
