"""Closed load: each connection sends its next request as soon as the previous one is over.

With HTTP/2, `plan.streams` streams of each connection do so; connections are added and removed with all their streams.
"""

from __future__ import annotations

import heapq
from math import inf
from time import monotonic

from cockpit.load.engine import Engine, Hooks, timeout_precision
from cockpit.load.file_limit import raise_file_limit
from cockpit.load.http.protocol import Assignment
from cockpit.load.poller import Poller
from cockpit.load.ramp import Ramp
from cockpit.load.request_metrics import RequestMetrics
from cockpit.load.slots import RequestSlot, closed_slots

# Interval (s) between opening connections, so that the server's backlog does not overflow.
_STAGGER = 0.000125
# Pause (s) after a failed connect, so that an unreachable server is not flooded, and the number of errors does not
# depend on the speed of this loop.
PAUSE = 0.02
# A limit below any number of requests.
_NO_REQUESTS = -1


class ClosedLoad(Engine):
    """Engine for closed load. Connections are in use, or spare until the concurrency rises again."""

    def __init__(self, assignment: Assignment, poller: Poller, hooks: Hooks) -> None:
        super().__init__(assignment, poller, hooks)
        self._active: dict[RequestSlot, None] = {}
        self._spare: list[RequestSlot] = []
        self._make = closed_slots(assignment.plan)
        self._streams = assignment.plan.streams
        self._several = self.order.only is None
        # Number of requests up to which a request starts without further checks.
        self._unchecked_limit = self._limit
        # Number of connections to close when their request is over; number with an uncounted request of the warm-up.
        self._surplus = 0
        self._uncounted = 0
        # Time at which a ramp next adds or removes a connection.
        self._next_step = inf
        # Connections to renew once their request is over.
        self._worn: set[RequestSlot] = set()
        self._last_in_flight: set[RequestSlot] = set()
        self._waiting: list[tuple[float, int, RequestSlot]] = []
        # The streams of the connections to close, and the number of each stream in the order of their creation.
        self._leaving: set[RequestSlot] = set()
        self._numbers: dict[RequestSlot, int] = {}

    def adjust(self, load: Ramp) -> None:
        raise_file_limit(self.own(int(max(load.first, load.last))))
        super().adjust(load)

    def renew(self) -> None:
        self._worn = set(self._active)
        self._update_unchecked_limit()

    def reassign(self, place: int, workers: int, more: int) -> None:
        # A worker that is already sending its last requests takes no more.
        super().reassign(place, workers, 0 if self.exhausted else more)

    def _set_load(self, at: float) -> None:
        self._next_step = self._load.next_step(at)
        self._set_concurrency(self.own(self._load.connections(at)), at)

    def _set_concurrency(self, count: int, now: float) -> None:
        more = min(count * self._streams, self._limit) - (len(self._active) - self._surplus)
        kept = min(more, self._surplus)
        self._surplus -= kept
        for number in range(more - kept):
            connection = self._spare.pop() if self._spare else self._make(self, *self._first_request())
            self._numbers.setdefault(connection, -len(self._numbers))
            connection.carry(*self._first_request())
            self._active[connection] = None
            self._wait(connection, now + self._first_pause(number, more - kept))
        self._leaving = set(list(self._active)[-self._surplus :] if self._surplus and self._streams > 1 else ())
        self._update_unchecked_limit()

    def _first_pause(self, number: int, of: int) -> float:
        """Return the delay (s) of the first request of connection `number` of `of` that are added together."""
        return number * _STAGGER

    def _wait(self, connection: RequestSlot, due: float) -> None:
        heapq.heappush(self._waiting, (due, id(connection), connection))
        self.due = min(self.due, due)

    def _limit_to(self, limit: int) -> None:
        # A connection ends with its request in flight if no request is left.
        self._limit = limit
        self._update_unchecked_limit()

    def _first_request(self) -> tuple[RequestMetrics, bytes]:
        """Return the metrics and bytes of a plan's only request; the bytes are empty if each request is chosen."""
        only = self.order.only
        return self.tally.per_request[0], only.request if only else b""

    def _update_unchecked_limit(self) -> None:
        self._unchecked_limit = _NO_REQUESTS if self._surplus or self._uncounted or self._worn else self._limit

    # --- called by connections ---

    def proceed(self, connection: RequestSlot) -> None:
        """Start the next request of a connection, or end the connection."""
        if self._issued < self._unchecked_limit:
            self._issued += 1
            if self._several:
                self._carry_next(connection, self.tally.per_request)
            connection.begin(monotonic())
        elif not connection.counts.live:
            self._count_connection(connection)
            self.proceed(connection)
        elif connection in self._worn:
            self._worn.discard(connection)
            self._update_unchecked_limit()
            connection.close()
            self.proceed(connection)
        elif self._issued >= self._limit:
            self._end_connection(connection)
        elif self._retires(connection):
            self._retire(connection)
        else:
            # Only other connections have to be checked.
            self._issued += 1
            if self._several:
                self._carry_next(connection, self.tally.per_request)
            connection.begin(monotonic())

    next = proceed

    def not_connected(self, connection: RequestSlot) -> None:
        """Pause before the next connect, unless no request is left."""
        if self._issued >= self._limit:
            self.next(connection)
            return
        self._wait(connection, monotonic() + self._retry_pause())

    def _retry_pause(self) -> float:
        return PAUSE

    def _count_connection(self, connection: RequestSlot) -> None:
        """End the warm-up of a connection: count its requests from now on."""
        self._uncounted -= 1
        self._update_unchecked_limit()
        connection.carry(*self._first_request())

    def _retires(self, connection: RequestSlot) -> bool:
        """Return whether a free connection is to be closed: any; of HTTP/2, all streams of the same connections."""
        return self._surplus > 0 and (self._streams == 1 or connection in self._leaving)

    def _retire(self, connection: RequestSlot) -> None:
        self._surplus -= 1
        self._update_unchecked_limit()
        connection.close()
        connection.started = inf
        del self._active[connection]
        self._spare.append(connection)
        if self._streams > 1:
            self._spare.sort(key=self._numbers.__getitem__)

    def _end_connection(self, connection: RequestSlot) -> None:
        """End a connection, as no request is left. The run ends with the last request in flight."""
        if not self.exhausted:
            self.exhausted = True
            self._last_in_flight = {connection for connection in self._active if connection.started < inf}
        connection.close()
        connection.started = inf
        self._last_in_flight.discard(connection)
        if not self._last_in_flight:
            self.over = True

    # --- called by the clock ---

    def _work(self, now: float) -> float:
        if now >= self._next_step:
            self._set_load(now)
        while self._waiting and self._waiting[0][0] <= now:
            self.proceed(heapq.heappop(self._waiting)[2])
        return min(self._waiting[0][0], self._next_step) if self._waiting else self._next_step

    def _started_in_flight(self) -> list[float]:
        return [connection.started for connection in self._active if connection.started < inf]

    def _start_counting(self) -> None:
        # `proceed` switches each of these connections to the new metrics.
        self._uncounted = sum(not connection.counts.live for connection in self._active)
        self._update_unchecked_limit()

    def _expire(self, now: float) -> float:
        """Check all connections for timeouts: at each tick, and when the earliest one is possible. So no timeout has to
        be scheduled per request."""
        timeout = self.assignment.plan.timeout
        earliest = now + timeout
        for connection in list(self._active):
            limit = min(connection.started + timeout, connection.close_deadline)
            if limit <= now:
                connection.expire(now)
            else:
                earliest = min(earliest, limit)
        return max(earliest, now + timeout_precision(len(self._active)))

    def _close_all(self) -> None:
        for connection in self._active:
            self._abandon(connection)
