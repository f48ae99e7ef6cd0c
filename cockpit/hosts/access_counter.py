"""Counts the requests in the output of a tail, before lines are dropped from it. Pure."""

from __future__ import annotations

from collections import Counter

from cockpit.model.events import AccessCounts
from cockpit.model.histogram import Histogram
from cockpit.servers.registry import parse_access

# Seconds of one count.
INTERVAL = 1.0
# A reader that rests for less than this share of a count reads as fast as it can: more lines are waiting.
_REST = 0.05
# Bytes of an unfinished line that are kept.
_LONGEST = 65536
# After this many lines of an unknown format in a row, only every n-th line is parsed.
_TRIES, _SAMPLED = 100, 50


class AccessCounter:
    """`take` the output as it comes, `counts` once per INTERVAL. The lines that a tail starts with are older than the
    tail, so they are not counted. The reader adds the seconds in which it waited to `rested`."""

    def __init__(self, host: str, tail: int, now: float) -> None:
        self.is_access_log = False
        self._host, self._tail = host, tail
        self._unfinished: bytes | None = None
        self._unknown = 0
        self._begin(now)

    def take(self, data: bytes) -> None:
        history = self._unfinished is None
        *lines, rest = ((self._unfinished or b"") + data).split(b"\n")
        self._unfinished = rest[-_LONGEST:]
        if history:
            self.is_access_log = any(parse_access(line) for line in lines[-_TRIES:])
            return
        self._lines += len(lines)
        for line in lines:
            self._read(line)

    def counts(self, now: float, least: float) -> AccessCounts | None:
        """The counts since the last ones; None within the INTERVAL, and for a tail of another format that printed less
        than `least` lines per second."""
        seconds = now - self._begun
        if seconds < INTERVAL:
            return None
        found = AccessCounts(
            t=now,
            host=self._host,
            tail=self._tail,
            seconds=seconds,
            lines=self._lines,
            statuses=dict(self._statuses),
            lookups=self._lookups,
            hits=self._hits,
            latency=Histogram.of(self._durations),
            late=self.rested < _REST * seconds,
        )
        shown = self.is_access_log or self._lines > least * seconds
        self._begin(now)
        return found if shown else None

    def _begin(self, now: float) -> None:
        self._begun = now
        self.rested = 0.0
        self._lines = self._lookups = self._hits = 0
        self._statuses: Counter[int] = Counter()
        self._durations: list[int] = []

    def _read(self, line: bytes) -> None:
        self._unknown += 1
        if self._unknown > _TRIES and self._unknown % _SAMPLED:
            return
        found = parse_access(line)
        if found is None:
            return
        self.is_access_log, self._unknown = True, 0
        self._statuses[found.status] += 1
        if found.hit is not None:
            self._lookups += 1
            self._hits += found.hit
        if found.seconds is not None:
            self._durations.append(round(found.seconds * 1e9))
