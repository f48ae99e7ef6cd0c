"""Parses slices of stacks that a host prints. Pure: nothing that the host sends is trusted."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple, cast, get_args

from cockpit.model.stacks import MAX_STACK, MAX_STACKS, StackSlice, StackSource, check_slice
from cockpit.model.text import sanitize

MARK = b"#cockpit "


class HostSlice(NamedTuple):
    """A slice from `start` to `end` of the host's clock (s); `uptime` (s) of the host when it was printed, `cost` its
    CPU time (s)."""

    start: float
    end: float
    uptime: float
    source: StackSource
    samples: int
    other: int
    cost: float
    stacks: dict[str, int]

    def event(self, host: str, hz: int, end: float) -> StackSlice:
        """Return the slice that ended at `end` (session s). Raises ValueError if it is invalid."""
        part = StackSlice(
            t=end,
            start=max(0.0, end - (self.end - self.start)),
            host=host,
            source=self.source,
            hz=hz,
            samples=self.samples,
            other=self.other,
            stacks=self.stacks,
            cost=self.cost,
        )
        check_slice(part)
        return part


class SliceReader:
    """Collects the lines of slices."""

    def __init__(self) -> None:
        self._head: HostSlice | None = None
        self._stacks: Counter[str] = Counter()
        self._lines = 0

    def feed(self, line: bytes) -> HostSlice | None:
        """Return the slice that this line completes. Raises ValueError for an invalid line."""
        words = line.split()
        if line.startswith(MARK + b"slice"):
            _, _, start, end, uptime, source, samples, other, cost = words
            if source.decode("ascii", "replace") not in get_args(StackSource):
                raise ValueError("unknown source of samples")
            times = (float(start), float(end), float(uptime))
            if not all(map(math.isfinite, times)):
                raise ValueError("a time is NaN or infinite")
            counts = (int(samples), int(other))
            self._stacks, self._lines = Counter(), 0
            self._head = HostSlice(*times, cast("StackSource", source.decode()), *counts, float(cost), {})
        elif line.startswith(MARK + b"end"):
            head, self._head = self._head, None
            return head._replace(stacks=dict(self._stacks)) if head else None
        elif self._head is not None:
            self._lines += 1
            if self._lines > MAX_STACKS:
                raise ValueError("more stacks than the limit")
            count, _, stack = line.rstrip(b"\n").partition(b" ")
            self._stacks[sanitize(stack.decode("utf-8", "replace"), MAX_STACK)] += int(count)
        return None
