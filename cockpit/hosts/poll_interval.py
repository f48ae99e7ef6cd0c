"""How often a host is asked: as often as the profile says, less often where the answers take too long. Pure."""

from __future__ import annotations

# An answer that takes more than this share of the interval is late, one that takes less than the other is early.
LATE, EARLY = 0.5, 0.2
# So many late ones in a row double the interval, so many early ones halve it: quick to spare, slow to trust again.
LATE_IN_A_ROW, EARLY_IN_A_ROW = 2, 5
# Seconds; a longer interval is only what the profile itself asks for.
LONGEST = 5.0


class PollInterval:
    """`interval` (s) is the one in force; never shorter than `wanted`."""

    def __init__(self, wanted: float) -> None:
        self.wanted = wanted
        self.interval = wanted
        self._late = 0
        self._early = 0

    def took(self, seconds: float) -> None:
        """Takes in how long an answer took."""
        self._late = self._late + 1 if seconds > LATE * self.interval else 0
        self._early = self._early + 1 if seconds < EARLY * self.interval else 0
        if self._late >= LATE_IN_A_ROW:
            self._set(min(2 * self.interval, max(LONGEST, self.wanted)))
        elif self._early >= EARLY_IN_A_ROW:
            self._set(max(self.interval / 2, self.wanted))

    def _set(self, interval: float) -> None:
        self.interval = interval
        self._late = self._early = 0
