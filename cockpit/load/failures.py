"""Map errors of the operating system to failure kinds (`cockpit.model.load.plan.ErrorKind`)."""

from __future__ import annotations

import errno

from cockpit.model.load.plan import ErrorKind

# Pseudo errno values: a TLS error; the end of a connection without close_notify, so that a body without a length may be
# truncated (RFC 9112 section 9.8).
TLS_TROUBLE = -1
TLS_CUT = -2

_ANYWHERE: dict[int, ErrorKind] = {
    TLS_TROUBLE: "tls",
    errno.EMFILE: "no_file_descriptors",
    errno.ENFILE: "no_file_descriptors",
    errno.EADDRNOTAVAIL: "no_local_ports",
    # connect() returns it, too, if all local ports are in use.
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
    """A response is not HTTP/1.x. `kind` is counted; the message is the end of a sentence after the URL."""

    def __init__(self, kind: ErrorKind = "not_http", fault: str = "the server does not speak HTTP/1.1") -> None:
        super().__init__(fault)
        self.kind = kind


def connect_failure(code: int | None) -> ErrorKind:
    """Return the kind for the errno of a connect; others count as unreachable."""
    return _CONNECTING.get(code or 0, "unreachable")


def transfer_failure(code: int | None) -> ErrorKind:
    """Return the kind for the errno of a send or receive on an established connection."""
    return _CONNECTED.get(code or 0, "reset")
