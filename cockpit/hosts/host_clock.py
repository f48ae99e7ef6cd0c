"""Session times of a host's readings. Pure."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

# Responses over which the two clocks are compared: enough to include a quick one, too few for drift to matter.
KEPT = 30
# Resolution of the host's uptime (s); it is truncated.
STEP = 0.01


class _Offset(NamedTuple):
    """Bounds of the offset between session time and the host's uptime (s)."""

    least: float
    most: float


class HostClock:
    """Compares the host's uptime with session time over several responses, so that quick responses place slow ones."""

    def __init__(self) -> None:
        self._offsets: deque[_Offset] = deque(maxlen=KEPT)

    def place(self, sent: float, received: float, uptime: float) -> float:
        """The session time (s) of a reading, between request and response."""
        offset = _Offset(sent - uptime - STEP, received - uptime)
        self._offsets.append(offset)
        least, most = self._bounds()
        if least > most + STEP:  # one of the clocks jumped: a reboot, or this machine slept
            self._offsets.clear()
            self._offsets.append(offset)
            least, most = offset
        return min(max(uptime + STEP / 2 + (least + most) / 2, sent), received)

    def _bounds(self) -> _Offset:
        return _Offset(max(offset.least for offset in self._offsets), min(offset.most for offset in self._offsets))
