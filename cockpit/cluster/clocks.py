"""The clock of another machine, by the quickest of the last pings. Pure."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

# Seconds of pings that an offset is taken from: within them two clocks drift apart by less than a ping's uncertainty.
WINDOW = 30.0


class Ping(NamedTuple):
    """The time.monotonic() of the other machine (`there`) was read between `sent` and `received` of this one's."""

    sent: float
    there: float
    received: float

    @property
    def offset(self) -> float:
        """What is added to an instant there to get the instant here, if both ways took the same time."""
        return (self.sent + self.received) / 2 - self.there

    @property
    def uncertainty(self) -> float:
        """How far (s) the offset can be off, whatever part of the time either way took."""
        return (self.received - self.sent) / 2


class MachineClock:
    """Converts instants of another machine's time.monotonic() to this machine's, and back."""

    def __init__(self) -> None:
        self._pings: deque[Ping] = deque()
        self._first: Ping | None = None
        self._best: Ping | None = None

    def take(self, ping: Ping) -> None:
        self._pings.append(ping)
        while ping.received - self._pings[0].received > WINDOW:
            self._pings.popleft()
        self._best = min(self._pings, key=lambda one: one.uncertainty)
        if self._first is None or (ping.received - self._first.received < WINDOW and _better(ping, self._first)):
            self._first = ping

    @property
    def best(self) -> Ping:
        """The quickest ping of the window. Raises ValueError before the first one."""
        if self._best is None:
            raise ValueError("no ping yet")
        return self._best

    @property
    def drift(self) -> float:
        """Seconds per second by which the other clock runs slower than this one; 0 within the uncertainty."""
        first, best = self._first, self.best
        if first is None or best.received - first.received < WINDOW:
            return 0.0
        moved = best.offset - first.offset
        return moved / (best.received - first.received) if abs(moved) > best.uncertainty + first.uncertainty else 0.0

    def here(self, there: float) -> float:
        return there + self.best.offset

    def there(self, here: float) -> float:
        return here - self.best.offset


def _better(ping: Ping, other: Ping) -> bool:
    return ping.uncertainty < other.uncertainty
