"""Means of a host's metrics over a time range in bounded memory, like the Average line of sar. Pure.

Each metric is stored as a weighted sum; the weight is the unit of the mean (seconds, clock ticks, requests). So windows
can be joined, and means of kernel counters are exact: the weighted rates add up to the counters' difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from cockpit.model.events import HostSample
from cockpit.model.host import sar
from cockpit.model.host.rates import ProcessTimes, ReadingStep, io_rates
from cockpit.model.host.samples import HostReading
from cockpit.model.host.state import DiskRates, HostPoint, HostWindow, IoRates, IoSnapshot, MemoryUse
from cockpit.model.sums import MeanGroup, Names

# Length (s) of the start and of the end of a window whose I/O is reported separately; at most half the window each.
END_SECONDS = 5.0
# Minimum time between two I/O marks (s).
MARK_EVERY = 0.25

# Disk metrics that are means over requests; all others are means over time.
_PER_REQUEST = ("areq_sz", "await_")
_PER_SECOND = tuple(name for name in DiskRates.__struct_fields__ if name not in ("name", *_PER_REQUEST))
_SPENT = ("processes.user", "processes.system")
_TREE = ("processes.cpu_tree",)
_PSS = ("processes.pss",)
_OTHER = ("cpu.other",)
_WAIT = ("processes.wait",)
_SHARES = ("processes.running", "processes.waiting", "processes.blocked", "processes.sleeping")
_SWITCHES, _INVOLUNTARY = ("processes.cswch",), ("processes.involuntary",)
_GAUGES = (
    *(f"memory.mean.{name}" for name in MemoryUse.__struct_fields__),
    *(f"load.{name}" for name in ("1", "5", "15", "running", "blocked")),
    *(f"processes.{name}" for name in ("mean", "rss", "unshared")),
)
# Not reported by each host.
_AVAILABLE = _GAUGES.index("memory.mean.available")
_KNOWN_GAUGES = _GAUGES[:_AVAILABLE] + _GAUGES[_AVAILABLE + 1 :]
_memory_levels = attrgetter(*MemoryUse.__struct_fields__)
_other_levels = attrgetter("running", "blocked", "count", "rss", "unshared")


def new_window(sample: HostSample, before: HostPoint | None = None) -> HostWindow:
    """Return a window that starts with a sample; `before`: the host's last point without load."""
    return HostWindow(
        first=_bare(sample),
        last=_bare(sample),
        count=len(sample.reading.processes),
        before=idle_metrics(before) if before else {},
    )


def idle_metrics(point: HostPoint) -> dict[str, float]:
    """Return the metrics of a host without load: CPU, memory, number and memory of the watched processes."""
    metrics = _by_field("memory", point.memory) | {"processes.count": point.count, "processes.rss": point.rss}
    if point.cpu is not None:
        metrics |= _by_field("cpu", point.cpu)
    if point.pss is not None:
        metrics["processes.pss"] = point.pss
    return metrics


def _by_field(group: str, struct: msgspec.Struct) -> dict[str, float]:
    names, values = _named_values(group, type(struct), ())
    return {name: value for name, value in zip(names, values(struct), strict=True) if value is not None}


def extend_window(
    window: HostWindow, sample: HostSample, step: ReadingStep | None, points: tuple[HostPoint, HostPoint], *, gap: bool
) -> HostWindow:
    """Return the window extended to `sample`. `step` and `points` are those of its last sample and `sample`.

    Without a step (the host rebooted) the counters do not cover the time between the samples. With a gap they do, but
    memory, load and processes were not sampled.
    """
    extended = replace(
        window,
        last=_bare(sample),
        count=len(sample.reading.processes),
        most_defunct=max(window.most_defunct, points[1].defunct),
        closing=_closing(window, sample),
    )
    if step is None:
        return replace(extended, closing=())
    return replace(
        extended,
        seconds=window.seconds + step.seconds,
        covered=window.covered + (0.0 if gap else step.seconds),
        spawned=window.spawned + step.spawned,
        exited=window.exited + step.exited,
        forks=window.forks + step.forks,
        sums=window.sums.plus(_means_of(step, None if gap else points)),
        highest=window.highest if gap else _highest(window, step, points[1], sample),
        opening=_opening(window, sample),
    )


