"""Counts the requests in all output of a tail, also in lines that are not shown. Pure."""

from __future__ import annotations

from collections import Counter

from cockpit.model.events import AccessCounts
from cockpit.model.histogram import Histogram
from cockpit.servers.registry import parse_access

# Interval (s) between two counts.
INTERVAL = 1.0
# A reader that is idle for less than this share of the interval is behind: more lines are waiting.
_IDLE_SHARE = 0.05
# Maximum bytes kept of an unfinished line.
_UNFINISHED_LIMIT = 65536
# After this many lines of an unknown format in a row, only every n-th line is parsed.
_UNKNOWN_LIMIT, _SAMPLE_EVERY = 100, 50


class AccessCounter:
    """Counter of one tail. `feed` gets all output, `counts` returns a result once per INTERVAL. A tail starts with
    older lines, which are not counted. The reader adds the time (s) for which it waited to `waited`."""

    def __init__(self, host: str, tail: int, now: float) -> None:
        self.is_access_log = False
        self._host, self._tail = host, tail
        self._unfinished: bytes | None = None
        self._unknown = 0
        self._reset(now)

    def feed(self, data: bytes) -> None:
        history = self._unfinished is None
        *lines, rest = ((self._unfinished or b"") + data).split(b"\n")
        self._unfinished = rest[-_UNFINISHED_LIMIT:]
        if history:
            self.is_access_log = any(parse_access(line) for line in lines[-_UNKNOWN_LIMIT:])
            return
        self._lines += len(lines)
        for line in lines:
            self._count(line)

    def counts(self, now: float, least: float) -> AccessCounts | None:
        """Return the counts since the last result. None: INTERVAL has not passed, or the output is no access log and
        had less than `least` lines/s."""
        seconds = now - self._since
        if seconds < INTERVAL:
            return None
        counts = AccessCounts(
            t=now,
            host=self._host,
            tail=self._tail,
            seconds=seconds,
            lines=self._lines,
            statuses=dict(self._statuses),
            lookups=self._lookups,
            hits=self._hits,
            latency=Histogram.of(self._durations),
            late=self.waited < _IDLE_SHARE * seconds,
        )
        shown = self.is_access_log or self._lines > least * seconds
        self._reset(now)
        return counts if shown else None

    def _reset(self, now: float) -> None:
        self._since = now
        self.waited = 0.0
        self._lines = self._lookups = self._hits = 0
        self._statuses: Counter[int] = Counter()
        self._durations: list[int] = []

    def _count(self, line: bytes) -> None:
        self._unknown += 1
        if self._unknown > _UNKNOWN_LIMIT and self._unknown % _SAMPLE_EVERY:
            return
        request = parse_access(line)
        if request is None:
            return
        self.is_access_log, self._unknown = True, 0
        self._statuses[request.status] += 1
        if request.hit is not None:
            self._lookups += 1
            self._hits += request.hit
        if request.seconds is not None:
            self._durations.append(round(request.seconds * 1e9))
