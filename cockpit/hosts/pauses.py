"""Detects pauses of cockpit itself: stopped, without CPU time, or on a suspended machine."""

from __future__ import annotations

import time

# Minimum duration (s) of a reported pause.
WORTH_SAYING = 3.0


def suspended_seconds() -> float:
    """Return the time (s) for which this machine was suspended since boot: only the boot clock counts it."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    if boot is None:
        return 0.0
    return time.clock_gettime(boot) - time.clock_gettime(time.CLOCK_MONOTONIC)


class PauseDetector:
    """Detector that is checked at least every `period` seconds; a longer interval is a pause."""

    def __init__(self, period: float) -> None:
        self._period = period
        self.begin()

    def begin(self) -> None:
        self._last, self._slept = time.monotonic(), suspended_seconds()

    def paused_seconds(self) -> float:
        """Return the duration (s) of a pause since the last check; 0 if too short to report."""
        last, before = self._last, self._slept
        self.begin()
        paused = self._last - last - self._period + self._slept - before
        return paused if paused >= WORTH_SAYING else 0.0