def join_windows(before: HostWindow, after: HostWindow) -> HostWindow:
    """Join two windows; the second starts when the first ends, or later.

    The time between them is left out: the first sample is moved by it, so that the joined window has the length of
    both.
    """
    between = max(0.0, after.first.t - before.last.t)
    return HostWindow(
        first=replace(before.first, t=before.first.t + between) if between else before.first,
        last=after.last,
        count=after.count,
        seconds=before.seconds + after.seconds,
        covered=before.covered + after.covered,
        spawned=before.spawned + after.spawned,
        exited=before.exited + after.exited,
        forks=before.forks + after.forks,
        most_defunct=max(before.most_defunct, after.most_defunct),
        sums=before.sums.joined(after.sums),
        opening=before.opening or after.opening,
        closing=after.closing or before.closing,
        highest=sar.highest(before.highest, after.highest),
        before=before.before,
        after=after.after,
    )


def _bare(sample: HostSample) -> HostSample:
    """Return the sample without processes and devices, because windows are kept until the session ends."""
    return replace(sample, reading=replace(sample.reading, processes=(), cores=(), disks=(), nets=(), counters={}))


def means(window: HostWindow) -> dict[str, float]:
    """Return the mean of each metric with data."""
    return {name: summed.amount / summed.weight for name, summed in window.sums.by_name().items() if summed.weight > 0}


