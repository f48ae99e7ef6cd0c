"""Open load: requests are sent at their scheduled times, independent of the server.

If `max_in_flight` requests are in flight, an arrival is queued (FIFO), and sent when a request ends. Its response
time is measured from its due time, its service time from the send, and its lag from the time at which it could be sent,
because waiting for the server is not a delay of this process. If the queue is full, the arrival is dropped: counted,
but never sent. A queued arrival counts as queued in the interval of its due time, and as sent in the interval of its
send. Requests that were due in the warm-up but are sent after it are not counted, like the requests in flight at its
end.
"""

from __future__ import annotations

from math import inf
from time import monotonic

from cockpit.load.engine import Engine, Hooks, timeout_precision
from cockpit.load.http.protocol import Assignment
from cockpit.load.log_share import LoggedArrivals, LoggedOrder
from cockpit.load.poller import Poll, Poller
from cockpit.load.ramp import Ramp
from cockpit.load.schedule import ArrivalQueue, Arrivals
from cockpit.load.slots import TimedSlot, open_slots

# Arrivals sent in a row before responses are read.
_MAX_BATCH = 64
# Maximum length of the queue (8 bytes per arrival).
BACKLOG_LIMIT = 1_000_000
# Times closer than this (s) are equal; rounding errors of the schedule are smaller.
_EPSILON = 1e-7


