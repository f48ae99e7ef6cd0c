"""Converts a host's uptime to session time. Pure."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

# Number of readings over which the clocks are compared: enough to include a fast one, too few for drift to matter.
KEPT = 30
# Resolution (s) of the host's uptime, which is truncated.
STEP = 0.01


class _Offset(NamedTuple):
    """Bounds (s) of session time minus the host's uptime."""

    lower: float
    upper: float


class HostClock:
    """The offset between session time and a host's uptime, from several readings; fast readings give narrow bounds."""

    def __init__(self) -> None:
        self._offsets: deque[_Offset] = deque(maxlen=KEPT)

    def place(self, sent: float, received: float, uptime: float) -> float:
        """Return the session time (s) of a reading, between `sent` and `received`."""
        offset = _Offset(sent - uptime - STEP, received - uptime)
        self._offsets.append(offset)
        lower, upper = self._bounds()
        if lower > upper + STEP:  # one of the clocks jumped: a reboot, or this machine was suspended
            self._offsets.clear()
            self._offsets.append(offset)
            lower, upper = offset
        return min(max(uptime + STEP / 2 + (lower + upper) / 2, sent), received)

    def session_time(self, uptime: float) -> float | None:
        """Return the session time (s) of an uptime; None before the first reading."""
        return uptime + STEP / 2 + sum(self._bounds()) / 2 if self._offsets else None

    def _bounds(self) -> _Offset:
        return _Offset(max(offset.lower for offset in self._offsets), min(offset.upper for offset in self._offsets))
