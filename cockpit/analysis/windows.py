"""Comparable time ranges of a session, without discarded seconds.

Discarded by rule: seconds that load covers only in part, GUARD seconds after the start of a segment or a change,
changes and actions in progress, seconds in which an access log was not read, and seconds in which the generator was
the bottleneck. Seconds with queued arrivals count, but their number is reported.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from statistics import median
from types import MappingProxyType

import msgspec

from cockpit.analysis.timeline import timeline
from cockpit.model.counts import Group
from cockpit.model.host.state import HostPoint
from cockpit.model.load.plan import LoadPlan
from cockpit.model.load.seconds import LoadSecond
from cockpit.model.markers import SettingMarker
from cockpit.model.stacks import StackSlice
from cockpit.model.state import Segment, State

# Seconds discarded after the start of a run or a change: the same for both sides, whatever the data.
GUARD = 3
# A second is complete if ticks cover this share of it: ticks are assigned by their middle, which blurs its ends.
WHOLE = 0.75
# Minimum samples of a time without load, and the longest part of it (s) next to a compared run.
_UNLOADED_READINGS, UNLOADED_LONGEST = 3, 30.0
# Seconds of the longest tick.
_TICK = 1.0
# Minimum seconds of a growing window for its saturated share: the first saturated second may be followed by more.
_LEAST_GROWN = 10.0
# A host counts as sampled in a second if a sample is within this distance (s) of its middle.
READ_WITHIN = 5.5


class DiscardReason(StrEnum):
    """Why a second is left out. QUEUED: arrivals were queued in the second, which counts nevertheless."""

    GUARD = "guard"
    PARTIAL = "partial"
    UNREAD = "unread"
    SATURATED = "saturated"
    CHANGING = "changing"
    EDGE = "edge"
    QUEUED = "queued"


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The time range from `start` to `end` (session seconds) under one load.

    `seconds` are the counted ones, oldest first. `guarded` counts those after a start or a change, `flawed` all other
    discarded ones by flaw, and QUEUED ones. `saturated` are the saturated seconds since the first counted one.
    `segments` are the segments covered; `growing`: the window still grows.

    By host: `hosts` are readings, `unread` counts seconds without a reading, `cpus` is the number of CPUs, `boots`
    names the machine (`generator_boot` that of the generator). `unloaded` is the CPU that other programs took while no
    load ran (per cent of all CPUs), just before or after and under the same settings. `slices` are the CPU profiles
    that overlap the window. `altered` are the settings that others changed at any time. `capacity` (arrivals/s) is the
    result of the capacity search in this time; None: no search, or it found none. `groups` are the counts by route of
    users' requests, `standardized` metrics replace those of the seconds (see `strata`).
    """

    start: float
    end: float
    plan: LoadPlan
    seconds: tuple[LoadSecond, ...] = ()
    guarded: int = 0
    flawed: Mapping[DiscardReason, int] = MappingProxyType({})
    unread: Mapping[str, int] = MappingProxyType({})
    hosts: Mapping[str, tuple[HostPoint, ...]] = MappingProxyType({})
    cpus: Mapping[str, int] = MappingProxyType({})
    segments: tuple[Segment, ...] = ()
    growing: bool = False
    saturated: tuple[LoadSecond, ...] = ()
    boots: Mapping[str, str] = MappingProxyType({})
    generator_boot: str = ""
    unloaded: Mapping[str, float] = MappingProxyType({})
    slices: Mapping[str, tuple[StackSlice, ...]] = MappingProxyType({})
    altered: tuple[SettingMarker, ...] = ()
    capacity: float | None = None
    groups: Mapping[str, Group] = MappingProxyType({})
    standardized: Mapping[str, float] = MappingProxyType({})

    @property
    def saturated_share(self) -> float:
        """The share of the time in which the generator was saturated; 0 while a growing window is too short."""
        if self.growing and self.end - self.start < _LEAST_GROWN:
            return 0.0
        saturated = self.flawed.get(DiscardReason.SATURATED, 0)
        shares = [saturated / (saturated + len(self.seconds))] if saturated else []
        shares += [min(1.0, part.saturated / part.seconds) for part in self.segments if part.seconds > 0]
        return max(shares, default=0.0)

    def with_saturated(self) -> Window:
        """Return the window with its saturated seconds counted: a lower bound of the server's capacity."""
        return msgspec.structs.replace(
            self,
            seconds=tuple(sorted((*self.seconds, *self.saturated), key=_second_of)),
            saturated=(),
            flawed={flaw: seconds for flaw, seconds in self.flawed.items() if flaw is not DiscardReason.SATURATED},
            segments=tuple(msgspec.structs.replace(segment, saturated_worker_seconds=0.0) for segment in self.segments),
        )

    @property
    def cpu_wait(self) -> float:
        """The share of the time in which the generator was ready to run without a CPU."""
        waits = [second.cpu_wait for second in self.seconds]
        return sum(waits) / len(waits) if waits else 0.0


