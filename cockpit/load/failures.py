"""Kinds of failures by operating system error. The names are those of `cockpit.model.load.ErrorKind`."""

from __future__ import annotations

import errno

from cockpit.model.load import ErrorKind

# In place of an errno: TLS itself failed; or the connection ended without close_notify, so that a body that lasts until
# the end may have been cut (RFC 9112 section 9.8).
TLS_TROUBLE = -1
TLS_CUT = -2

_ANYWHERE: dict[int, ErrorKind] = {
    TLS_TROUBLE: "tls",
    errno.EMFILE: "no_file_descriptors",
    errno.ENFILE: "no_file_descriptors",
    errno.EADDRNOTAVAIL: "no_local_ports",
    # connect() also returns it when every local port is in use.
    errno.EADDRINUSE: "no_local_ports",
    errno.EHOSTUNREACH: "unreachable",
    errno.ENETUNREACH: "unreachable",
    errno.EHOSTDOWN: "unreachable",
    errno.ENETDOWN: "unreachable",
}
_CONNECTING: dict[int, ErrorKind] = {
    **_ANYWHERE,
    errno.ECONNREFUSED: "refused",
    # A Unix socket whose backlog is full.
    errno.EAGAIN: "refused",
    errno.ECONNRESET: "reset",
    errno.ECONNABORTED: "reset",
    errno.ETIMEDOUT: "connect_timeout",
}
_CONNECTED: dict[int, ErrorKind] = {**_ANYWHERE, errno.ETIMEDOUT: "timeout"}


class Malformed(Exception):
    """A response is not HTTP/1.x."""


def connect_failure(code: int | None) -> ErrorKind:
    """Return the kind for the errno of a connect; others count as unreachable."""
    return _CONNECTING.get(code or 0, "unreachable")


def transfer_failure(code: int | None) -> ErrorKind:
    """Return the kind for the errno of a send or receive on an established connection."""
    return _CONNECTED.get(code or 0, "reset")
