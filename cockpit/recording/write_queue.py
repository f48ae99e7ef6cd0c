"""Events on their way to the disk: bounded, so that a disk that hangs costs events and not the session's memory.

What is dropped is counted by time range; the range is noted in the recording once it continues.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Sequence
from typing import NamedTuple

from cockpit.model.events import AnyEvent, HostSample, Note, StatusRead, TailText, Tick
from cockpit.model.state import State
from cockpit.model.text import clock
from cockpit.recording.compaction import Numbered
from cockpit.recording.pages import FREQUENT

# Units of about 500 bytes (see `weight`); frequent events are dropped from here on, until half of it is free.
LIMIT = 200_000
# Further units for events that are not frequent: runs, changes, notes.
RESERVE = 20_000
# Ranges listed one by one; further ones extend the last.
_MOST_GAPS = 50


class Gap(NamedTuple):
    """A range of session seconds of which `lost` events were dropped; `number` is the first one's."""

    number: int
    begin: float
    end: float
    lost: int

    @property
    def words(self) -> str:
        return f"{clock(self.begin)} to {clock(self.end)} is not recorded: {self.lost} events lost"


class WriteBatch(NamedTuple):
    """Events to write, and their weight in units."""

    events: list[Numbered]
    weight: int


class Page(NamedTuple):
    """The state after all events up to `last`: they can be packed."""

    last: int
    state: State


class WriteQueue:
    """A queue from the session's thread to the recorder's. `None` ends it."""

    def __init__(self, limit: int = LIMIT, reserve: int = RESERVE) -> None:
        self._queue: queue.SimpleQueue[WriteBatch | Page | None] = queue.SimpleQueue()
        self._limit = limit
        self._reserve = reserve
        # Each is written by one thread only.
        self.given = 0
        self._released = 0
        self._dropping = False
        self.gaps: tuple[Gap, ...] = ()

    @property
    def weight(self) -> int:
        """Units in memory."""
        return self.given - self._released

    def offer(self, events: Sequence[Numbered]) -> None:
        """Queue events; drop those for which there is no room."""
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
        """Queue a state; False if there is no room."""
        if self.weight > self._limit:
            return False
        self._queue.put(page)
        return True

    def end(self) -> None:
        if self._dropping:
            self._queue.put(WriteBatch([self._end_gap()], 0))
        self._queue.put(None)

    def take(self, until: float) -> WriteBatch | Page | None:
        """The next item; an empty batch if none comes until that instant (of time.monotonic)."""
        try:
            return self._queue.get(timeout=max(0.01, until - time.monotonic()))
        except queue.Empty:
            return WriteBatch([], 0)

    def release(self, units: int) -> None:
        """These units are on the disk or lost; called by the recorder's thread."""
        self._released += units

    def _has_room(self, frequent: bool, size: int) -> bool:
        wanted = self.weight + size
        if not frequent:
            return wanted <= self._limit + self._reserve
        return wanted <= (self._limit // 2 if self._dropping else self._limit)

    def _drop(self, number: int, event: AnyEvent) -> None:
        *before, last = self.gaps or (Gap(number, event.t, event.t, 0),)
        if not self._dropping and self.gaps and len(self.gaps) < _MOST_GAPS:
            before, last = [*self.gaps], Gap(number, event.t, event.t, 0)
        self._dropping = True
        last = last._replace(begin=min(last.begin, event.t), end=max(last.end, event.t), lost=last.lost + 1)
        self.gaps = (*before, last)

    def _end_gap(self) -> Numbered:
        """A note for the recording, under the number of the first event that is missing."""
        self._dropping = False
        gap = self.gaps[-1]
        return gap.number, Note(t=gap.begin, text=gap.words)


def weight(event: AnyEvent) -> int:
    """The memory that an event takes, in units of about 500 bytes."""
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