Windows = Sequence[Window]


def discarded_seconds(windows: Iterable[Window]) -> dict[DiscardReason, int]:
    """Return the seconds of the windows that do not count, by reason."""
    counts = Counter[DiscardReason]()
    for window in windows:
        counts.update({DiscardReason.GUARD: window.guarded, **window.flawed})
    return {
        flaw: counts[flaw]
        for flaw in DiscardReason
        if counts[flaw] and flaw not in (DiscardReason.EDGE, DiscardReason.QUEUED)
    }


def segment_window(state: State, segment: Segment) -> Window:
    window = window_between(state, segment.start, segment.last, segment.plan)
    return msgspec.structs.replace(window, segments=(segment,), growing=segment.end is None)


def segment_window_at(state: State, segment: Segment, t: float) -> Window:
    """Return the window of a segment as it was known at `t`: nothing that happened later changes it."""
    end = min(segment.last, t)
    window = window_between(state, segment.start, end, segment.plan, as_of=t)
    whole = (
        segment
        if segment.end is not None and segment.end <= t
        else Segment(
            number=segment.number,
            run=segment.run,
            plan=segment.plan,
            basis=segment.basis,
            labelled_by=segment.labelled_by,
            start=segment.start,
            last=end,
        )
    )
    losses = tuple(loss for loss in segment.losses if loss.t <= t)
    seen = msgspec.structs.replace(whole, addresses=segment.addresses, losses=losses, reason="", detail="")
    return msgspec.structs.replace(window, segments=(seen,), growing=False)


def window_between(state: State, start: float, end: float, plan: LoadPlan, as_of: float = math.inf) -> Window:
    """Return the window from `start` to `end`. Changes and actions within it are cut out with their guard. The time
    without load after it counts if its run had ended at `as_of`."""
    flawed: dict[DiscardReason, int] = {}
    known = state.seconds
    inside = known[bisect_left(known, start, key=_second_of) : bisect_left(known, end, key=_second_of)]
    changing = timeline(state).changing_within(start, end)
    kept, bound, guarded = [], [], 0
    for second in inside:
        flaw = _flaw(second, start, end, changing)
        if flaw is None:
            kept.append(second)
        elif flaw is DiscardReason.GUARD:
            guarded += 1
        elif flaw is not DiscardReason.EDGE:
            flawed[flaw] = flawed.get(flaw, 0) + 1
            bound += [second] if flaw is DiscardReason.SATURATED else []
    if queued := sum(second.queued > 0 for second in kept):
        flawed[DiscardReason.QUEUED] = queued
    # Without any counted second, all saturated ones are kept.
    bound = [second for second in bound if not kept or second.second >= kept[0].second]
    first = (kept or bound)[0].second if kept or bound else end
    hosts = {name: _readings(host.points, min(first, start + GUARD), end) for name, host in state.hosts.items()}
    return Window(
        start=start,
        end=end,
        plan=plan,
        seconds=tuple(kept),
        guarded=guarded,
        flawed=flawed,
        unread={name: missing for name, points in hosts.items() if (missing := unread(points, kept))},
        hosts=hosts,
        cpus={name: host.facts.cpus for name, host in state.hosts.items() if host.facts},
        saturated=tuple(bound),
        boots={name: host.facts.boot for name, host in state.hosts.items() if host.facts},
        generator_boot=state.started.boot if state.started else "",
        unloaded=_unloaded(state, start, end, as_of),
        slices={
            name: parts
            for name, host in state.hosts.items()
            if (parts := tuple(part for part in host.slices if part.t > start and part.start < end))
        },
        altered=tuple(each for each in state.markers if isinstance(each, SettingMarker) and each.t <= as_of),
    )


