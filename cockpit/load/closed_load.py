"""Closed load: every place begins its next request as soon as the last is over."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from math import inf
from time import monotonic

from cockpit.load.connection import Connection
from cockpit.load.engine import Engine, timeout_precision
from cockpit.load.idle_connection import RequestLimit
from cockpit.load.load_socket import ConnectionOwner
from cockpit.load.poller import Poller
from cockpit.load.protocol import Assignment
from cockpit.load.request_metrics import RequestMetrics
from cockpit.load.schedule import Phase
from cockpit.load.virtual_user import UserConnections
from cockpit.model.load import LoadPlan

# Connections are opened this far apart (s), so that a server's backlog holds them.
_STAGGER = 0.000125
# Pause (s) after a failed connect, so that an absent server is not flooded, and the number of errors does not depend on
# the speed of this loop.
PAUSE = 0.02
# Less than any count of requests begun.
_NONE = -1


def connections_for(plan: LoadPlan) -> Callable[[ConnectionOwner, RequestMetrics, bytes], Connection]:
    """Return a function that makes the connections of a plan, no more able than it needs."""
    if plan.cookies or plan.chained:
        return UserConnections(plan)
    return RequestLimit if plan.requests_per_connection or plan.think_time else Connection


class ClosedLoad(Engine):
    """`places` are connections in use; the spare ones wait until there are to be more of them again."""

    def __init__(
        self,
        assignment: Assignment,
        poller: Poller,
        on_tick: Callable[[], None],
        on_cut: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(assignment, poller, on_tick, on_cut)
        self._places: dict[Connection, None] = {}
        self._spare: list[Connection] = []
        self._make = connections_for(assignment.plan)
        self._several = self.order.only is None
        # Requests that may begin without further checks.
        self._freely = self._limit
        # Connections that close when their request is over, and those still busy with an uncounted one.
        self._surplus = 0
        self._stale = 0
        self._last: set[Connection] = set()
        self._waiting: list[tuple[float, int, Connection]] = []

    def adjust(self, concurrency: int | None, rate: float | None) -> None:
        if concurrency is not None:
            self._set_places(concurrency, monotonic())
            self._due = 0.0

    def redeal(self, place: int, workers: int, more: int) -> None:
        # One that has begun its last requests takes no more of them.
        super().redeal(place, workers, 0 if self.exhausted else more)

    def _set_load(self, phase: Phase) -> None:
        self._set_places(self.own(phase.concurrency), phase.start)

    def _set_places(self, wanted: int, now: float) -> None:
        more = min(wanted, self._limit) - (len(self._places) - self._surplus)
        kept = min(more, self._surplus)
        self._surplus -= kept
        for number in range(more - kept):
            place = self._spare.pop() if self._spare else self._make(self, *self._first_request())
            place.carry(*self._first_request())
            self._places[place] = None
            self._wait(place, now + self._first_pause(number, more - kept))
        self._bound()

    def _first_pause(self, number: int, of: int) -> float:
        """Seconds until connection `number` `of` those that are added at a time begins."""
        return number * _STAGGER

    def _wait(self, connection: Connection, due: float) -> None:
        """Let a connection begin its next request at `due`."""
        heapq.heappush(self._waiting, (due, id(connection), connection))
        self._due = min(self._due, due)

    def _limit_to(self, limit: int) -> None:
        # Places that find no request left end with the one that they have in flight.
        self._limit = limit
        self._bound()

    def _first_request(self) -> tuple[RequestMetrics, bytes]:
        """The only request of a plan and its metrics; one of several is chosen each time."""
        only = self.order.only
        return self.tally.per_request[0], only.request if only else b""

    def _bound(self) -> None:
        """Update the number of requests that begin without further checks."""
        self._freely = _NONE if self._surplus or self._stale else self._limit

    # --- called by connections ---

    def proceed(self, connection: Connection) -> None:
        """Begin the connection's next request, or end it."""
        if self._issued < self._freely:
            self._issued += 1
            if self._several:
                self._carry_next(connection, self.tally.per_request)
            connection.begin(monotonic())
        elif not connection.counts.live:
            self._recall(connection)
            self.proceed(connection)
        elif self._issued >= self._limit:
            self._end_place(connection)
        elif self._surplus:
            self._retire(connection)
        else:
            # Others are held up, this one is not.
            self._issued += 1
            if self._several:
                self._carry_next(connection, self.tally.per_request)
            connection.begin(monotonic())

    next = proceed

    def not_connected(self, connection: Connection) -> None:
        """Pause before the next connect, unless there is nothing more to send."""
        if self._issued >= self._limit:
            self.next(connection)
            return
        self._wait(connection, monotonic() + self._retry_pause())

    def _retry_pause(self) -> float:
        return PAUSE

    def _recall(self, connection: Connection) -> None:
        """Stop the warm-up: count from now on."""
        self._stale -= 1
        self._bound()
        connection.carry(*self._first_request())

    def _retire(self, connection: Connection) -> None:
        self._surplus -= 1
        self._bound()
        connection.close()
        connection.started = inf
        del self._places[connection]
        self._spare.append(connection)

    def _end_place(self, connection: Connection) -> None:
        """Nothing more to send; the run ends with the last request in flight."""
        if not self.exhausted:
            self.exhausted = True
            self._last = {place for place in self._places if place.started < inf}
        connection.close()
        connection.started = inf
        self._last.discard(connection)
        if not self._last:
            self._over = True

    # --- called by the clock ---

    def _work(self, now: float) -> float:
        while self._waiting and self._waiting[0][0] <= now:
            self.proceed(heapq.heappop(self._waiting)[2])
        return self._waiting[0][0] if self._waiting else inf

    def _started_in_flight(self) -> list[float]:
        return [place.started for place in self._places if place.started < inf]

    def _count_anew(self) -> None:
        # Each asks for its next request here, and is closed then.
        self._stale = sum(not place.counts.live for place in self._places)
        self._bound()

    def _expire(self, now: float) -> float:
        """Check all connections for timeouts at the earliest possible one, and for lingering ones at every tick:
        nothing is recorded per request."""
        timeout = self.assignment.plan.timeout
        earliest = now + timeout
        for place in list(self._places):
            limit = min(place.started + timeout, place.lingers_until)
            if limit <= now:
                place.expire(now)
            else:
                earliest = min(earliest, limit)
        return max(earliest, now + timeout_precision(len(self._places)))

    def _give_up(self) -> None:
        for place in self._places:
            self._abandon(place)
