"""Load that changes linearly in time, and its exact arrivals."""

from __future__ import annotations

from math import floor, inf, sqrt
from typing import NamedTuple


class Ramp(NamedTuple):
    """The load of all workers together, in connections or arrivals/s: `first` until `start`, then linear up to `last`
    at `end`, and `last` from then on. Times are in s of time.monotonic(). A constant load has no length."""

    first: float
    last: float
    start: float
    end: float

    def rate_at(self, t: float) -> float:
        return self.first + (self.last - self.first) * self._part(t)

    def arrivals(self, t: float) -> float:
        """Return the integral of the rate from `start` to `t`; negative before `start`."""
        if t <= self.start:
            return (t - self.start) * self.first
        within = min(t, self.end)
        return (within - self.start) * (self.first + self.rate_at(within)) / 2 + (t - within) * self.last

    def time_of(self, arrivals: float) -> float:
        """Return the time at which the integral of the rate is `arrivals`."""
        if arrivals <= 0:
            return self.start + arrivals / self.first
        length = self.end - self.start
        whole = length * (self.first + self.last) / 2
        if arrivals >= whole:
            return self.end + (arrivals - whole) / self.last
        slope = (self.last - self.first) / length
        return self.start + 2 * arrivals / (self.first + sqrt(self.first**2 + 2 * slope * arrivals))

    def connections(self, t: float) -> int:
        """Return the nearest whole number of connections."""
        step = floor(abs(self.last - self.first) * self._part(t) + 0.5)
        return int(self.first) + (step if self.last > self.first else -step)

    def next_step(self, t: float) -> float:
        """Return the time at which the number of connections next changes after `t`; infinite if it does not."""
        steps = abs(self.last - self.first)
        following = floor(steps * self._part(t) + 0.5) + 1
        return inf if following > steps else self.start + (following - 0.5) / steps * (self.end - self.start)

    def _part(self, t: float) -> float:
        """Return the part of the ramp that is over at `t`, 0 to 1."""
        if t >= self.end:
            return 1.0
        return (t - self.start) / (self.end - self.start) if t > self.start else 0.0


def constant(load: float, at: float = 0.0) -> Ramp:
    return Ramp(load, load, at, at)
