"""Notices that the cockpit itself did not run: stopped, starved, or on a machine that slept."""

from __future__ import annotations

import time

# Seconds of standstill that are worth a word.
WORTH_SAYING = 3.0


def slept() -> float:
    """Seconds that this machine has slept since it was started: the boot clock counts them, the monotonic does not."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    if boot is None:
        return 0.0
    return time.clock_gettime(boot) - time.clock_gettime(time.CLOCK_MONOTONIC)


class PauseDetector:
    """To be looked at at least every `period` seconds; what is longer than that is standstill."""

    def __init__(self, period: float) -> None:
        self._period = period
        self.begin()

    def begin(self) -> None:
        """Counts from now."""
        self._last, self._slept = time.monotonic(), slept()

    def paused_seconds(self) -> float:
        """Seconds of standstill since the last look; 0 where it is not worth a word."""
        last, before = self._last, self._slept
        self.begin()
        stood = self._last - last - self._period + self._slept - before
        return stood if stood >= WORTH_SAYING else 0.0
