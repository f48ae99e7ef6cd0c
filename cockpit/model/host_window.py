"""A host over a stretch of time, in bounded memory: what sar would print as its last line. Pure.

Every figure is a sum of what was, each weighted by what it is a mean over (seconds, clock ticks, requests). So windows
can be joined, and where the kernel has counters the mean is exact: weighted rates add up to the counters' difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from cockpit.model.events import HostSample
from cockpit.model.host_rates import Step, io_rates
from cockpit.model.host_state import HostPoint, HostWindow, IoMark, IoRates, Weighted
from cockpit.model.hosts import HostReading

# Seconds of the window's beginning and of its end whose I/O is told apart, half of it at most.
STRETCH = 5.0
# Marks lie so many seconds apart at least.
MARK_EVERY = 0.25


def begun(sample: HostSample) -> HostWindow:
    """A window that holds one sample."""
    return HostWindow(first=_bare(sample), last=_bare(sample), count=len(sample.reading.processes))


def widened(
    window: HostWindow, sample: HostSample, step: Step | None, points: tuple[HostPoint, HostPoint], *, gap: bool
) -> HostWindow:
    """The window up to the sample. `step` is from its last sample to this one, `points` are theirs.

    Without a step (the host was started anew) the counters tell nothing of the time between. With a gap they do, but
    nobody looked at memory, load and processes.
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
        births=window.births + step.births,
        deaths=window.deaths + step.deaths,
        forks=window.forks + step.forks,
        sums=added(window.sums, _weighted(step, None if gap else points)),
        opening=_opening(window, sample),
    )


def joined(before: HostWindow, after: HostWindow) -> HostWindow:
    """Two windows of which the second begins where the first ends, or later, as one."""
    return HostWindow(
        first=before.first,
        last=after.last,
        count=after.count,
        seconds=before.seconds + after.seconds,
        covered=before.covered + after.covered,
        births=before.births + after.births,
        deaths=before.deaths + after.deaths,
        forks=before.forks + after.forks,
        most_defunct=max(before.most_defunct, after.most_defunct),
        sums=added(before.sums, after.sums.items()),
        opening=before.opening or after.opening,
        closing=after.closing or before.closing,
    )


def _bare(sample: HostSample) -> HostSample:
    """The sample without what is of single processes and devices: a row is kept for as long as the session lasts."""
    return replace(sample, reading=replace(sample.reading, processes=(), cores=(), disks=(), nets=()))


def mean(window: HostWindow, name: str) -> float | None:
    """The figure's mean over the window; None where nothing tells of it."""
    found = window.sums.get(name)
    return found.amount / found.weight if found and found.weight > 0 else None


def opening_io(window: HostWindow) -> IoRates | None:
    """I/O over the first stretch of the window."""
    beginning = _mark(window.first.reading)
    until = beginning.uptime + min(STRETCH, window.seconds / 2)
    return _io_between(beginning, _nearest((*window.opening, *window.closing), until))


def closing_io(window: HostWindow) -> IoRates | None:
    """I/O over the last stretch of the window."""
    ended = _mark(window.last.reading)
    since = ended.uptime - min(STRETCH, window.seconds / 2)
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
    """Marks of the first stretch, and the first one beyond it."""
    beginning = window.first.reading.uptime
    last = window.opening[-1].uptime if window.opening else beginning
    if last >= beginning + STRETCH or sample.reading.uptime < last + MARK_EVERY:
        return window.opening
    return (*window.opening, _mark(sample.reading))


def _closing(window: HostWindow, sample: HostSample) -> tuple[IoMark, ...]:
    """Marks of the last stretch, and the last one before it."""
    now = sample.reading.uptime
    if window.closing and now < window.closing[-1].uptime + MARK_EVERY:
        return window.closing
    old = sum(mark.uptime <= now - STRETCH for mark in window.closing)
    return (*window.closing[max(0, old - 1) :], _mark(sample.reading))


def added(sums: Mapping[str, Weighted], more: Iterable[tuple[str, Weighted]]) -> dict[str, Weighted]:
    """The sums with more added to those of the same name."""
    total = dict(sums)
    for name, one in more:
        known = total.get(name)
        total[name] = Weighted(known[0] + one[0], known[1] + one[1]) if known else one
    return total


def _weighted(step: Step, points: tuple[HostPoint, HostPoint] | None) -> Iterator[tuple[str, Weighted]]:
    """All that a step tells, by the names that figures have."""
    seconds = step.seconds
    if step.cpu is not None:
        yield from _fields("cpu", step.cpu, step.ticks)
    if step.io is not None:
        yield from _fields("io", step.io, seconds)
    if step.net is not None:
        yield from _fields("net", step.net, seconds)
    for net in step.nets:
        yield from _fields(f"net.{net.name}", net, seconds)
    for disk, requests in step.disks:
        yield from _fields(f"disk.{disk.name}", disk, seconds, {"areq_sz": requests, "await_": requests})
    user, system = step.spent
    yield "processes.user", Weighted(100 * user, seconds)
    yield "processes.system", Weighted(100 * system, seconds)
    if points:
        yield from _gauges(*points, seconds)


def _fields(
    group: str, told: msgspec.Struct, weight: float, weights: Mapping[str, float] | None = None
) -> Iterator[tuple[str, Weighted]]:
    """A struct's figures, all of the same weight but those of `weights`. `await_` is `await`, which Python keeps."""
    fields, names, values = _named(group, type(told))
    if weights is None:
        yield from ((name, Weighted(value * weight, weight)) for name, value in zip(names, values(told), strict=True))
        return
    for field, name, value in zip(fields, names, values(told), strict=True):
        of_it = weights.get(field, weight)
        yield name, Weighted(value * of_it, of_it)


@lru_cache(maxsize=1024)
def _named(
    group: str, kind: type[msgspec.Struct]
) -> tuple[Sequence[str], Sequence[str], Callable[[msgspec.Struct], tuple[float, ...]]]:
    """Fields that are figures, their whole names, and what gives their values."""
    fields = [field for field in kind.__struct_fields__ if field != "name"]
    return fields, [f"{group}.{field.rstrip('_')}" for field in fields], attrgetter(*fields)


def _gauges(before: HostPoint, after: HostPoint, seconds: float) -> Iterator[tuple[str, Weighted]]:
    """What has no counter: between two looks it is taken to have gone straight from one value to the other."""
    earlier = dict(_levels(before))
    for name, value in _levels(after):
        if name in earlier:
            yield name, Weighted((earlier[name] + value) / 2 * seconds, seconds)


def _levels(point: HostPoint) -> Iterator[tuple[str, float]]:
    for name in point.memory.__struct_fields__:
        yield f"memory.mean.{name}", getattr(point.memory, name)
    for minutes, load in zip((1, 5, 15), point.load, strict=True):
        yield f"load.{minutes}", load
    yield "load.running", point.running
    yield "load.blocked", point.blocked
    yield "processes.mean", point.count
    yield "processes.rss", point.rss
    yield "processes.unshared", point.unshared
    if point.pss is not None:
        yield "processes.pss", point.pss
