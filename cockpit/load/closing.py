"""Servers that announce `Connection: close` and keep the connection open."""

from __future__ import annotations

# Connections in a row that a server may leave open before the client stops waiting for it.
_PATIENCE = 4
# After that the client waits only on a sample of them, to see whether the server closes again.
_PROBE = 1000


class Closing:
    """Decides whether the server gets time to close a connection first, so that its port rests there in TIME_WAIT.

    A server that does not close would hold up the next request each time.
    """

    def __init__(self) -> None:
        self._patience = _PATIENCE
        self._skipped = 0

    def waits(self) -> bool:
        if self._patience > 0:
            return True
        self._skipped += 1
        return self._skipped % _PROBE == 0

    def closed(self) -> None:
        self._patience = _PATIENCE

    def expired(self) -> None:
        self._patience -= 1
