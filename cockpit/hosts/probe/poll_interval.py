"""The polling interval of a host: as in the profile, longer while answers are slow. Pure."""

from __future__ import annotations

# Shares of the interval: a longer answer is late, a shorter one is early.
LATE, EARLY = 0.5, 0.2
# Number of late answers in a row that double the interval, and of early answers that halve it.
LATE_IN_A_ROW, EARLY_IN_A_ROW = 2, 5
# Maximum interval (s), unless the profile sets a longer one.
LONGEST = 5.0


class PollInterval:
    """Adaptive interval: `interval` (s) is the current value, never shorter than `configured`, the profile's."""

    def __init__(self, configured: float) -> None:
        self.configured = configured
        self.interval = configured
        self._late = 0
        self._early = 0

    def took(self, seconds: float) -> None:
        self._late = self._late + 1 if seconds > LATE * self.interval else 0
        self._early = self._early + 1 if seconds < EARLY * self.interval else 0
        if self._late >= LATE_IN_A_ROW:
            self._set(min(2 * self.interval, max(LONGEST, self.configured)))
        elif self._early >= EARLY_IN_A_ROW:
            self._set(max(self.interval / 2, self.configured))

    def _set(self, interval: float) -> None:
        self.interval = interval
        self._late = self._early = 0
