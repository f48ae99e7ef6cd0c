"""Connections that wait between two requests, and those that close after a number of them."""

from __future__ import annotations

from math import inf

from cockpit.load.connection import Connection
from cockpit.load.load_socket import ConnectionOwner
from cockpit.load.request_metrics import RequestMetrics

# The end of a request's first line, which no path holds.
LINE_END = b" HTTP/1.1\r\n"
_CLOSING = LINE_END + b"Connection: close\r\n"


class IdleConnection(Connection):
    """A connection whose socket is watched while it waits for its next request."""

    # The last two are of RequestLimit, so that it can be combined with other subclasses.
    __slots__ = ("_carried", "_on_idle", "_planned")
    _carried: int
    _planned: bytes

    def __init__(self, load: ConnectionOwner, counts: RequestMetrics, request: bytes) -> None:
        super().__init__(load, counts, request)
        self._on_idle = self.on_idle

    def rest(self) -> bool:
        """Its request is over: wait for the next on the open socket. False if there is no socket."""
        self.started = self.lingers_until = inf
        if self._fd < 0:
            return False
        self._handlers[self._fd] = self._on_idle
        return True

    def rouse(self) -> None:
        """Expect a response again."""
        if self._fd >= 0:
            self._handlers[self._fd] = self._on_response

    def on_idle(self, mask: int, now: float) -> None:
        """The server closes an idle connection, or sends unexpected data on it."""
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

    The last of them announces it (`Connection: close`), so that the server closes first, as it does without keep-alive.
    A socket that the server keeps open even so is closed here.
    """

    __slots__ = ()

    def carry(self, counts: RequestMetrics, request: bytes) -> None:
        super().carry(counts, request)
        self._planned = request

    def begin(self, now: float) -> None:
        if self._is_used_up():
            self.close()
        self.rouse()
        self._carried = 1 if self._fd < 0 else self._carried + 1
        self._request = self._composed()
        self._size = len(self._request)
        super().begin(now)

    def _composed(self) -> bytes:
        """The bytes of the next request."""
        return self._planned.replace(LINE_END, _CLOSING, 1) if self._is_last() else self._planned

    def rest(self) -> bool:
        if self._is_used_up():
            self.close()
        return super().rest()

    def _is_last(self) -> bool:
        return self._carried >= self._load.requests_per_connection

    def _is_used_up(self) -> bool:
        return self._fd >= 0 and self._is_last()

    def _reconnect(self) -> None:
        self._carried = 1
        super()._reconnect()
