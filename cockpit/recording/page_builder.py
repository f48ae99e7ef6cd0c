"""Builds pages from written events, each with the state at its end, in the thread of the recorder."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

import msgspec

from cockpit.model.counts import add
from cockpit.model.events import AnyEvent, HostSample
from cockpit.model.state import State
from cockpit.recording.checkpoints import CheckpointWriter, open_segment
from cockpit.recording.compaction import Numbered, Totals
from cockpit.recording.packing import checksum, pack
from cockpit.recording.pages import FREQUENT, FREQUENT_KINDS, PageGrowth, PageSeries, PageTotals, pack_events
from cockpit.recording.schema import write_tables
from cockpit.recording.write_queue import weight

# Maximum weight (see `weight`) of the events that wait for their page.
_PENDING_LIMIT = 200_000
# One page in this many has the whole totals of the open segment.
_WHOLE_TOTALS_EVERY = 8


class PageBuilder:
    """Collects the events since the last page, and packs them."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._events: list[Numbered] = []
        self._weight = 0
        self._first = 1
        self._known = (0.0, 0.0)
        self._samples: dict[str, list[HostSample]] = {}
        self._checkpoints = CheckpointWriter()
        self._packed = PageGrowth()
        self._parts = 0
        # At the last page: index and totals of the open segment, and pages since its whole totals were written.
        self._counted: tuple[int | None, Totals, int] = (None, Totals(), 0)

    def add(self, number: int, event: AnyEvent) -> None:
        latest = max(self._known[1], event.t + 0.0)
        self._known = (self._known[0], latest)
        if isinstance(event, FREQUENT):
            self._events.append((number, event))
            self._weight += weight(event)
            if self._weight > _PENDING_LIMIT:
                # No page could be written for a long time: these events stay rows.
                self.skip(number)
        if isinstance(event, HostSample):
            self._samples[event.host] = [*self._samples.get(event.host, [])[-2:], event]

    def skip(self, last: int) -> None:
        """Leave the events up to `last` as rows, without packing them."""
        self._events = [event for event in self._events if event[0] > last]
        self._weight = sum(weight(event) for _, event in self._events)
        self._first, self._known = last + 1, (self._known[1], self._known[1])

    def build(self, last: int, state: State) -> None:
        """Write a page of all events up to `last`; `state` is the state after them.

        Raises sqlite3.Error, or OverflowError or ValueError for numbers that cannot be encoded; the file is unchanged.
        """
        # If events were dropped, the last one of the state is later than the last one written.
        begin, end = self._known = (self._known[0], max(self._known[1], state.t + 0.0))
        final = len(state.closed_seconds)
        points = {name: len(host.points) for name, host in state.hosts.items()}
        grown = PageGrowth(
            final - self._packed.seconds,
            {name: count - self._packed.points.get(name, 0) for name, count in points.items()},
        )
        parts: list[tuple[int, bytes]] = []

        def store(body: bytes) -> int:
            parts.append((self._parts + len(parts) + 1, body))
            return parts[-1][0]

        try:
            body = self._checkpoints.pack(state, self._samples_before(state), store)
            events, segments = pack_events([event for event in self._events if event[0] <= last], state)
            counted, whole = self._open_totals(state, segments)
            growth = msgspec.json.encode(grown).decode()
            totals = pack(PageTotals(segments, whole))
            series = self._series(state, grown)
            with self._database:
                self._database.executemany("INSERT INTO parts VALUES (?, ?)", parts)
                marks = ",".join("?" * len(FREQUENT_KINDS))
                self._database.execute(
                    f"DELETE FROM events WHERE seq BETWEEN ? AND ? AND kind IN ({marks})",
                    (self._first, last, *FREQUENT_KINDS),
                )
                question = "SELECT count(*) FROM events WHERE seq BETWEEN ? AND ?"
                rows: int = self._database.execute(question, (self._first, last)).fetchone()[0]
                values = (self._first, last, begin, end, rows, growth)
                row = (*values, checksum(values), events, totals, series, body)
                self._database.execute("INSERT INTO pages VALUES (?,?,?,?,?,?,?,?,?,?,?)", row)
                write_tables(self._database, state, (self._packed.seconds, len(state.seconds)))
        except Exception:
            self._checkpoints.undo()
            raise
        self.skip(last)
        self._parts += len(parts)
        self._packed, self._counted = PageGrowth(final, points), counted

    def _open_totals(
        self, state: State, segments: Mapping[int, Totals]
    ) -> tuple[tuple[int | None, Totals, int], Totals | None]:
        """Return the new `_counted`, and the whole totals of the open segment if this page needs them: in its first
        page, in every eighth page, and if the totals of the pages do not add up."""
        at = open_segment(state)
        if at is None:
            return (None, Totals(), 0), None
        now = Totals.of(state.segments[at].counts)
        known, before, pages = self._counted
        sum_of_pages = add(before, segments.get(at, Totals()))
        if known == at and pages < _WHOLE_TOTALS_EVERY and sum_of_pages == now:
            return (at, now, pages + 1), None
        return (at, now, 1), now

    def _series(self, state: State, grown: PageGrowth) -> bytes:
        seconds = state.seconds[self._packed.seconds : self._packed.seconds + grown.seconds]
        points = {name: state.hosts[name].points[self._packed.points.get(name, 0) :] for name in grown.points}
        return pack(PageSeries(tuple(seconds), {name: tuple(some) for name, some in points.items()}))

    def _samples_before(self, state: State) -> Mapping[str, HostSample]:
        samples = {}
        for name, host in state.hosts.items():
            known = self._samples.get(name, [])
            place = next((at for at, sample in enumerate(known) if sample is host.sample), 0)
            if place:
                samples[name] = known[place - 1]
        return samples
