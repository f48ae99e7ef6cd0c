"""CPU time of the watched processes and of the children that they waited for, as a counter that only grows. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# Seconds after its start by which a process is seen for the first time: a host looks for new names in turns.
_SEEN_WITHIN = 10.0


class Times(NamedTuple):
    """Clock ticks of one process: its `own`, and those of its children that have ended and were waited for."""

    ppid: int
    own: int
    children: int


# Processes by (pid, start).
Tree = Mapping[tuple[int, int], Times]


class TreeTime:
    """`ticks` is the CPU time since the first reading, user and system, in clock ticks.

    A process that ends hands its time on to its parent's `children`, so that nothing it used between the last reading
    and its end is lost. The part that was read while it lived is not counted twice.
    """

    def __init__(self, hz: int) -> None:
        self.ticks = 0
        self._hz = hz
        self._before: Tree | None = None
        self._uptime = 0.0

    def take(self, now: Tree, uptime: float) -> int:
        """Take in all watched processes as they are at `uptime` (s), and return `ticks`."""
        if self._before is not None:
            self.ticks += _spent(self._before, now, (self._uptime - _SEEN_WITHIN) * self._hz)
        self._before, self._uptime = now, uptime
        return self.ticks


def _spent(before: Tree, now: Tree, since: float) -> int:
    """Return the clock ticks between two readings. A process first seen now counts whole when it started after `since`
    (ticks after boot): one that is older ran under another name, and its past is not of this time."""
    read = _read_of_ended(before, now)
    total = 0
    for identity, times in now.items():
        old = before.get(identity)
        if old is None:
            old = times if identity[1] < since else Times(times.ppid, 0, 0)
        total += max(0, times.own - old.own)
        total += max(0, times.children - old.children - read.get(identity[0], 0))
    return total


def _read_of_ended(before: Tree, now: Tree) -> dict[int, int]:
    """Return what was read of processes that have ended, by the pid of the nearest parent that lives on."""
    ended = {identity[0]: times for identity, times in before.items() if identity not in now}
    read: dict[int, int] = {}
    for times in ended.values():
        parent = times.ppid
        for _ in range(len(ended)):
            if parent not in ended:
                break
            parent = ended[parent].ppid
        read[parent] = read.get(parent, 0) + times.own + times.children
    return read