def current_metrics(point: HostPoint, sar_values: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics of one interval by the same names as the means of a window."""
    metrics = dict(sar_values)
    for group, rates in (("cpu", point.cpu), ("io", point.io), ("net", point.net)):
        metrics |= {} if rates is None else _by_field(group, rates)
    metrics |= {name: value for name, value in zip(_GAUGES, _levels(point), strict=True) if value is not None}
    partial = ((*_PSS, point.pss), (*_OTHER, point.other), (*_WAIT, point.wait))
    metrics |= {name: value for name, value in partial if value is not None}
    return metrics


def _highest(window: HostWindow, step: ReadingStep, point: HostPoint, sample: HostSample) -> dict[str, float]:
    now = current_metrics(point, {**sar.levels(sample.reading), **step.rates})
    return sar.highest(window.highest, now)


def opening_io(window: HostWindow) -> IoRates | None:
    """Return I/O rates over the first seconds of the window; None if unknown."""
    beginning = _mark(window.first.reading)
    until = beginning.uptime + min(END_SECONDS, window.seconds / 2)
    return _io_between(beginning, _nearest((*window.opening, *window.closing), until))


def closing_io(window: HostWindow) -> IoRates | None:
    """Return I/O rates over the last seconds of the window; None if unknown."""
    ended = _mark(window.last.reading)
    since = ended.uptime - min(END_SECONDS, window.seconds / 2)
    return _io_between(_nearest((_mark(window.first.reading), *window.opening, *window.closing), since), ended)


def _io_between(old: IoSnapshot | None, new: IoSnapshot | None) -> IoRates | None:
    if old is None or new is None:
        return None
    return io_rates(old.io, new.io, new.uptime - old.uptime)


def _nearest(marks: Iterable[IoSnapshot], uptime: float) -> IoSnapshot | None:
    return min(marks, key=lambda mark: abs(mark.uptime - uptime), default=None)


def _mark(reading: HostReading) -> IoSnapshot:
    return IoSnapshot(uptime=reading.uptime, io=reading.io)


def _opening(window: HostWindow, sample: HostSample) -> tuple[IoSnapshot, ...]:
    """Return the marks of the first `END_SECONDS`, and the first mark after them."""
    beginning = window.first.reading.uptime
    last = window.opening[-1].uptime if window.opening else beginning
    if last >= beginning + END_SECONDS or sample.reading.uptime < last + MARK_EVERY:
        return window.opening
    return (*window.opening, _mark(sample.reading))


def _closing(window: HostWindow, sample: HostSample) -> tuple[IoSnapshot, ...]:
    """Return the marks of the last `END_SECONDS`, and the last mark before them."""
    now = sample.reading.uptime
    if window.closing and now < window.closing[-1].uptime + MARK_EVERY:
        return window.closing
    old = sum(mark.uptime <= now - END_SECONDS for mark in window.closing)
    return (*window.closing[max(0, old - 1) :], _mark(sample.reading))


def _means_of(step: ReadingStep, points: tuple[HostPoint, HostPoint] | None) -> Iterator[MeanGroup]:
    seconds = step.seconds
    if step.cpu is not None:
        yield _fields("cpu", step.cpu, step.ticks)
    if step.io is not None:
        yield _fields("io", step.io, seconds)
    if step.net is not None:
        yield _fields("net", step.net, seconds)
    for net in step.nets:
        yield _fields(f"net.{net.name}", net, seconds)
    for disk, requests in step.disks:
        yield _fields(f"disk.{disk.name}", disk, seconds, _PER_SECOND)
        yield _fields(f"disk.{disk.name}", disk, requests, _PER_REQUEST)
    if points and points[1].other is not None:
        yield MeanGroup(_OTHER, (points[1].other,), seconds)
    if step.times is not None:
        yield from _process_means(step.times, seconds)
    if step.rates:
        yield MeanGroup(tuple(step.rates), tuple(step.rates.values()), seconds)
    if step.tree is not None:
        yield MeanGroup(_TREE, (100 * step.tree / seconds,), seconds)
    user, system = step.spent
    yield MeanGroup(_SPENT, (100 * user / seconds, 100 * system / seconds), seconds)
    if points:
        yield from _gauges(*points, seconds)
        if step.levels:
            yield MeanGroup(tuple(step.levels), tuple(step.levels.values()), seconds)


def _process_means(times: ProcessTimes, seconds: float) -> Iterator[MeanGroup]:
    if times.wait is not None:
        yield MeanGroup(_WAIT, (times.wait,), seconds)
    if not times.lived:
        return
    yield MeanGroup(_SHARES, times.shares, times.lived)
    yield MeanGroup(_SWITCHES, (times.switches / seconds,), seconds)
    if switches := sum(times.left):
        yield MeanGroup(_INVOLUNTARY, (100 * times.left[1] / switches,), switches)


def _fields(group: str, struct: msgspec.Struct, weight: float, fields: tuple[str, ...] = ()) -> MeanGroup:
    """Return the metrics of a struct's `fields` (none: all). The field `await_` is the metric `await`, a Python
    keyword."""
    names, values = _named_values(group, type(struct), fields)
    return MeanGroup(names, values(struct), weight)


@lru_cache(maxsize=1024)
def _named_values(
    group: str, kind: type[msgspec.Struct], fields: tuple[str, ...]
) -> tuple[Names, Callable[[msgspec.Struct], tuple[float, ...]]]:
    selected = fields or tuple(field for field in kind.__struct_fields__ if field != "name")
    return tuple(f"{group}.{field.rstrip('_')}" for field in selected), attrgetter(*selected)


def _gauges(before: HostPoint, after: HostPoint, seconds: float) -> Iterator[MeanGroup]:
    """Yield the means of the gauges, interpolated linearly between two samples."""
    names, earlier, later = _GAUGES, _levels(before), _levels(after)
    if before.memory.available is None or after.memory.available is None:
        names = _KNOWN_GAUGES
        earlier, later = (levels[:_AVAILABLE] + levels[_AVAILABLE + 1 :] for levels in (earlier, later))
    yield MeanGroup(names, tuple([(first + second) / 2 for first, second in zip(earlier, later, strict=True)]), seconds)
    if before.pss is not None and after.pss is not None:
        yield MeanGroup(_PSS, ((before.pss + after.pss) / 2,), seconds)


def _levels(point: HostPoint) -> tuple[float, ...]:
    return (*_memory_levels(point.memory), *point.load, *_other_levels(point))
