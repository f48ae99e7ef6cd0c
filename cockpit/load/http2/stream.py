"""Streams of HTTP/2 connections: what the engines see as connections. A stream sends one request at a time."""

from __future__ import annotations

from math import inf
from time import time
from typing import TYPE_CHECKING, cast

from cockpit.load.http.load_socket import ConnectionOwner
from cockpit.load.http2.connection import Http2Connection
from cockpit.load.http2.requests import convert_request, split_frames
from cockpit.load.request_metrics import RequestMetrics
from cockpit.load.slots import timed
from cockpit.model.load.plan import ErrorKind

if TYPE_CHECKING:
    from cockpit.load.http2.heads import Http2Head, Http2Heads
    from cockpit.load.virtual_user import VirtualUser

# Maximum number of times that a request is sent again.
_RETRIES = 3


class StreamGroup:
    """The streams that share a connection, `connection`; None until the next request opens one."""

    def __init__(self, load: ConnectionOwner) -> None:
        self._load = load
        self.connection: Http2Connection | None = None

    def submit(self, stream: Http2Stream) -> None:
        """Send a request on the open connection, or on a new one."""
        connection = self.connection
        is_new = connection is None
        if connection is None:
            connection = self.connection = Http2Connection(self._load, self)
        stream.connection, stream.reused = connection, connection.established
        connection.submit(stream)
        if is_new:
            connection.open()

    def forget(self, connection: Http2Connection) -> None:
        """Send further requests on another connection."""
        if self.connection is connection:
            self.connection = None


