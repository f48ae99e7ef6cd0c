"""Open the sockets of load: remote address, local address, TLS."""

from __future__ import annotations

import itertools
import socket
import sys
from typing import TYPE_CHECKING, Any

from cockpit.load.http.protocol import Assignment
from cockpit.load.http.request import target_of_plan

if TYPE_CHECKING:
    from cockpit.load.http.tls import TlsWrapper

# Size (bytes) up to which a request fits into one TCP segment, which Nagle's algorithm does not delay.
_SEGMENT = 1400

# The C base class of socket.socket: its constructor is faster.
_Socket: Any = socket.SocketType
_NONBLOCK = int(getattr(socket, "SOCK_NONBLOCK", 0))
_STREAM = int(socket.SOCK_STREAM) | _NONBLOCK

# IP_BIND_ADDRESS_NO_PORT (Linux, ip(7)): connect() chooses the port, and can share it among remote addresses.
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
            from cockpit.load.http.tls import TlsWrapper, alpn_of

            self.tls = TlsWrapper(plan.tls, target.host, alpn_of(plan.http))
        # In a TLS handshake both peers send twice in a row, and HTTP/2 sends requests while others are in flight;
        # Nagle's algorithm would delay the second segment.
        self._no_delay = self._family != _UNIX and (largest > _SEGMENT or target.secure or plan.http2)
        own = plan.local_addresses
        start = assignment.worker % len(own) if own else 0
        self._local = itertools.cycle(own[start:] + own[:start]) if own else None
        self._plain = bool(_NONBLOCK) and not self._no_delay and self._local is None

    def open(self) -> tuple[Any, int]:
        """Return a socket that connects, and the errno of connect. Raises OSError if no socket can be created."""
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
    """Return the family of a socket address: (path,), (host, port), or four elements for IPv6."""
    if len(address) == 1:
        return _UNIX
    return int(socket.AF_INET6 if len(address) == 4 else socket.AF_INET)


def bind(sock: Any, address: str) -> None:
    """Bind a socket to a local address, without choosing the port yet (Linux). Raises OSError."""
    if sys.platform == "linux":
        sock.setsockopt(socket.IPPROTO_IP, _BIND_WITHOUT_PORT, 1)
    sock.bind((address, 0))
