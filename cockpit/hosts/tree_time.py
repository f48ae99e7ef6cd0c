"""CPU time of the watched processes and of the children that they waited for, as a counter that only grows. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# Seconds after its start within which a process is first read: the probe looks for new names in turns.
_SEEN_WITHIN = 10.0


class Times(NamedTuple):
    """Clock ticks of one process: its `own`, and those of children that it has waited for."""

    ppid: int
    own: int
    children: int


# Processes by (pid, start).
Tree = Mapping[tuple[int, int], Times]


class TreeTime:
    """`ticks` is the CPU time since the first reading, user and system, in clock ticks.

    The time of an ended process is in its parent's `children`, so nothing used between the last reading and its end is
    lost. The part that was read before is not counted twice.
    """

    def __init__(self, hz: int) -> None:
        self.ticks = 0
        self._hz = hz
        self._before: Tree | None = None
        self._uptime = 0.0

    def take(self, now: Tree, uptime: float) -> int:
        """Add a reading of all watched processes at `uptime` (s), and return `ticks`."""
        if self._before is not None:
            self.ticks += _spent(self._before, now, (self._uptime - _SEEN_WITHIN) * self._hz)
        self._before, self._uptime = now, uptime
        return self.ticks


def _spent(before: Tree, now: Tree, since: float) -> int:
    """Clock ticks between two readings. A new process counts in full if it started after `since` (ticks after boot);
    an older one ran under another name before."""
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
    """Clock ticks that were read of ended processes, by the pid of the nearest parent that still runs."""
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
