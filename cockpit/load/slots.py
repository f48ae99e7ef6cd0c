"""What carries the requests of an engine, one at a time: connections of HTTP/1, or streams of HTTP/2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from cockpit.load.http.connection import Connection
from cockpit.load.http.idle_connection import IdleConnection, RequestLimit
from cockpit.load.http.load_socket import ConnectionOwner
from cockpit.load.http.request import target_of_plan
from cockpit.load.request_metrics import RequestMetrics
from cockpit.load.virtual_user import UserConnections, Users
from cockpit.model.load.plan import LoadPlan


class RequestSlot(Protocol):
    """The interface of connections and streams: see `Connection`, and `IdleConnection` for a slot between requests."""

    counts: RequestMetrics
    started: float
    close_deadline: float

    def carry(self, counts: RequestMetrics, request: bytes) -> None: ...
    def begin(self, now: float) -> None: ...
    def expire(self, now: float) -> None: ...
    def give_up(self) -> bool: ...
    def close(self) -> None: ...


class IdleSlot(RequestSlot, Protocol):
    """A slot that idles between two requests."""

    def enter_idle(self) -> bool: ...
    def leave_idle(self) -> None: ...


class TimedSlot(IdleSlot, Protocol):
    """A slot for scheduled requests; `intended` is the due time of its request, `sent` the time when it was sent (s of
    time.monotonic())."""

    intended: float

    @property
    def sent(self) -> float: ...


def timed(slot: TimedSlot, add_service: Callable[[float], None]) -> Callable[[float], None]:
    """Return a function that counts the service time (s) of a response, and its response time since the due time."""
    add_response = slot.counts.responses.append

    def end(service: float) -> None:
        add_service(service)
        add_response(service + slot.sent - slot.intended)

    return end


class TimedConnection(IdleConnection):
    """A connection for scheduled requests: a TimedSlot."""

    __slots__ = ("intended",)
    intended: float

    @property
    def sent(self) -> float:
        return self.started

    def _bind(self, counts: RequestMetrics) -> None:
        super()._bind(counts)
        self._whole, self._end = timed(self, self._whole), timed(self, self._end)


class LimitedTimedConnection(RequestLimit, TimedConnection):
    """A timed connection that is closed after a maximum number of requests."""

    __slots__ = ()


SlotMaker = Callable[[ConnectionOwner, RequestMetrics, bytes], Any]


def closed_slots(plan: LoadPlan) -> SlotMaker:
    """Return the constructor of the slots of closed load: the fastest class with the features that the plan needs."""
    if plan.http2:
        return _Streams(plan)
    if plan.has_users:
        return UserConnections(plan)
    return RequestLimit if plan.requests_per_connection or plan.think_time else Connection


def open_slots(plan: LoadPlan) -> SlotMaker:
    """Return the constructor of the slots of open load."""
    if plan.http2:
        return _Streams(plan)
    return LimitedTimedConnection if plan.requests_per_connection else TimedConnection


class _Streams:
    """Creates streams, `plan.streams` per connection."""

    def __init__(self, plan: LoadPlan) -> None:
        self._plan = plan
        self._users = Users(plan) if plan.has_users else None
        self._secure = target_of_plan(plan).secure
        self._created = 0

    def __call__(self, load: ConnectionOwner, counts: RequestMetrics, request: bytes) -> Any:
        # Imported here: most loads are HTTP/1.
        from cockpit.load.http2.stream import Http2Stream, StreamGroup, TimedStream, UserStream

        if self._created % self._plan.streams == 0:
            self._group = StreamGroup(load)
        self._created += 1
        if self._users is not None:
            return UserStream(load, counts, request, self._group, self._users.next_user(), self._secure)
        return (TimedStream if self._plan.open else Http2Stream)(load, counts, request, self._group)
