"""Detects pauses of cockpit itself: stopped, starved, or on a suspended machine."""

from __future__ import annotations

import time

# Shorter pauses are not reported (s).
WORTH_SAYING = 3.0


def slept() -> float:
    """Seconds that this machine was suspended since boot: the boot clock counts them, the monotonic clock does not."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    if boot is None:
        return 0.0
    return time.clock_gettime(boot) - time.clock_gettime(time.CLOCK_MONOTONIC)


class PauseDetector:
    """Checked at least every `period` seconds; any longer interval is a pause."""

    def __init__(self, period: float) -> None:
        self._period = period
        self.begin()

    def begin(self) -> None:
        self._last, self._slept = time.monotonic(), slept()

    def paused_seconds(self) -> float:
        """Seconds paused since the last check; 0 if too short to report."""
        last, before = self._last, self._slept
        self.begin()
        paused = self._last - last - self._period + self._slept - before
        return paused if paused >= WORTH_SAYING else 0.0
