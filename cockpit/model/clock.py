"""The one clock: seconds of the monotonic clock since the session began."""

from __future__ import annotations

import time


class Clock:
    """`now()` in seconds since this clock was made; `wall` is the epoch time of that instant."""

    def __init__(self) -> None:
        self.origin = time.monotonic()
        self.wall = time.time()

    def now(self) -> float:
        return time.monotonic() - self.origin

    def at(self, monotonic: float) -> float:
        """Session time of a reading of time.monotonic(), which all processes of one machine share."""
        return monotonic - self.origin
