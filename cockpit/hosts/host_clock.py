"""When on the cockpit's clock a host took its reading. Pure."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

# Answers that the two clocks are compared over: enough to hold a quick one, few enough for clocks to drift apart.
KEPT = 30
# The host's uptime is told in steps of so many seconds, cut off.
STEP = 0.01


class _Between(NamedTuple):
    """What one answer tells: the cockpit's clock is ahead of the host's uptime by this at least, by that at most."""

    least: float
    most: float


class HostClock:
    """Compares the host's uptime with the cockpit's clock over several answers, so that the quick ones tell where a
    slow one belongs: when an answer came says little about when it was made, but the uptime in it says just that.
    """

    def __init__(self) -> None:
        self._told: deque[_Between] = deque(maxlen=KEPT)

    def place(self, sent: float, received: float, uptime: float) -> float:
        """The instant of a reading, which lies between the question and its answer (s, session time)."""
        told = _Between(sent - uptime - STEP, received - uptime)
        self._told.append(told)
        least, most = self._bounds()
        if least > most + STEP:  # one of the clocks jumped: a reboot, or the cockpit's machine slept
            self._told.clear()
            self._told.append(told)
            least, most = told
        return min(max(uptime + STEP / 2 + (least + most) / 2, sent), received)

    def _bounds(self) -> _Between:
        return _Between(max(told.least for told in self._told), min(told.most for told in self._told))
