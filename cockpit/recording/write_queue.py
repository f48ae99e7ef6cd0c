"""The queue of events to write. It is bounded: if the disk hangs, events are dropped instead of filling the memory.

Dropped events are counted per time range. When the recording continues, each range is recorded as a note.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Sequence
from typing import NamedTuple

from cockpit.model.events import AnyEvent, HostSample, Note, StatusRead, TailText
from cockpit.model.state import State
from cockpit.model.text import clock
from cockpit.model.tick import Tick
from cockpit.recording.compaction import Numbered
from cockpit.recording.pages import FREQUENT

# Size limit in units of about 500 bytes (see `weight`). Above it frequent events are dropped, until half of it is free.
LIMIT = 200_000
# Further units for events that are not frequent: runs, changes, notes.
RESERVE = 20_000
# Maximum number of gaps; further ones extend the last.
_GAPS_LIMIT = 50


class Gap(NamedTuple):
    """A time range (session s) of which `lost` events were dropped; `number` is the number of the first one since the
    last note about it."""

    number: int
    begin: float
    end: float
    lost: int

    @property
    def words(self) -> str:
        return f"{clock(self.begin)} to {clock(self.end)} is not recorded: {self.lost} events lost"


class WriteBatch(NamedTuple):
    """Events to write, and their weight (units)."""

    events: list[Numbered]
    weight: int


class Page(NamedTuple):
    """The state after event `last`: the events up to it can be packed."""

    last: int
    state: State


class WriteQueue:
    """A queue from the thread of the session to that of the recorder. None ends it."""

    def __init__(self, limit: int = LIMIT, reserve: int = RESERVE) -> None:
        self._queue: queue.SimpleQueue[WriteBatch | Page | None] = queue.SimpleQueue()
        self._limit = limit
        self._reserve = reserve
        # `given` is written by the session only, `_released` by the recorder only.
        self.given = 0
        self._released = 0
        self._dropping = False
        self.gaps: tuple[Gap, ...] = ()

    @property
    def weight(self) -> int:
        """Weight of the queued events (units)."""
        return self.given - self._released

    def offer(self, events: Sequence[Numbered]) -> None:
        """Queue events; drop those that do not fit."""
        kept: list[Numbered] = []
        total = 0
        for number, event in events:
            size = weight(event)
            if self._has_room(isinstance(event, FREQUENT), total + size):
                if self._dropping and isinstance(event, FREQUENT):
                    kept.append(self._end_gap())
                kept.append((number, event))
                total += size
            else:
                self._drop(number, event)
        self.given += total
        if kept:
            self._queue.put(WriteBatch(kept, total))

    def offer_page(self, page: Page) -> bool:
        """Queue a page; return False if the queue is full."""
        if self.weight > self._limit:
            return False
        self._queue.put(page)
        return True

    def end(self) -> None:
        if self._dropping:
            self._queue.put(WriteBatch([self._end_gap()], 0))
        self._queue.put(None)

    def next_item(self, until: float) -> WriteBatch | Page | None:
        """Return the next item; an empty batch if there is none until `until` (s of time.monotonic())."""
        try:
            return self._queue.get(timeout=max(0.01, until - time.monotonic()))
        except queue.Empty:
            return WriteBatch([], 0)

    def release(self, units: int) -> None:
        """Subtract units that were written or lost. Called by the thread of the recorder."""
        self._released += units

    def _has_room(self, frequent: bool, size: int) -> bool:
        needed = self.weight + size
        if not frequent:
            return needed <= self._limit + self._reserve
        return needed <= (self._limit // 2 if self._dropping else self._limit)

    def _drop(self, number: int, event: AnyEvent) -> None:
        new = Gap(number, event.t, event.t, 0)
        *before, last = self.gaps or (new,)
        if not self._dropping and self.gaps:
            # Each gap is written as a note with a number of its own.
            extended = (before, last._replace(number=number))
            before, last = extended if len(self.gaps) == _GAPS_LIMIT else ([*self.gaps], new)
        self._dropping = True
        last = last._replace(begin=min(last.begin, event.t), end=max(last.end, event.t), lost=last.lost + 1)
        self.gaps = (*before, last)

    def _end_gap(self) -> Numbered:
        """End the gap; return the note about it, with the number of the first dropped event."""
        self._dropping = False
        gap = self.gaps[-1]
        return gap.number, Note(t=gap.begin, text=gap.words)


def weight(event: AnyEvent) -> int:
    """Return the memory use of an event in units of about 500 bytes."""
    if isinstance(event, HostSample):
        reading = event.reading
        return 2 + len(reading.processes) + len(reading.cores) + len(reading.disks) + len(reading.nets)
    if isinstance(event, TailText):
        return 1 + sum(1 + len(line) // 400 for line in event.lines)
    if isinstance(event, StatusRead):
        return 1 + (len(event.values) + len(event.text)) // 4
    if isinstance(event, Tick):
        return 16 * (1 + len(event.groups))
    return 4