def _unloaded(state: State, start: float, end: float, as_of: float) -> dict[str, float]:
    """Return the other load on each host (per cent) without load just before or just after: the larger of the two
    medians. A time across a change is ignored, because its settings differ."""
    shares_by_host: dict[str, float] = {}
    for begun, over in _idle_times(state, start, end, as_of):
        for name, host in state.hosts.items():
            shares = [point.other for point in _readings(host.points, begun, over) if point.other is not None]
            if len(shares) >= _UNLOADED_READINGS:
                shares_by_host[name] = max(median(shares), shares_by_host.get(name, 0.0))
    return shares_by_host


def _idle_times(state: State, start: float, end: float, as_of: float) -> list[tuple[float, float]]:
    """Return the time ranges next to the run around `start` in which no run was in progress."""
    known = timeline(state)
    spans, at = known.runs, known.run_at(start)
    if at is None:
        return []
    begun, over = spans[at]
    ranges = []
    if not known.switched(begun, start):
        before = (spans[at - 1][1] or begun) + GUARD if at else 0.0
        ranges.append((max(before, begun - UNLOADED_LONGEST), begun))
    # The last tick of a segment may extend beyond the change that ends the segment.
    if over is not None and over <= as_of and not known.switched(math.nextafter(end - _TICK, -math.inf), over):
        after = spans[at + 1][0] if at + 1 < len(spans) else state.t
        ranges.append((over + GUARD, min(after, over + GUARD + UNLOADED_LONGEST)))
    return ranges


def counted_range(state: State, segment: Segment) -> range:
    """Return the session seconds from the first counted one of a growing segment to its newest complete one."""
    changing = timeline(state).changing_within(segment.start, segment.last)
    seconds = state.seconds
    begun = bisect_left(seconds, math.ceil(segment.start), key=_second_of)
    newest = math.floor(segment.last + 1 - WHOLE)
    for second in itertools.islice(seconds, begun, None):
        if _flaw(second, segment.start, segment.last, changing) in (None, DiscardReason.SATURATED):
            return range(second.second, newest)
    return range(0)


def _second_of(second: LoadSecond) -> int:
    return second.second


def _flaw(second: LoadSecond, start: float, end: float, changing: list[tuple[float, float]]) -> DiscardReason | None:
    """Return why a second is left out; None: it counts."""
    if any(begun < second.second + 1 and second.second < over + GUARD for begun, over in changing):
        return DiscardReason.CHANGING
    if second.second < math.ceil(start) + GUARD:
        return DiscardReason.GUARD
    # The last second is cut by the end of the window, not by missing ticks.
    if second.second + 1 > end + (1 - WHOLE):
        return DiscardReason.EDGE
    if second.end - second.start < WHOLE:
        return DiscardReason.PARTIAL
    if second.unread:
        return DiscardReason.UNREAD
    return DiscardReason.SATURATED if second.saturated else None


def _readings(points: Sequence[HostPoint], start: float, end: float) -> tuple[HostPoint, ...]:
    first = bisect_left(points, start, key=_time_of)
    return tuple(points[first : bisect_right(points, end, lo=first, key=_time_of)])


def _time_of(point: HostPoint) -> float:
    return point.t


def unread(points: tuple[HostPoint, ...], seconds: Iterable[LoadSecond]) -> int:
    """Count the seconds without a sample nearby. The slowest sampling interval is five seconds."""
    times = [point.t for point in points]
    missing = 0
    for second in seconds:
        at = bisect_left(times, second.second)
        near = [times[place] for place in (at - 1, at) if 0 <= place < len(times)]
        missing += not any(abs(t - second.second - 0.5) <= READ_WITHIN for t in near)
    return missing
