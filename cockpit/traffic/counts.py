"""Counts of an access log, as count.awk prints them, and the tick of load that they make. Hostile until parsed."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from cockpit.model.counts import Group
from cockpit.model.histogram import EMPTY, Histogram
from cockpit.model.text import sanitize
from cockpit.model.tick import Tick
from cockpit.traffic.log_format import MOST_DIGITS
from cockpit.traffic.program import MOST_GROUPS

# Limits of one interval: characters of a line, lines (durations have three digits: at most 900 per power of ten).
_LONGEST, _MOST_LINES = 400, 200_000
# Microseconds of the durations of nginx and others.
_MILLISECOND = 1000
_MARK = re.compile(r"\+ (\d{1,9}(?:\.\d{1,2})?) (\d{1,12}) (\d{1,12}) ([01])")
_GROUP = re.compile(r"g (\d{1,3}) ([A-Za-z]{1,8} \S{1,300})")
_COUNT = re.compile(rf"c (\d{{1,3}}) ([1-5]\d\d) (\d{{1,{MOST_DIGITS}}}|-) (\d{{1,9}})")


class InvalidCounts(Exception):
    """A line that is none of count.awk; the message is its text."""


class TrafficCounts:
    """The requests until `uptime` (s) of the host; `invalid` lines had another format, `rotated` is the
    number of files that ended; `unreadable`: the log is another file now, which the login cannot read."""

    def __init__(self) -> None:
        self.uptime: float | None = None
        self.invalid = 0
        self.rotated = 0
        self.unreadable = False
        self._lines = 0
        self._groups: dict[str, str] = {}
        self._statuses: dict[str, Counter[int]] = {}
        self._durations: dict[str, Counter[int]] = {}

    def feed(self, line: str) -> bool:
        """Add a line; return whether the interval is complete. Raises InvalidCounts."""
        self._lines += 1
        if len(line) > _LONGEST or self._lines > _MOST_LINES:
            raise InvalidCounts("too much output")
        if line == "." and self.uptime is not None:
            return True
        if self.uptime is None and (match := _MARK.fullmatch(line)):
            self.uptime, self.invalid, self.rotated = float(match[1]), int(match[2]), int(match[3])
            self.unreadable = match[4] == "1"
        elif self.uptime is not None and (match := _GROUP.fullmatch(line)):
            self._groups[match[1]] = sanitize(match[2])
            if len(self._groups) > MOST_GROUPS + 1:
                raise InvalidCounts("too many groups")
        elif (match := _COUNT.fullmatch(line)) and (name := self._groups.get(match[1])):
            self._statuses.setdefault(name, Counter())[int(match[2])] += int(match[4])
            durations = self._durations.setdefault(name, Counter())
            if match[3] != "-":
                durations[int(match[3])] += int(match[4])
        else:
            raise InvalidCounts(sanitize(line, 200))
        return False

    def tick(self, run: int, worker: int, start: float, t: float, fine: bool = True, unread: bool = False) -> Tick:
        """Return the requests as load from `start` to `t` (s). `fine`: durations are logged in microseconds; else those
        of an interval are milliseconds if all are whole ones. `unread`: requests of this time may be missing, as they
        are if no line of it has the format."""
        whole = all(is_whole(us) for durations in self._durations.values() for us in durations)
        grain = _MILLISECOND if whole and not fine else 1
        groups = {name: self._group_counts(name, grain) for name in self._statuses}
        statuses = sum(self._statuses.values(), Counter[int]())
        completed = statuses.total()
        return Tick(
            t=t,
            run=run,
            worker=worker,
            start=start,
            sent=completed,
            completed=completed,
            statuses=dict(statuses),
            service=Histogram.merged(group.service for group in groups.values()),
            groups=groups,
            silence=0.0 if completed else t - start,
            invalid_lines=self.invalid,
            rotations=self.rotated,
            unread=t - start if unread or self.unreadable or (self.invalid and not completed) else 0.0,
        )

    def _group_counts(self, name: str, grain: int) -> Group:
        statuses = self._statuses[name]
        return Group(
            sent=statuses.total(),
            completed=statuses.total(),
            statuses=dict(statuses),
            service=_histogram(self._durations[name], grain),
        )


def is_whole(us: int) -> bool:
    """Return whether a duration (µs) is one of whole milliseconds."""
    return us % _MILLISECOND == 0


def _histogram(durations: Counter[int], grain: int) -> Histogram:
    """Return the histogram of rounded durations (µs): each in the middle of the range that was rounded to it. `grain`:
    the resolution (µs) of the log."""
    if not durations:
        return EMPTY
    counts = np.array(list(durations.values()), dtype=np.int64)
    if counts.sum() > 10 * _MOST_LINES:
        raise InvalidCounts("too many requests")
    values = np.array([1000 * us + 500 * max(grain, _unit(us)) for us in durations], dtype=np.int64)
    return Histogram.of(np.repeat(values, counts))


def _unit(us: int) -> int:
    """Return the width (µs) of the range of a duration that was rounded down to three digits."""
    unit: int = 10 ** max(0, len(str(us)) - 3)
    return unit
