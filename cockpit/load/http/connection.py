"""A connection of the load: sends one request at a time, on a socket that is kept open or reopened.

A socket has one handler at a time, which is called with the poller's events and the time of the wake-up. That time is
the arrival time of a response, so that latencies exclude the time spent on other responses of the same wake-up.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import monotonic

from cockpit.load.failures import TLS_CUT, Malformed, transfer_failure
from cockpit.load.http.heads import Head
from cockpit.load.http.load_socket import ConnectionOwner, Handler, LoadSocket
from cockpit.load.http.responses import ResponseReader
from cockpit.load.poller import HANGUP, READABLE, TROUBLE, WRITABLE
from cockpit.load.request_metrics import RequestMetrics
from cockpit.model.load.plan import ErrorKind

# Size (bytes) of the first read, enough for a small response; the rest is read into a shared buffer.
FIRST_READ = 16 * 1024
_READ_BUFFER = bytearray(512 * 1024)
# Maximum number of reads before other connections are served.
_MAX_READS = 8
# Time (s) that a server has to close a connection before the client closes it.
LINGER = 0.1


class Connection(LoadSocket):
    """A connection; `counts` are the metrics of its current request.

    `close_deadline` (s of time.monotonic()) is finite while the connection waits for the server to close it first, so
    that TIME_WAIT is on the server's side, as with browsers and ab.
    """

    __slots__ = (
        "_end",
        "_first",
        "_known",
        "_like_last",
        "_on_response",
        "_request",
        "_response",
        "_send_error",
        "_size",
        "_unsent",
        "_whole",
        "close_deadline",
        "counts",
    )

    def __init__(self, load: ConnectionOwner, counts: RequestMetrics, request: bytes) -> None:
        super().__init__(load)
        self.close_deadline = inf
        # Created once: every access to a bound method creates a new object.
        self._on_response: Handler = self.on_response
        self._response = ResponseReader(counts.heads)
        self._first = inf
        self._bind(counts)
        self.carry(counts, request)
        self._reset_response()

    def carry(self, counts: RequestMetrics, request: bytes) -> None:
        """Send this request from now on, counted in `counts`."""
        self._request = request
        self._size = len(request)
        if counts is not self.counts:
            self._bind(counts)

    def _bind(self, counts: RequestMetrics) -> None:
        self.counts = counts
        self._known = counts.heads.known
        self._like_last = counts.heads.like_last
        self._response.take_up(counts.heads)
        self._whole: Callable[[float], None] = counts.whole.append
        self._end: Callable[[float], None] = counts.ends.append

    def _reset_response(self) -> None:
        """Reset to the state before the first byte of a response."""
        if self._first != inf:
            self.counts.body += self._response.size
        self._first = inf
        self._unsent: memoryview | None = None
        self._send_error: ErrorKind | None = None
        self._response.reset()

    # --- sending ---

    def begin(self, now: float) -> None:
        """Start a request on the open socket, or on a new one."""
        self.started = now
        if self._fd < 0:
            self._connect(now)
            return
        self._reused = True
        try:
            sent = self._socket.send(self._request)
        except BlockingIOError:
            sent = 0
        except OSError:
            # Nothing was sent, so that a request of any method may be sent on a new connection.
            self._tally.reconnects += 1
            self._reconnect()
            return
        if sent == self._size:
            self.counts.sent_bytes += sent
        else:
            self._send_rest(sent, WRITABLE, self.started)

    def _connect_failed(self, kind: ErrorKind) -> None:
        self.counts.failed(kind)
        self.started = inf
        self._reset_response()
        self._load.not_connected(self)

    def _ready(self, mask: int, now: float) -> None:
        self._handlers[self._fd] = self._on_response
        try:
            sent = self._socket.send(self._request)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._transfer_failed(error)
            return
        if sent != self._size:
            self._send_rest(sent, mask, now)
            return
        self.counts.sent_bytes += sent
        if mask & (READABLE | HANGUP):
            # Edge-triggered: there is no further wake-up for data that arrived before the request.
            self._on_response(mask, now)

    def _send_rest(self, sent: int, mask: int, now: float) -> None:
        """Send the rest of a request that did not fit into the send buffer; also read an early response."""
        self.counts.sent_bytes += sent
        self._unsent = memoryview(self._request)[sent:]
        self._handlers[self._fd] = self.on_both
        self._load.poller.watch_both(self._fd)
        self.on_both(mask | WRITABLE, now)

    def on_both(self, mask: int, now: float) -> None:
        """Send the rest of the request, and read a response that arrives early."""
        while mask & WRITABLE and self._unsent:
            try:
                sent = self._socket.send(self._unsent)
            except BlockingIOError:
                break
            except OSError as error:
                # A server may refuse a body and close; a response is more specific than the error.
                if not mask & READABLE:
                    self._transfer_failed(error)
                    return
                self._send_error = transfer_failure(error.errno)
                break
            self.counts.sent_bytes += sent
            self._unsent = self._unsent[sent:]
        if not self._unsent:
            self._unsent = None
            self._handlers[self._fd] = self.on_more
            self._load.poller.watch_responses(self._fd)
        if mask & (READABLE | HANGUP | TROUBLE) or self._holds_data():
            self.on_more(mask, now)

    # --- receiving ---

    def on_response(self, mask: int, now: float) -> None:
        """Read the start of a response: usually the complete response, with a head seen before."""
        try:
            data = self._socket.recv(FIRST_READ)
        except BlockingIOError:
            return
        except OSError as error:
            self._transfer_failed(error)
            return
        lines = data[: data.find(b"\r\n\r\n") + 4]
        head = self._known(lines) or self._like_last(lines)
        if head is None or len(data) != head.total:
            self._read_rest(data, mask, now)
            return
        head.hits += 1
        self._whole(now - self.started)
        # A connection that the server closed with its response cannot be reused.
        if head.reuse and not mask & HANGUP:
            self._load.next(self)
        else:
            self._close_after_response(head, mask, now)

    def _read_rest(self, data: bytes, mask: int, now: float) -> None:
        if not data:
            self._closed_early()
            return
        self.counts.received += len(data)
        self._first = now
        self._handlers[self._fd] = self.on_more
        # Edge-triggered: there is no further wake-up if the connection ended together with the data.
        more = len(data) == FIRST_READ or mask & HANGUP or self._holds_data()
        if not self._feed(data, mask, now) and more:
            self.on_more(mask, now)

    def on_more(self, mask: int, now: float) -> None:
        """Read further data of a response, until the socket is empty or the response is complete."""
        for _ in range(_MAX_READS):
            try:
                size = self._socket.recv_into(_READ_BUFFER)
            except BlockingIOError:
                return
            except OSError as error:
                self._transfer_failed(error)
                return
            if not size:
                self._on_peer_close(mask, now)
                return
            self.counts.received += size
            if self._first == inf:
                self._first = now
            if self._feed(memoryview(_READ_BUFFER)[:size], mask, now):
                return
            if size < len(_READ_BUFFER) and not mask & HANGUP and not self._holds_data():
                return
            now = monotonic()
        self._read_on()

    def _feed(self, data: bytes | memoryview, mask: int, now: float) -> bool:
        """Parse a piece of the response; return whether the request is over, successful or not."""
        try:
            if not self._response.feed(data):
                return False
        except Malformed as fault:
            self._fail(fault.kind)
            return True
        self._complete(mask, now)
        return True

    # --- the end of a request ---

    def _complete(self, mask: int, now: float) -> None:
        head = self._response.head
        assert head is not None
        counts = self.counts
        counts.firsts.append(self._first - self.started)
        self._end(now - self.started)
        counts.count_response(head.status, self._response.size, self._response.verdict())
        # The connection cannot be reused after excess bytes, or with a partly sent request.
        unusable = self._response.excess or self._unsent is not None
        self._reset_response()
        if unusable:
            self._tally.reconnects += head.reuse
            self._close_and_continue()
        elif head.reuse and not mask & HANGUP:
            self._handlers[self._fd] = self._on_response
            self._load.next(self)
        else:
            self._close_after_response(head, mask, now)

    def _close_after_response(self, head: Head, mask: int, now: float) -> None:
        """Close a socket that cannot be reused; wait for the server to close first, if it announced that."""
        if head.reuse:
            self._tally.reconnects += 1
        load = self._load
        if head.keeps or mask & HANGUP or load.exhausted:
            if mask & HANGUP:
                load.closing.closed()
            self.close()
            load.next(self)
            return
        if not load.closing.waits():
            self._tally.unclosed += 1
            self.close()
            load.next(self)
            return
        self.started = inf
        self.close_deadline = now + LINGER
        self._handlers[self._fd] = self.on_awaited_close
        load.awaiting_close(self)

    def on_awaited_close(self, mask: int, now: float) -> None:
        """Close the connection once the server has closed it; ignore unexpected data."""
        try:
            if not mask & HANGUP and self._socket.recv(FIRST_READ):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._load.closing.closed()
        self._close_and_continue()

    def _close_and_continue(self) -> None:
        self.close_deadline = inf
        self.close()
        self._load.next(self)

    def _on_peer_close(self, mask: int, now: float) -> None:
        if self._response.closed():
            self._complete(mask | HANGUP, now)
        else:
            self._closed_early()

    def _closed_early(self) -> None:
        self._retry_or_fail(self._send_error or ("closed_before_response" if self._first == inf else "closed_early"))

    def _transfer_failed(self, error: OSError) -> None:
        if error.errno != TLS_CUT:
            self._retry_or_fail(transfer_failure(error.errno))
        elif self._response.closed():
            self._fail("tls_truncated")
        else:
            self._closed_early()

    def _retry_or_fail(self, kind: ErrorKind) -> None:
        """Handle a connection that ended before the response was complete: fail, or retry on a new connection.

        Retried are idempotent requests on a reused connection before the first byte of the response (RFC 9110 section
        9.2.2): the server may have processed them already.
        """
        if not self._reused or self._first != inf:
            self._fail(kind)
            return
        self._tally.reconnects += 1
        if self.counts.idempotent:
            self.counts.retries += 1
            self._reconnect()
        else:
            self._fail("closed_before_response")

    def _reconnect(self) -> None:
        self.close()
        self._connect(monotonic())

    def _fail(self, kind: ErrorKind) -> None:
        self.counts.failed(kind)
        self.started = inf
        self.close()
        self._load.next(self)

    def expire(self, now: float) -> None:
        """Handle the timeout of the request, or of the wait for the server to close."""
        if self.started == inf:
            self._load.closing.expired()
            self._tally.unclosed += 1
            self._close_and_continue()
            return
        kind: ErrorKind = "timeout" if self._connected else "connect_timeout"
        # The latency of a request that timed out is the time until it was given up.
        self._end(now - self.started)
        if self._first != inf:
            self.counts.firsts.append(self._first - self.started)
        self._fail(kind)

    def give_up(self) -> bool:
        """Abort at the end of the run; return whether a request was in flight."""
        in_flight = self.started != inf
        self.started = self.close_deadline = inf
        self.close()
        return in_flight

    def close(self) -> None:
        if self._fd < 0:
            return
        LoadSocket.close(self)
        if self._first != inf or self._unsent is not None:
            self._reset_response()
