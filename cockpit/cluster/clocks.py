"""The clock of another machine, relative to this one, by the fastest recent ping. Pure."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

# Age (s) of the pings for an offset: within it, two clocks drift apart by less than a ping's uncertainty.
WINDOW = 30.0


class Ping(NamedTuple):
    """A reading of the other machine's time.monotonic() (`there`), between `sent` and `received` on this machine."""

    sent: float
    there: float
    received: float

    @property
    def offset(self) -> float:
        """Time here minus time there (s), if both ways took the same time."""
        return (self.sent + self.received) / 2 - self.there

    @property
    def uncertainty(self) -> float:
        """Maximum error (s) of the offset, for any share of the round trip that either way took."""
        return (self.received - self.sent) / 2


class MachineClock:
    """Converts instants of another machine's time.monotonic() to this machine's, and back."""

    def __init__(self) -> None:
        self._pings: deque[Ping] = deque()
        self._first: Ping | None = None
        self._best: Ping | None = None

    def add(self, ping: Ping) -> None:
        self._pings.append(ping)
        while ping.received - self._pings[0].received > WINDOW:
            self._pings.popleft()
        self._best = min(self._pings, key=lambda each: each.uncertainty)
        if self._first is None or (ping.received - self._first.received < WINDOW and _better(ping, self._first)):
            self._first = ping

    @property
    def best(self) -> Ping:
        """The fastest ping of the window. Raises ValueError before the first ping."""
        if self._best is None:
            raise ValueError("no ping yet")
        return self._best

    @property
    def drift(self) -> float:
        """Rate (s/s) at which the other clock falls behind this one; 0 if within the uncertainty."""
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
