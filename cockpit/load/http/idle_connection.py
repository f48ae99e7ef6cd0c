"""Connections that idle between requests, and connections that close after a number of requests."""

from __future__ import annotations

from math import inf

from cockpit.load.http.connection import Connection
from cockpit.load.http.load_socket import ConnectionOwner
from cockpit.load.request_metrics import RequestMetrics

# The end of the request line; paths contain no spaces.
LINE_END = b" HTTP/1.1\r\n"
_CLOSING = LINE_END + b"Connection: close\r\n"


class IdleConnection(Connection):
    """A connection that watches its socket while it waits for the next request."""

    # The slots of RequestLimit are here, so that it can be combined with other subclasses.
    __slots__ = ("_on_idle", "_planned_request", "_sent_on_socket")
    _sent_on_socket: int
    _planned_request: bytes

    def __init__(self, load: ConnectionOwner, counts: RequestMetrics, request: bytes) -> None:
        super().__init__(load, counts, request)
        self._on_idle = self.on_idle

    def enter_idle(self) -> bool:
        """Wait for the next request on the open socket. Returns False if the socket is closed."""
        self.started = self.close_deadline = inf
        if self._fd < 0:
            return False
        self._handlers[self._fd] = self._on_idle
        return True

    def leave_idle(self) -> None:
        """End the wait: the next data is a response."""
        if self._fd >= 0:
            self._handlers[self._fd] = self._on_response

    def on_idle(self, mask: int, now: float) -> None:
        """Close the connection: the server closed it, or sent unexpected data."""
        try:
            self._socket.recv(1)
        except BlockingIOError:
            return
        except OSError:
            pass
        self._tally.reconnects += 1
        self.close()
        self._load.lost(self)


class RequestLimit(IdleConnection):
    """Closes the socket after `requests_per_connection` requests of the plan.

    The last request has `Connection: close`, so that the server closes first, as without keep-alive. If the server does
    not close the socket, the client does.
    """

    __slots__ = ()

    def carry(self, counts: RequestMetrics, request: bytes) -> None:
        super().carry(counts, request)
        self._planned_request = request

    def begin(self, now: float) -> None:
        if self._limit_reached():
            self.close()
        self.leave_idle()
        self._sent_on_socket = 1 if self._fd < 0 else self._sent_on_socket + 1
        self._request = self._request_bytes()
        self._size = len(self._request)
        super().begin(now)

    def _request_bytes(self) -> bytes:
        return self._planned_request.replace(LINE_END, _CLOSING, 1) if self._is_last() else self._planned_request

    def enter_idle(self) -> bool:
        if self._limit_reached():
            self.close()
        return super().enter_idle()

    def _is_last(self) -> bool:
        return self._sent_on_socket >= self._load.requests_per_connection

    def _limit_reached(self) -> bool:
        return self._fd >= 0 and self._is_last()

    def _reconnect(self) -> None:
        self._sent_on_socket = 1
        super()._reconnect()
