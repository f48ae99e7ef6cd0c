"""Ticks as a session keeps them: two a second, their histograms once a second, by coarse buckets, and now and then what
makes those full again.

A tick waits for the next of its worker, which tells whether it was the last of its second or its row.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.fold_load import SATURATED_LAG
from cockpit.model.histogram import COARSE, EMPTY, Histogram, index_of

# Seconds between what makes the histograms of a row full; at its end they are in any case.
FULL_EVERY = 600
# Seconds between histograms that nobody watches second by second.
SLOW_EVERY = 30
# Ticks of a worker that lie in the same such part of a second are one.
_PARTS_OF_SECOND = 2
_ADDED = ("sent", "completed", "abandoned", "bytes_received", "bytes_sent", "body_bytes", "held_back", "varied")
_ADDED_TOO = ("unsent", "dropped", "retries", "reconnects", "unclosed", "due", "late", "cpu", "cpu_wait")
_COUNTED = ("statuses", "errors", "unexpected")
_HISTOGRAMS = ("connect", "tls", "first_byte", "service", "response", "lag")
# An instant finer than this (s) tells nothing, and takes room.
_DIGITS = 6
# CPU and pauses (s) are told to 10 µs.
_DIGITS_OF_CPU = 5
# Lags are looked at as far as they may be too long: buckets of 25 % will do, of so many of a histogram's own.
_LAG_BUCKET = 256
_NOTHING = dict.fromkeys(_HISTOGRAMS, EMPTY)
_LATE_FROM = index_of(round(SATURATED_LAG * 1e9))


class _Row(NamedTuple):
    """What a tick is counted into: its rung, and the changes that were in force when it began."""

    run: int
    warmup: bool
    stage: int
    changes: int


class _Worker:
    """What a worker has told that is not out yet. `fresh` histograms wait for the end of their second (or ten); `told`
    is what went out coarse, `full` what it stands for."""

    def __init__(self) -> None:
        self.waiting: ev.Tick | None = None
        self.row: _Row | None = None
        self.since = 0
        self.fresh: dict[str, Histogram] = {}
        self.told: dict[str, Histogram] = {}
        self.full: dict[str, Histogram] = {}

    def take(self, tick: ev.Tick) -> None:
        """A tick that waits from now on."""
        for name, histogram in _histograms(tick).items():
            self.fresh[name] = self.fresh.get(name, EMPTY) + histogram
        lag = tick.lag
        late = lag.count - int(lag.counts[lag.indices < _LATE_FROM].sum())
        groups = {name: replace(group, service=EMPTY, response=EMPTY) for name, group in tick.groups.items()}
        bare = replace(_rounded(tick), groups=groups, due=lag.count, late=late, **_NOTHING)
        self.waiting = joined(self.waiting, bare) if self.waiting else bare

    def copied(self) -> _Worker:
        """One that can be asked what would go out, while this one goes on."""
        copy = _Worker()
        copy.waiting, copy.row, copy.since = self.waiting, self.row, self.since
        copy.fresh, copy.told, copy.full = dict(self.fresh), {}, {}
        return copy

    def out(self, *, second_over: bool, slow: bool, row_over: bool) -> ev.Tick | None:
        """The tick that waited, with what is due of its histograms."""
        tick, self.waiting = self.waiting, None
        if tick is None:
            return None
        if second_over or row_over:
            tick = self._with_coarse(tick, slow or row_over)
        if row_over:
            tick = self._with_full(tick)
        return tick

    def _with_coarse(self, tick: ev.Tick, slow: bool) -> ev.Tick:
        # Response time is what a second is judged by; under closed load that is the service time.
        watched = {"lag", "response" if self.fresh.get("response", EMPTY).count else "service"}
        due = {name: found for name, found in self.fresh.items() if found.filled and (slow or name in watched)}
        coarse = {name: found.coarse(_LAG_BUCKET if name == "lag" else COARSE) for name, found in due.items()}
        for name, found in due.items():
            del self.fresh[name]
            self.full[name] = self.full.get(name, EMPTY) + found
            self.told[name] = self.told.get(name, EMPTY) + coarse[name]
        groups = dict(tick.groups)
        for name in coarse:
            if "/" in name:
                _, group, field = name.split("/")
                groups[group] = replace(groups.get(group, ev.Group()), **{field: coarse[name]})
        own = {name: found for name, found in coarse.items() if "/" not in name}
        return replace(tick, groups=groups, **own)

    def _with_full(self, tick: ev.Tick) -> ev.Tick:
        refine = {name: full.minus(self.told[name]) for name, full in self.full.items()}
        self.full, self.told = {}, {}
        return replace(tick, refine={name: found for name, found in refine.items() if found.filled})


class Gathering:
    """Takes a session's events in their order, and gives them out: all but ticks at once."""

    def __init__(self) -> None:
        self._workers: dict[tuple[int, int], _Worker] = {}
        self._changes: list[float] = []

    def take(self, event: ev.AnyEvent) -> list[ev.AnyEvent]:
        """What goes out now that `event` has come."""
        if isinstance(event, ev.Tick):
            return self._tick(event)
        if isinstance(event, ev.RunEnded):
            return [*self._end(event.run), event]
        in_force = isinstance(event, ev.ChangeStage) and event.stage == "in force"
        if in_force or isinstance(event, ev.ChangeEnded | ev.ActionEnded | ev.RoundWindow | ev.RoundsEnded):
            self._changes.append(event.t)
        return [event]

    def rest(self) -> list[ev.AnyEvent]:
        """What still waits, at the end of the session."""
        return [tick for run in {run for run, _ in self._workers} for tick in self._end(run)]

    def pending(self) -> list[ev.AnyEvent]:
        """What still waits, as it would go out if nothing came any more; it goes on waiting."""
        copies = [worker.copied() for worker in self._workers.values()]
        ticks = [copy.out(second_over=True, slow=True, row_over=False) for copy in copies]
        return [tick for tick in ticks if tick]

    def _tick(self, tick: ev.Tick) -> list[ev.AnyEvent]:
        worker = self._workers.setdefault((tick.run, tick.worker), _Worker())
        tick_row = _Row(tick.run, tick.warmup, tick.stage, bisect_right(self._changes, tick.start))
        second = _second(tick)
        before = worker.waiting
        out = None
        if before is not None and (worker.row != tick_row or _part(before) != _part(tick)):
            row_over = worker.row != tick_row or second // FULL_EVERY != worker.since // FULL_EVERY
            slow = second // SLOW_EVERY != worker.since // SLOW_EVERY
            out = worker.out(second_over=second != worker.since, slow=slow, row_over=row_over)
        worker.row, worker.since = tick_row, second
        worker.take(tick)
        return [out] if out else []

    def _end(self, run: int) -> list[ev.AnyEvent]:
        ended = [key for key in self._workers if key[0] == run]
        ticks = [self._workers.pop(key).out(second_over=True, slow=True, row_over=True) for key in sorted(ended)]
        return [tick for tick in ticks if tick]


