"""A worker's share of a replayed log: its arrivals and its requests."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from math import inf

import msgspec

from cockpit.load.http.request import requests_of
from cockpit.load.ramp import Ramp
from cockpit.load.request_order import PlannedRequest, RequestForm
from cockpit.model.load.plan import LoadPlan


class LogShare(msgspec.Struct, frozen=True):
    """A worker's requests. `offsets` (float64) are their times in seconds after the start, ascending; `numbers`
    (uint32) their line numbers in `requests`, which has one distinct `METHOD path` per line."""

    offsets: bytes
    numbers: bytes
    requests: bytes


class LoggedArrivals:
    """The arrivals of a share, with the methods of `Arrivals`; the times of the log replace the rate."""

    def __init__(self, share: LogShare) -> None:
        self._offsets = array("d", share.offsets)
        self._next = 0
        self._start = 0.0
        self.due = inf

    def follow(self, at: float, rate: Ramp) -> None:
        """Start the replay at `at` (s of time.monotonic()); `rate` is ignored."""
        self._start = at
        self._advance_to(self._next)

    @property
    def place(self) -> int:
        """The index of the next arrival."""
        return self._next

    def advance(self) -> None:
        self._advance_to(self._next + 1)

    def skip(self, until: float) -> int:
        """Skip the arrivals due before `until`; return their number."""
        before = self._next
        self._advance_to(bisect_left(self._offsets, until - self._start, before))
        return self._next - before

    def _advance_to(self, index: int) -> None:
        self._next = index
        self.due = self._start + self._offsets[index] if index < len(self._offsets) else inf


class LoggedOrder:
    """The requests of a share in order, with the members of `RequestOrder`. HEAD requests have their own number,
    because their responses have no body."""

    only = None

    def __init__(self, plan: LoadPlan, share: LogShare) -> None:
        self._lines = share.requests.split(b"\n")
        # Of GET and of HEAD.
        self._forms = [RequestForm(plan, request) for request in requests_of(plan)]
        self._numbers = array("I", share.numbers)
        self._next = 0
        self._dropped: deque[range] = deque()
        self.largest = max(map(len, self._lines)) + len(self._forms[0].request())

    def drop(self, place: int, count: int) -> None:
        """Skip `count` requests from index `place` on, whose arrivals were dropped; earlier ones may be queued."""
        first = self._dropped.pop().start if self._dropped and self._dropped[-1].stop == place else place
        self._dropped.append(range(first, place + count))

    def next_request(self, connection: object = None) -> PlannedRequest:
        if self._dropped and self._next == self._dropped[0].start:
            self._next = self._dropped.popleft().stop
        line = self._lines[self._numbers[self._next]]
        self._next += 1
        method, _, path = line.partition(b" ")
        number = int(method == b"HEAD")
        return PlannedRequest(number, self._forms[number].request(path))
