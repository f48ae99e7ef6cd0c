"""Connections of the load engine whose peer is a socket in this process: full control over the server's bytes, without
an event loop."""

import socket
from contextlib import suppress
from math import inf
from types import SimpleNamespace
from typing import Any

from cockpit.load.http.closing import Closing
from cockpit.load.http.connection import Connection
from cockpit.load.http.request import request_parts, requests_of
from cockpit.load.poller import HANGUP, READABLE, WRITABLE
from cockpit.load.request_metrics import request_metrics_of
from cockpit.load.tally import Tally
from cockpit.model.load.plan import LoadPlan


def request_bytes(plan: LoadPlan) -> bytes:
    return b"".join(request_parts(requests_of(plan)[0], keepalive=plan.keepalive))


class Pairs:
    """An engine with a single connection, over socket pairs; `over`: no request is in flight."""

    def __init__(self, plan: LoadPlan) -> None:
        self.handlers: dict[int, Any] = {}
        nothing = lambda *_: None  # noqa: E731
        self.poller = SimpleNamespace(
            connecting=0, register=nothing, watch_responses=nothing, watch_both=nothing, again=nothing, forget=nothing
        )
        self.tally = Tally(lambda: request_metrics_of(plan), grouped=False)
        self.dialer = SimpleNamespace(tls=None, open=self._open)
        self.closing = Closing()
        self.connections = 0
        self.exhausted = False
        self.over = True
        self._peer = socket.socket()
        self._fd = -1
        self._connecting = False
        self.connection = Connection(self, self.tally.per_request[0], request_bytes(plan))

    def _open(self) -> tuple[Any, int]:
        self._peer.close()
        mine, self._peer = socket.socketpair()
        mine.setblocking(False)
        self._peer.setblocking(False)
        self._fd, self._connecting = mine.fileno(), True
        return mine, 0

    def close(self) -> None:
        self.connection.give_up()
        self._peer.close()

    def next(self, connection: Connection) -> None:
        self.over = True

    not_connected = awaiting_close = next

    def begin(self) -> None:
        """Send a request on the kept connection or on a new connection."""
        if self.connection.close_deadline < inf:
            self.connection.expire(0.0)
        self.over = False
        self.connection.begin(0.0)
        self.connect()
        with suppress(BlockingIOError):
            self._peer.recv(1 << 16)

    def connect(self) -> None:
        """Accept the pending connection."""
        if self._connecting:
            self._connecting = False
            self.handlers[self._fd](WRITABLE, 0.0)

    @property
    def retrying(self) -> bool:
        """Return whether the request will be sent over a new connection."""
        return self._connecting

    def deliver(self, data: bytes) -> None:
        """Send these bytes from the server, as a single segment if the socket buffer has room."""
        left = memoryview(data)
        while left and not self.over:
            with suppress(BlockingIOError):
                left = left[self._peer.send(left) :]
            self.handlers[self._fd](READABLE, 1.0)

    def end(self) -> None:
        """Close the connection from the server."""
        self._peer.close()
        self.handlers[self._fd](READABLE | HANGUP, 1.0)