def joined(first: ev.Tick, then: ev.Tick) -> ev.Tick:
    """Two ticks of a worker, one behind the other and without histograms, as one."""
    sums = {name: getattr(first, name) + getattr(then, name) for name in _ADDED}
    spans = {name: round(getattr(first, name) + getattr(then, name), _DIGITS_OF_CPU) for name in _ADDED_TOO}
    counts = {name: _counted(getattr(first, name), getattr(then, name)) for name in _COUNTED}
    groups = dict(first.groups)
    for name, group in then.groups.items():
        groups[name] = _group(groups[name], group) if name in groups else group
    pause, redirect = max(first.pause, then.pause), first.redirect or then.redirect
    return replace(then, start=first.start, groups=groups, pause=pause, redirect=redirect, **sums, **spans, **counts)


def _group(first: ev.Group, then: ev.Group) -> ev.Group:
    sums = {name: getattr(first, name) + getattr(then, name) for name in ("sent", "completed")}
    return replace(then, **sums, **{name: _counted(getattr(first, name), getattr(then, name)) for name in _COUNTED})


def _counted(first: dict[Any, int], then: dict[Any, int]) -> dict[Any, int]:
    return {key: first.get(key, 0) + then.get(key, 0) for key in {**first, **then}}


def rounded(event: ev.AnyEvent) -> ev.AnyEvent:
    """The event with its instant told to the microsecond. Raises ValueError if a number of it is NaN or infinite."""
    if not all(map(math.isfinite, _floats(event))):
        raise ValueError(f"a number of {ev.kind(event)} is not finite")
    t = round(event.t, _DIGITS)
    if isinstance(event, ev.HostSample):
        return replace(event, t=t, round_trip=round(event.round_trip, _DIGITS))
    return replace(event, t=t)


def _floats(event: ev.AnyEvent) -> Iterable[float]:
    """The numbers of an event that come from a host and are no integers, and its instant."""
    if isinstance(event, ev.HostSample):
        reading = event.reading
        return (event.t, event.round_trip, reading.uptime, reading.wall, reading.probe_cpu, *reading.load)
    if isinstance(event, ev.StatusRead):
        return (event.t, *event.values.values())
    return (event.t,)


def _rounded(tick: ev.Tick) -> ev.Tick:
    instants = {name: round(getattr(tick, name), _DIGITS) for name in ("t", "start")}
    spans = {name: round(getattr(tick, name), _DIGITS_OF_CPU) for name in ("cpu", "cpu_wait", "pause")}
    return replace(tick, **instants, **spans)


def _second(tick: ev.Tick) -> int:
    """The second into which fold counts it."""
    return _part(tick) // _PARTS_OF_SECOND


def _part(tick: ev.Tick) -> int:
    """The part of a second in which the middle of the tick lies."""
    tick = _rounded(tick)
    return int((tick.start + tick.t) / 2 * _PARTS_OF_SECOND)


def _histograms(tick: ev.Tick) -> Mapping[str, Histogram]:
    """All that the tick has, by the names that `refine` gives them."""
    own = {name: getattr(tick, name) for name in _HISTOGRAMS}
    for name, group in tick.groups.items():
        own[f"groups/{name}/service"] = group.service
        own[f"groups/{name}/response"] = group.response
    return {name: found for name, found in own.items() if found.filled}
