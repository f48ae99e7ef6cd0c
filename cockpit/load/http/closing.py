"""Detection of servers that announce `Connection: close` but keep the connection open."""

from __future__ import annotations

# Consecutive connections that a server may leave open before the client stops waiting.
_MAX_UNCLOSED = 4
# After that, the client waits on every n-th connection only, to detect that the server closes again.
_SAMPLE_INTERVAL = 1000


class Closing:
    """Decides whether to wait for the server to close a connection first, so that TIME_WAIT is on the server's side.

    With a server that does not close, each wait would delay the next request.
    """

    def __init__(self) -> None:
        self._remaining = _MAX_UNCLOSED
        self._skipped = 0

    def waits(self) -> bool:
        if self._remaining > 0:
            return True
        self._skipped += 1
        return self._skipped % _SAMPLE_INTERVAL == 0

    def closed(self) -> None:
        self._remaining = _MAX_UNCLOSED

    def expired(self) -> None:
        self._remaining -= 1
