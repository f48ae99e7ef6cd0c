"""A host over some time, in bounded memory: what sar would print as its last line. Pure.

Every metric is a sum of what was, each weighted by what it is a mean over (seconds, clock ticks, requests). So windows
can be joined, and where the kernel has counters the mean is exact: weighted rates add up to the counters' difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from cockpit.model import sar
from cockpit.model.events import HostSample
from cockpit.model.host_rates import ReadingStep, io_rates
from cockpit.model.host_state import DiskRates, HostPoint, HostWindow, IoMark, IoRates, MemoryUse
from cockpit.model.hosts import HostReading
from cockpit.model.sums import MeanGroup, Names

# Seconds of the window's beginning and of its end whose I/O is measured separately, half of it at most.
END_SECONDS = 5.0
# Minimum seconds between two marks.
MARK_EVERY = 0.25

# Of a disk's metrics, those that are means over time, and those over its requests.
_OF_A_REQUEST = ("areq_sz", "await_")
_OF_A_SECOND = tuple(name for name in DiskRates.__struct_fields__ if name not in ("name", *_OF_A_REQUEST))
_SPENT = ("processes.user", "processes.system")
_PSS = ("processes.pss",)
_OTHER = ("cpu.other",)
_GAUGES = (
    *(f"memory.mean.{name}" for name in MemoryUse.__struct_fields__),
    *(f"load.{name}" for name in ("1", "5", "15", "running", "blocked")),
    *(f"processes.{name}" for name in ("mean", "rss", "unshared")),
)
_memory_levels = attrgetter(*MemoryUse.__struct_fields__)
_other_levels = attrgetter("running", "blocked", "count", "rss", "unshared")


def begun(sample: HostSample, before: HostPoint | None = None) -> HostWindow:
    """The window from a sample on; `before` is the host's last point without load."""
    return HostWindow(
        first=_bare(sample),
        last=_bare(sample),
        count=len(sample.reading.processes),
        before=idle_metrics(before) if before else {},
    )


def idle_metrics(point: HostPoint) -> dict[str, float]:
    """Return the metrics of a host without load: CPU, memory, and memory of the watched processes."""
    found = _by_field("memory", point.memory) | {"processes.count": point.count, "processes.rss": point.rss}
    if point.cpu is not None:
        found |= _by_field("cpu", point.cpu)
    if point.pss is not None:
        found["processes.pss"] = point.pss
    return found


def _by_field(group: str, struct: msgspec.Struct) -> dict[str, float]:
    names, values = _named(group, type(struct), ())
    return dict(zip(names, values(struct), strict=True))


def widened(
    window: HostWindow, sample: HostSample, step: ReadingStep | None, points: tuple[HostPoint, HostPoint], *, gap: bool
) -> HostWindow:
    """The window up to the sample. `step` is from its last sample to this one, `points` are theirs.

    Without a step (the host was restarted) the counters hold nothing of the time between. With a gap they do, but
    memory, load and processes were not sampled.
    """
    grown = replace(
        window,
        last=_bare(sample),
        count=len(sample.reading.processes),
        most_defunct=max(window.most_defunct, points[1].defunct),
        closing=_closing(window, sample),
    )
    if step is None:
        return replace(grown, closing=())
    return replace(
        grown,
        seconds=window.seconds + step.seconds,
        covered=window.covered + (0.0 if gap else step.seconds),
        spawned=window.spawned + step.spawned,
        exited=window.exited + step.exited,
        forks=window.forks + step.forks,
        sums=window.sums.plus(_means_of(step, None if gap else points)),
        highest=window.highest if gap else _highest(window, step, points[1], sample),
        opening=_opening(window, sample),
    )


def joined(before: HostWindow, after: HostWindow) -> HostWindow:
    """Two windows of which the second begins where the first ends, or later, as one.

    The time between them is in neither: the first sample is moved by it, so that the window is as long as both.
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
    """The sample without what is of single processes and devices: a row is kept for as long as the session lasts."""
    return replace(sample, reading=replace(sample.reading, processes=(), cores=(), disks=(), nets=(), counters={}))


def means(window: HostWindow) -> dict[str, float]:
    """Return the mean of each metric with data."""
    return {name: found.amount / found.weight for name, found in window.sums.by_name().items() if found.weight > 0}


def current_metrics(point: HostPoint, sar_values: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics of one interval by the names of their means."""
    found = dict(sar_values)
    for group, rates in (("cpu", point.cpu), ("io", point.io), ("net", point.net)):
        found |= {} if rates is None else _by_field(group, rates)
    found |= zip(_GAUGES, _levels(point), strict=True)
    found |= {name: value for name, value in ((*_PSS, point.pss), (*_OTHER, point.other)) if value is not None}
    return found


