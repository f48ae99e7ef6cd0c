"""A socket of the load: connect, TLS handshake, close. See `connection` for requests."""

from __future__ import annotations

import socket
from collections.abc import Callable
from errno import EINPROGRESS
from math import inf
from time import monotonic
from typing import Any, Protocol

from cockpit.load.failures import connect_failure, transfer_failure
from cockpit.load.http.closing import Closing
from cockpit.load.http.dialer import Dialer
from cockpit.load.poller import HANGUP, READABLE, TROUBLE, WRITABLE, Poller
from cockpit.load.tally import Tally
from cockpit.model.load.plan import ErrorKind

Handler = Callable[[int, float], None]


class ConnectionOwner(Protocol):
    """The interface of the engine that owns a connection."""

    handlers: dict[int, Handler]
    poller: Poller
    tally: Tally
    dialer: Dialer
    closing: Closing
    connections: int
    exhausted: bool
    requests_per_connection: int

    def next(self, connection: Any) -> None:
        """Start the next request on a free connection, or none."""

    def not_connected(self, connection: Any) -> None:
        """Like `next`, after a failed connect."""

    def awaiting_close(self, connection: Any) -> None:
        """Note that the request is over, and the connection waits for the server to close; `next` follows."""

    def lost(self, connection: Any) -> None:
        """Note that the server closed the connection between two requests."""


class LoadSocket:
    """A socket; `started` is the start time of its request (s of time.monotonic()), infinite without a request."""

    __slots__ = (
        "_connected",
        "_fd",
        "_handlers",
        "_load",
        "_on_connected",
        "_opened",
        "_reused",
        "_secured",
        "_socket",
        "_tally",
        "started",
    )

    def __init__(self, load: ConnectionOwner) -> None:
        self._load = load
        self._handlers = load.handlers
        self._tally = load.tally
        self._secured = load.dialer.tls is not None
        self.started = inf
        self._opened = 0.0
        self._fd = -1
        self._socket: Any = None
        self._connected = self._reused = False
        self._on_connected: Handler = self.on_connected

    def _connect(self, now: float) -> None:
        self._opened = now
        self._reused = False
        load = self._load
        try:
            self._socket, code = load.dialer.open()
        except OSError as error:
            self._connect_failed(connect_failure(error.errno))
            return
        if code and code != EINPROGRESS:
            self._socket.close()
            self._connect_failed(connect_failure(code))
            return
        self._fd = fd = self._socket.fileno()
        self._handlers[fd] = self._on_connected
        poller = load.poller
        poller.register(fd, poller.connecting)

    def on_connected(self, mask: int, now: float) -> None:
        if mask & TROUBLE:
            code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                self.close()
                self._connect_failed(connect_failure(code))
                return
        if not mask & WRITABLE:
            return
        self._tally.connects.append(now - self._opened)
        self._load.connections += 1
        self._connected = True
        self._load.poller.watch_responses(self._fd)
        if self._secured:
            self._secure(mask, now)
        else:
            self._ready(mask, now)

    def _secure(self, mask: int, now: float) -> None:
        self._opened = now
        tls = self._load.dialer.tls
        assert tls is not None
        try:
            self._socket = tls.wrap(self._socket)
        except OSError as error:
            self._fail(transfer_failure(error.errno))
            return
        self._handlers[self._fd] = self.on_handshake
        if mask & (READABLE | HANGUP):
            self.on_handshake(mask, now)

    def on_handshake(self, mask: int, now: float) -> None:
        """Continue the handshake, or send the request after it."""
        try:
            self._socket.shake_hands()
            if not self._socket.holds_data:
                mask &= ~READABLE
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(transfer_failure(error.errno))
            return
        now = monotonic()
        tally, tls = self._tally, self._socket
        handshakes = tally.resumed_handshakes if tls.resumed else tally.full_handshakes
        handshakes.add(tls.parameters.key, now - self._opened)
        self._ready(mask, now)

    def _read_on(self) -> None:
        """Continue to read at once, after other connections. New data in the socket causes no further wake-up then."""
        if self._secured:
            self._socket.is_empty = False
        self._load.poller.again(self._fd)

    def _holds_data(self) -> bool:
        """Return whether TLS holds data, which causes no further wake-up."""
        return self._secured and bool(self._socket.holds_data)

    def _ready(self, mask: int, now: float) -> None:
        """Send the request on a new connection."""
        raise NotImplementedError

    def _connect_failed(self, kind: ErrorKind) -> None:
        """Handle a failed connect."""
        raise NotImplementedError

    def _fail(self, kind: ErrorKind) -> None:
        """Count the request as failed, and close the connection."""
        raise NotImplementedError

    def close(self) -> None:
        fd = self._fd
        if fd < 0:
            return
        self._fd = -1
        if self._connected:
            self._connected = False
            self._load.connections -= 1
        self._load.poller.forget(fd)
        self._socket.close()
