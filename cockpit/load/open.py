"""Open load: requests begin when they are due, whatever the server does.

An arrival that finds `max_in_flight` requests under way is counted as held back and never sent: sent later, it would
be another load than the one that was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import monotonic

from cockpit.load.connection import Connection
from cockpit.load.engine import Engine, grain
from cockpit.load.lane import Lane
from cockpit.load.poller import Poll, Poller
from cockpit.load.protocol import Assignment
from cockpit.load.schedule import Arrivals, Leg

# Arrivals sent in one go before replies get their turn.
_BATCH = 64
# Two instants closer than this are the same (s): sums of floating point numbers differ by less.
_SAME = 1e-7


class Timed(Connection):
    """A connection whose requests were due at an instant of their own, `intended`."""

    __slots__ = ("_on_idle", "_owner", "intended")

    def __init__(self, owner: Open, lane: Lane, request: bytes) -> None:
        super().__init__(owner, lane, request)
        self._owner = owner
        self._on_idle = self.on_idle
        self.intended = 0.0

    def _bind(self, lane: Lane) -> None:
        super()._bind(lane)
        self._whole = self._end_whole
        self._end = self._end_other

    def _end_whole(self, service: float) -> None:
        lane = self.lane
        lane.whole.append(service)
        lane.responses.append(service + self.started - self.intended)

    def _end_other(self, service: float) -> None:
        lane = self.lane
        lane.ends.append(service)
        lane.responses.append(service + self.started - self.intended)

    def rest(self) -> bool:
        """Its request is over: wait for the next on the open socket. False when there is no socket."""
        self.started = self.lingers_until = inf
        if self._fd < 0:
            return False
        self._handlers[self._fd] = self._on_idle
        return True

    def rouse(self) -> None:
        """It is going to begin a request."""
        if self._fd >= 0:
            self._handlers[self._fd] = self._on_reply

    def on_idle(self, mask: int, now: float) -> None:
        """The server closes a connection that nothing is under way on, or says what nobody asked for."""
        try:
            self._socket.recv(1)
        except BlockingIOError:
            return
        except OSError:
            pass
        self.close()
        self._owner.lost(self)


class Open(Engine):
    """Connections are `busy` with a request, `idle` with an open socket, lingering, or spare."""

    def __init__(
        self,
        assignment: Assignment,
        poller: Poller,
        on_tick: Callable[[], None],
        on_cut: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(assignment, poller, on_tick, on_cut)
        self._arrivals = Arrivals(assignment.plan, assignment.worker, assignment.workers)
        self._most = assignment.in_flight
        # In the order in which they began, which is that in which they are given up.
        self._busy: dict[Timed, None] = {}
        self._lingering: dict[Timed, None] = {}
        self._idle: dict[Timed, None] = {}
        self._spare: list[Timed] = []

    def adjust(self, concurrency: int | None, rate: float | None) -> None:
        if rate is not None:
            self._arrivals.set_rate(monotonic(), rate)
            self._due = 0.0

    def _set_load(self, leg: Leg) -> None:
        self._arrivals.set_rate(leg.start, leg.rate)

    def _poll(self) -> Poll:
        return self.poller.poll_exactly

    # --- sending ---

    def _work(self, now: float) -> float:
        until = min(self._ends, self._next_leg) - _SAME
        arrivals = self._arrivals
        for _ in range(_BATCH):
            due = arrivals.due
            if due > now or due >= until or self.exhausted:
                break
            arrivals.advance()
            self._arrive(due)
        return inf if self.exhausted or arrivals.due >= until else arrivals.due

    def _catch_up(self, until: float) -> None:
        arrivals = self._arrivals
        # A run that was stopped owes nothing.
        while arrivals.due < until - _SAME and not self.exhausted:
            due = arrivals.due
            arrivals.advance()
            self._arrive(due)

    def _arrive(self, due: float) -> None:
        """Send what is due, or hold it back."""
        tally = self.tally
        if len(self._busy) >= self._most:
            tally.held_back += 1
            return
        if self._idle:
            connection = self._idle.popitem()[0]
            connection.rouse()
        else:
            connection = self._spare.pop() if self._spare else Timed(self, tally.lanes[0], b"")
        only = self.deck.only
        if only is not None:
            connection.carry(tally.lanes[0], only.request)
        else:
            self._deal(connection)
        self._busy[connection] = None
        self._issued += 1
        self.exhausted = self._issued >= self._limit
        connection.intended = due
        tally.lags.append(monotonic() - due)
        connection.begin()

    # --- what connections call ---

    def next(self, connection: Connection) -> None:
        assert isinstance(connection, Timed)
        self._busy.pop(connection, None)
        self._lingering.pop(connection, None)
        if connection.rest():
            self._idle[connection] = None
        else:
            self._spare.append(connection)
        self._end_if_done()

    def not_connected(self, connection: Connection) -> None:
        self.next(connection)

    def lingers(self, connection: Connection) -> None:
        assert isinstance(connection, Timed)
        self._busy.pop(connection, None)
        self._lingering[connection] = None
        self._end_if_done()

    def lost(self, connection: Timed) -> None:
        """An idle connection was closed."""
        self._idle.pop(connection, None)
        self._spare.append(connection)

    def _end_if_done(self) -> None:
        if self.exhausted and not self._busy:
            self._over = True

    # --- what is done by the clock ---

    def _in_flight(self) -> int:
        return len(self._busy)

    def _count_anew(self) -> None:
        self.exhausted = self._issued >= self._limit

    def _expire(self, now: float) -> float:
        timeout = self.assignment.plan.timeout
        while self._busy and (first := next(iter(self._busy))).started + timeout <= now:
            first.expire(now)
        while self._lingering and (first := next(iter(self._lingering))).lingers_until <= now:
            first.expire(now)
        earliest = now + timeout
        if self._busy:
            earliest = next(iter(self._busy)).started + timeout
        return max(earliest, now + grain(0))

    def _give_up(self) -> None:
        for connection in [*self._busy, *self._lingering, *self._idle]:
            self._abandon(connection)