def _highest(window: HostWindow, step: ReadingStep, point: HostPoint, sample: HostSample) -> dict[str, float]:
    now = current_metrics(point, {**sar.levels(sample.reading), **step.rates})
    return sar.highest(window.highest, now)


def opening_io(window: HostWindow) -> IoRates | None:
    """I/O over the first seconds of the window."""
    beginning = _mark(window.first.reading)
    until = beginning.uptime + min(END_SECONDS, window.seconds / 2)
    return _io_between(beginning, _nearest((*window.opening, *window.closing), until))


def closing_io(window: HostWindow) -> IoRates | None:
    """I/O over the last seconds of the window."""
    ended = _mark(window.last.reading)
    since = ended.uptime - min(END_SECONDS, window.seconds / 2)
    return _io_between(_nearest((_mark(window.first.reading), *window.opening, *window.closing), since), ended)


def _io_between(old: IoMark | None, new: IoMark | None) -> IoRates | None:
    if old is None or new is None:
        return None
    return io_rates(old.io, new.io, new.uptime - old.uptime)


def _nearest(marks: Iterable[IoMark], uptime: float) -> IoMark | None:
    return min(marks, key=lambda mark: abs(mark.uptime - uptime), default=None)


def _mark(reading: HostReading) -> IoMark:
    return IoMark(uptime=reading.uptime, io=reading.io)


def _opening(window: HostWindow, sample: HostSample) -> tuple[IoMark, ...]:
    """Marks of the first seconds, and the first one beyond it."""
    beginning = window.first.reading.uptime
    last = window.opening[-1].uptime if window.opening else beginning
    if last >= beginning + END_SECONDS or sample.reading.uptime < last + MARK_EVERY:
        return window.opening
    return (*window.opening, _mark(sample.reading))


def _closing(window: HostWindow, sample: HostSample) -> tuple[IoMark, ...]:
    """Marks of the last seconds, and the last one before it."""
    now = sample.reading.uptime
    if window.closing and now < window.closing[-1].uptime + MARK_EVERY:
        return window.closing
    old = sum(mark.uptime <= now - END_SECONDS for mark in window.closing)
    return (*window.closing[max(0, old - 1) :], _mark(sample.reading))


def _means_of(step: ReadingStep, points: tuple[HostPoint, HostPoint] | None) -> Iterator[MeanGroup]:
    """Yield the means of a step by the names of metrics."""
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
        yield _fields(f"disk.{disk.name}", disk, seconds, _OF_A_SECOND)
        yield _fields(f"disk.{disk.name}", disk, requests, _OF_A_REQUEST)
    if points and points[1].other is not None:
        yield MeanGroup(_OTHER, (points[1].other,), seconds)
    if step.rates:
        yield MeanGroup(tuple(step.rates), tuple(step.rates.values()), seconds)
    user, system = step.spent
    yield MeanGroup(_SPENT, (100 * user / seconds, 100 * system / seconds), seconds)
    if points:
        yield from _gauges(*points, seconds)
        if step.levels:
            yield MeanGroup(tuple(step.levels), tuple(step.levels.values()), seconds)


def _fields(group: str, struct: msgspec.Struct, weight: float, fields: tuple[str, ...] = ()) -> MeanGroup:
    """A struct's metrics, all or those that are named. `await_` is `await`, which Python keeps."""
    names, values = _named(group, type(struct), fields)
    return MeanGroup(names, values(struct), weight)


@lru_cache(maxsize=1024)
def _named(
    group: str, kind: type[msgspec.Struct], fields: tuple[str, ...]
) -> tuple[Names, Callable[[msgspec.Struct], tuple[float, ...]]]:
    """The whole names of fields that are metrics, and what gives their values."""
    wanted = fields or tuple(field for field in kind.__struct_fields__ if field != "name")
    return tuple(f"{group}.{field.rstrip('_')}" for field in wanted), attrgetter(*wanted)


def _gauges(before: HostPoint, after: HostPoint, seconds: float) -> Iterator[MeanGroup]:
    """Yield the gauges, interpolated linearly between two samples."""
    pairs = zip(_levels(before), _levels(after), strict=True)
    yield MeanGroup(_GAUGES, tuple([(earlier + now) / 2 for earlier, now in pairs]), seconds)
    if before.pss is not None and after.pss is not None:
        yield MeanGroup(_PSS, ((before.pss + after.pss) / 2,), seconds)


def _levels(point: HostPoint) -> tuple[float, ...]:
    return (*_memory_levels(point.memory), *point.load, *_other_levels(point))