class Http2Stream:
    """A stream, with the interface of a Connection: `counts` are the metrics of its current request.

    `started`: start of the request; `sent`: when it was sent, which is later if the server allows no more streams;
    both infinite without a request, and in s of time.monotonic(). `unsent`: rest of the body that waits for a window of
    `window` bytes; None: all is sent. `first`: arrival of the first byte of the response. `unprocessed`: the server
    cannot have processed the request. `connection`: of the current or last request; `reused`: it was open before.
    """

    def __init__(self, load: ConnectionOwner, counts: RequestMetrics, request: bytes, group: StreamGroup) -> None:
        self._load = load
        self._group = group
        self.connection: Http2Connection | None = None
        self.reused = False
        self.started = self.sent = self.close_deadline = inf
        self.number = self.window = 0
        self._request = b""
        self._bind(counts)
        self._reset_response()
        self.carry(counts, request)

    def carry(self, counts: RequestMetrics, request: bytes) -> None:
        """Send this request from now on, counted in `counts`."""
        if request is not self._request:
            self._request = request
            self._frame(request)
        if counts is not self.counts:
            self._bind(counts)

    def _frame(self, request: bytes) -> None:
        self.head_start, self.head_rest, self.body = split_frames(request)

    def _bind(self, counts: RequestMetrics) -> None:
        self.counts = counts
        self.heads = cast("Http2Heads", counts.heads)
        self.known = self.heads.known
        self.whole = counts.whole.append
        self._end = counts.ends.append
        self._body = self.heads.expectation.body()

    def _reset_response(self) -> None:
        """Reset to the state before the first byte of a response."""
        self.first = inf
        self.head: Http2Head | None = None
        self.size = self._pieces = 0
        self.unsent: memoryview | None = None
        self.unprocessed = False
        self._body = self.heads.expectation.body()

    @property
    def _attached(self) -> Http2Connection | None:
        """The connection of the current or last request, if it is still open."""
        connection = self.connection
        return connection if connection is not None and connection.is_open else None

    # --- called by the engine ---

    def begin(self, now: float) -> None:
        """Start a request."""
        self.started = now
        self.sent = inf
        self._tries = 0
        self._group.submit(self)

    def expire(self, now: float) -> None:
        """Fail the request after its timeout."""
        connection = self._attached
        kind: ErrorKind = "timeout"
        if connection is None or not connection.connected:
            kind = "connect_timeout"
        elif self.unsent is not None:
            kind = "flow_stalled"
        if self.sent == inf:
            self.sent = self.started
        self._end(now - self.sent)
        if self.first != inf:
            self.counts.firsts.append(self.first - self.sent)
        if connection is not None:
            connection.cancel(self)
        self.fail(kind)

    def give_up(self) -> bool:
        """Abort at the end of the run; return whether a request was in flight."""
        in_flight = self.started != inf
        self.started = inf
        if self.first != inf:
            self.counts.body += self.size
        connection = self._attached
        if connection is not None:
            connection.abort()
        return in_flight

    def close(self) -> None:
        """Close the connection as soon as it has no request in flight; the next request opens a new one."""
        connection = self._attached
        if connection is not None:
            connection.drain()

    def enter_idle(self) -> bool:
        """Wait for the next request; return whether the connection is open."""
        self.started = inf
        return self._attached is not None

    def leave_idle(self) -> None:
        """End the wait."""

    # --- called by the connection ---

    def arrived(self, size: int, now: float) -> None:
        """Count the bytes of a head that did not arrive together with its body."""
        self.counts.received += size
        self._pieces += 1
        if self.first == inf:
            self.first = now
            self._served_before = self.connection.served if self.connection is not None else 0

    def add(self, piece: bytes) -> None:
        """Add the next piece of the body."""
        self.size += len(piece)
        self._pieces += 1
        if self._body is not None:
            self._body.add(piece)

    def finish(self, now: float) -> None:
        """Count the complete response."""
        counts, head = self.counts, self.head
        assert head is not None and self.connection is not None
        counts.firsts.append(self.first - self.sent)
        self._end(now - self.sent)
        if now > self.first and self.connection.served - self._served_before >= self._pieces:
            counts.interleaved.append(now - self.first)
        counts.count_response(head.status, self.size, self._verdict(head))
        counts.body += self.size
        self._reset_response()
        self._load.next(self)

    def _verdict(self, head: Http2Head) -> str:
        """Return the first kind that differs in the complete response; "" if none."""
        return self.heads.expectation.of_response(head.status, self.size, self._body)

    def fail(self, kind: ErrorKind) -> None:
        self._count_failure(kind)
        self._load.next(self)

    def not_connected(self, kind: ErrorKind) -> None:
        self._count_failure(kind)
        self._load.not_connected(self)

    def _count_failure(self, kind: ErrorKind) -> None:
        self.counts.failed(kind)
        self.started = inf
        if self.first != inf:
            self.counts.body += self.size
        self._reset_response()

    def lost(self, kind: ErrorKind | None) -> None:
        """Handle the end of the connection. As with HTTP/1, idempotent requests on a reused connection are sent again
        if no byte of the response has arrived."""
        if self.first != inf:
            self.fail(kind or "closed_early")
        elif self.unprocessed or (self.reused and self.counts.idempotent):
            self._retry(kind or "closed_before_response")
        else:
            self.fail("closed_before_response" if self.reused or kind is None else kind)

    def refused(self) -> None:
        """Send an idempotent request again: the server states that it did not process it (RFC 9113 section 8.7)."""
        if self.counts.idempotent:
            self._retry("refused_stream")
        else:
            self.fail("refused_stream")

    def _retry(self, kind: ErrorKind) -> None:
        if self._tries >= _RETRIES:
            self.fail(kind)
            return
        self._tries += 1
        self.counts.retries += 1
        self._reset_response()
        self._group.submit(self)


class TimedStream(Http2Stream):
    """A stream for scheduled requests: a TimedSlot."""

    intended: float

    def _bind(self, counts: RequestMetrics) -> None:
        super()._bind(counts)
        self.whole, self._end = timed(self, self.whole), timed(self, self._end)


class UserStream(Http2Stream):
    """A stream of a virtual user, whose requests are those of HTTP/1 with the user's cookies."""

    def __init__(
        self,
        load: ConnectionOwner,
        counts: RequestMetrics,
        request: bytes,
        group: StreamGroup,
        user: VirtualUser,
        secure: bool,
    ) -> None:
        self.user = user
        self._secure = secure
        super().__init__(load, counts, request, group)

    def _frame(self, request: bytes) -> None:
        """Requests are framed when they begin, with the cookies of that time."""

    def begin(self, now: float) -> None:
        request, self._target = self.user.with_cookies(self._request, time())
        self.head_start, self.head_rest, self.body = split_frames(convert_request(request, self._secure))
        super().begin(now)

    def _verdict(self, head: Http2Head) -> str:
        start = bytes(self._body.start) if self._body is not None else b""
        verdict, expectation = super()._verdict(head), self.heads.expectation
        return self.user.judge(verdict, head.status, expectation, lines=head.lines, target=self._target, start=start)