class OpenLoad(Engine):
    """Engine for open load. Connections are busy (in flight), idle (open socket), lingering or spare (closed)."""

    def __init__(self, assignment: Assignment, poller: Poller, hooks: Hooks) -> None:
        super().__init__(assignment, poller, hooks)
        self._arrivals: Arrivals | LoggedArrivals
        if assignment.log is not None:
            self._arrivals = LoggedArrivals(assignment.log)
        else:
            self._arrivals = Arrivals(assignment.plan, assignment.worker, assignment.workers)
        self._max_in_flight = assignment.in_flight
        self._make = open_slots(assignment.plan)
        # Arrivals so far, and dropped ones; the queue, whose first `_uncounted` arrivals are not counted; and the time
        # since which a queued arrival could be sent.
        self._arrived = self._dropped = self._uncounted = 0
        self._waiting = ArrivalQueue()
        self._sendable_since = inf
        # In order of their start, so that the first request or close is the first to time out.
        self._busy: dict[TimedSlot, None] = {}
        self._awaiting_close: dict[TimedSlot, None] = {}
        self._idle: dict[TimedSlot, None] = {}
        self._spare: list[TimedSlot] = []
        # Connections to close once their request is over.
        self._worn: set[TimedSlot] = set()

    def adjust(self, load: Ramp) -> None:
        # Arrivals that were due at the old rate keep their due times.
        self._catch_up(min(monotonic(), self._end_time, self._next_phase))
        super().adjust(load)

    def renew(self) -> None:
        self._worn = set(self._busy)
        for connection in self._idle:
            connection.close()
            self._spare.append(connection)
        self._idle.clear()

    def reassign(self, place: int, workers: int, more: int) -> None:
        if isinstance(self._arrivals, Arrivals):
            self._arrivals.share(workers)
        super().reassign(place, workers, more)
        self._max_in_flight = self.own(self.assignment.plan.max_in_flight)

    def _set_load(self, at: float) -> None:
        self._arrivals.follow(at, self._load)

    def _limit_to(self, limit: int) -> None:
        self._limit = limit
        self.exhausted = self._issued + self._dropped >= limit
        self._admit_or_end()

    def waits(self) -> Poll:
        return self.poller.poll_exactly

    # --- sending ---

    def _work(self, now: float) -> float:
        if self._waiting:
            self._admit(now)
        until = min(self._end_time, self._next_phase) - _EPSILON
        arrivals = self._arrivals
        for _ in range(_MAX_BATCH):
            due = arrivals.due
            if due > now or due >= until or self._arrived >= self._limit:
                break
            if len(self._waiting) >= BACKLOG_LIMIT:
                self._drop(min(now, until))
                break
            self._arrive(due)
        if self._sendable_since < inf:
            return now
        return inf if self._arrived >= self._limit or arrivals.due >= until else arrivals.due

    def _catch_up(self, until: float) -> None:
        arrivals = self._arrivals
        # After a stop, `until` is 0: nothing is sent.
        while arrivals.due < until - _EPSILON and self._arrived < self._limit:
            if len(self._waiting) >= BACKLOG_LIMIT:
                self._drop(until - _EPSILON)
                break
            self._arrive(arrivals.due)

    def _drop(self, until: float) -> None:
        """Drop and count the arrivals due before `until`, because the queue is full."""
        skipped = self._arrivals.skip(until)
        if isinstance(self._arrivals, LoggedArrivals) and isinstance(self.order, LoggedOrder) and skipped:
            self.order.drop(self._arrivals.place - skipped, skipped)
        dropped = min(skipped, self._limit - self._arrived)
        self._arrived += dropped
        self._dropped += dropped
        self.tally.dropped += dropped

    def _arrive(self, due: float) -> None:
        self._arrivals.advance()
        self._arrived += 1
        if self._waiting or len(self._busy) >= self._max_in_flight:
            self._waiting.put(due)
            self.tally.queued += 1
        else:
            self._send(due, due)

    def _admit(self, now: float) -> None:
        waiting = self._waiting
        since = min(self._sendable_since, now)
        for _ in range(_MAX_BATCH):
            if not waiting or len(self._busy) >= self._max_in_flight:
                break
            due = waiting.pop()
            self._send(due, max(due, since))
        self._sendable_since = since if waiting and len(self._busy) < self._max_in_flight else inf

    def _send(self, due: float, possible: float) -> None:
        connection = self._free_connection()
        tally = self.tally
        per_request = tally.per_request
        if self._uncounted:
            self._uncounted -= 1
            per_request = tally.former
        else:
            self._issued += 1
            self.exhausted = self._issued + self._dropped >= self._limit
        only = self.order.only
        if only is not None:
            connection.carry(per_request[0], only.request)
        else:
            self._carry_next(connection, per_request)
        self._busy[connection] = None
        connection.intended = due
        now = monotonic()
        tally.lags.append(now - possible)
        connection.begin(now)

    def _free_connection(self) -> TimedSlot:
        if self._idle:
            connection = self._idle.popitem()[0]
            connection.leave_idle()
            return connection
        return self._spare.pop() if self._spare else self._make(self, self.tally.per_request[0], b"")

    # --- called by connections ---

    def next(self, connection: TimedSlot) -> None:
        self._busy.pop(connection, None)
        self._awaiting_close.pop(connection, None)
        if connection in self._worn:
            self._worn.discard(connection)
            connection.close()
        if connection.enter_idle():
            self._idle[connection] = None
        else:
            self._spare.append(connection)
        self._admit_or_end()

    def not_connected(self, connection: TimedSlot) -> None:
        self.next(connection)

    def awaiting_close(self, connection: TimedSlot) -> None:
        self._busy.pop(connection, None)
        self._awaiting_close[connection] = None
        self._admit_or_end()

    def lost(self, connection: TimedSlot) -> None:
        self._idle.pop(connection, None)
        self._spare.append(connection)

    def _admit_or_end(self) -> None:
        """A request has ended: admit the next, or end the run."""
        if self._waiting:
            # Sent after the current events: sent from here, a request that fails immediately would recurse.
            self.due = 0.0
        elif self.exhausted and not self._busy:
            self.over = True

    # --- called by the clock ---

    def _started_in_flight(self) -> list[float]:
        return [connection.started for connection in self._busy if connection.started < inf]

    def _end_warmup(self) -> None:
        super()._end_warmup()
        self.tally.unsent += len(self._waiting)

    def _start_counting(self) -> None:
        self._uncounted = len(self._waiting)
        self._arrived = self._issued
        self._dropped = 0
        self.exhausted = self._issued >= self._limit

    def _expire(self, now: float) -> float:
        timeout = self.assignment.plan.timeout
        while self._busy and (first := next(iter(self._busy))).started + timeout <= now:
            first.expire(now)
        while self._awaiting_close and (first := next(iter(self._awaiting_close))).close_deadline <= now:
            first.expire(now)
        if self._waiting and len(self._busy) < self._max_in_flight:
            self._sendable_since = min(self._sendable_since, now)
            return now
        earliest = now + timeout
        if self._busy:
            earliest = next(iter(self._busy)).started + timeout
        return max(earliest, now + timeout_precision(0))

    def _close_all(self) -> None:
        self.tally.unsent += len(self._waiting) - self._uncounted
        for connection in [*self._busy, *self._awaiting_close, *self._idle]:
            self._abandon(connection)
