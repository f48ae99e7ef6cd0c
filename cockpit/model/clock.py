"""The session clock: monotonic seconds since the session started."""

from __future__ import annotations

import time


class Clock:
    """A clock that starts at 0 when it is created; `wall` is the epoch time (s) of that instant."""

    def __init__(self) -> None:
        self.origin = time.monotonic()
        self.wall = time.time()

    def now(self) -> float:
        return time.monotonic() - self.origin

    def at(self, monotonic: float) -> float:
        """Convert a reading of time.monotonic(), which all processes of a machine share, to session time."""
        return monotonic - self.origin
