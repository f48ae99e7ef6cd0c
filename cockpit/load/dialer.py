"""How a connection is begun: to which address, from which, with or without TLS."""

from __future__ import annotations

import itertools
import socket
import sys
from typing import TYPE_CHECKING, Any

from cockpit.load.protocol import Assignment
from cockpit.load.request import target_of_plan

if TYPE_CHECKING:
    from cockpit.load.tls import TlsWrapper

# Below this a request fits into one segment, and Nagle's algorithm has nothing to delay.
_SEGMENT = 1400

# The type under socket.socket, without the cost of its constructor in Python.
_Socket: Any = socket.SocketType
_NONBLOCK = int(getattr(socket, "SOCK_NONBLOCK", 0))
_STREAM = int(socket.SOCK_STREAM) | _NONBLOCK

# Leave the choice of the port to connect(), which can reuse one with another remote end (Linux, ip(7)).
_BIND_WITHOUT_PORT = 24


class Dialer:
    """Opens sockets for one worker. `tls` is None for plain targets."""

    def __init__(self, assignment: Assignment, largest: int) -> None:
        """`largest` is the size of the largest request (bytes)."""
        plan = assignment.plan
        self._address: Any = assignment.address
        self._family = family_of(assignment.address)
        if self._family == _UNIX:
            self._address = assignment.address[0]
        target = target_of_plan(plan)
        self.tls: TlsWrapper | None = None
        if target.secure:
            from cockpit.load.tls import TlsWrapper

            self.tls = TlsWrapper(plan.tls, target.host)
        # In a handshake both ends send twice in a row, which Nagle's algorithm would make wait.
        self._no_delay = self._family != _UNIX and (largest > _SEGMENT or target.secure)
        own = plan.local_addresses
        start = assignment.worker % len(own) if own else 0
        self._local = itertools.cycle(own[start:] + own[:start]) if own else None
        self._plain = bool(_NONBLOCK) and not self._no_delay and self._local is None

    def open(self) -> tuple[Any, int]:
        """A socket whose connect was begun, and the errno that connect gave. Raises OSError when there is no socket."""
        sock = _Socket(self._family, _STREAM)
        if self._plain:
            return sock, sock.connect_ex(self._address)
        try:
            if not _NONBLOCK:
                sock.setblocking(False)
            if self._no_delay:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._local is not None:
                bind(sock, next(self._local))
        except OSError:
            sock.close()
            raise
        return sock, sock.connect_ex(self._address)


_UNIX = int(getattr(socket, "AF_UNIX", -1))


def family_of(address: tuple[Any, ...]) -> int:
    """The address family: of (path,), of (host, port), or of the four of IPv6."""
    if len(address) == 1:
        return _UNIX
    return int(socket.AF_INET6 if len(address) == 4 else socket.AF_INET)


def bind(sock: Any, address: str) -> None:
    """Let a socket connect from this local address. Raises OSError."""
    if sys.platform == "linux":
        sock.setsockopt(socket.IPPROTO_IP, _BIND_WITHOUT_PORT, 1)
    sock.bind((address, 0))
