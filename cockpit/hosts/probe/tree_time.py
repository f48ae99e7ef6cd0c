"""CPU time of the watched processes and of children that they waited for, as a monotonic counter. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# Maximum age (s) of a process when it is first read: the probe checks the names of processes in turns.
_SEEN_WITHIN = 10.0


class CpuTicks(NamedTuple):
    """Clock ticks of one process: its `own`, and of the `children` that it waited for."""

    ppid: int
    own: int
    children: int


# Processes by (pid, start).
Tree = Mapping[tuple[int, int], CpuTicks]


class ProcessTreeTime:
    """Total CPU time (`ticks`) since the first reading, user and system, in clock ticks.

    The time of an ended process is in its parent's `children`, so the time between its last reading and its end is
    counted. The part that was read before is not counted twice.
    """

    def __init__(self, hz: int) -> None:
        self.ticks = 0
        self._hz = hz
        self._before: Tree | None = None
        self._uptime = 0.0

    def update(self, now: Tree, uptime: float) -> int:
        """Add a reading of all watched processes at `uptime` (s); return `ticks`."""
        if self._before is not None:
            self.ticks += _spent(self._before, now, (self._uptime - _SEEN_WITHIN) * self._hz)
        self._before, self._uptime = now, uptime
        return self.ticks


def _spent(before: Tree, now: Tree, since: float) -> int:
    """Return the clock ticks between two readings. A new process counts in full if it started after `since` (ticks
    after boot); an older one had another name before, so it counts from now on."""
    read = _read_of_ended(before, now)
    total = 0
    for identity, times in now.items():
        old = before.get(identity)
        if old is None:
            old = times if identity[1] < since else CpuTicks(times.ppid, 0, 0)
        total += max(0, times.own - old.own)
        total += max(0, times.children - old.children - read.get(identity[0], 0))
    return total


def _read_of_ended(before: Tree, now: Tree) -> dict[int, int]:
    """Return the clock ticks last read of ended processes, by the PID of the nearest ancestor that still runs."""
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
