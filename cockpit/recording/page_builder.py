"""Binds events that are written into pages, each with the state after it, in the recorder's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

import msgspec

from cockpit.model.events import AnyEvent, HostSample
from cockpit.model.histogram import Histogram
from cockpit.model.host_state import HostPoint, HostState
from cockpit.model.state import LoadSecond, State
from cockpit.recording.byte_streams import ByteWriter
from cockpit.recording.checkpoints import CheckpointWriter, Sampled, final_seconds
from cockpit.recording.columns import column_for
from cockpit.recording.pages import OFTEN, Numbered, pack
from cockpit.recording.schema import tell_tables
from cockpit.recording.write_queue import weight

OFTEN_KINDS = tuple(sorted(str(one.__struct_config__.tag) for one in OFTEN))

# So many units of memory (see `weight`) wait for their page at most.
_MOST = 200_000


class Grown(msgspec.Struct, frozen=True):
    """How many items of each series came with a page."""

    seconds: int = 0
    points: dict[str, int] = {}


def latencies(seconds: Sequence[LoadSecond]) -> dict[int, Histogram]:
    """Those of a page's seconds, which its ticks need not have once more."""
    return {second.second: second.latency for second in seconds}


class PageBuilder:
    """Holds the events since the last page."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._events: list[Numbered] = []
        self._weight = 0
        self._first = 1
        self._known = (0.0, 0.0)
        self._samples: dict[str, list[tuple[int, HostSample]]] = {}
        self._keeper = CheckpointWriter()
        self._kept = Grown()
        self._parts = 0

    def take(self, number: int, event: AnyEvent) -> None:
        """An event that is a row now."""
        latest = max(self._known[1], event.t)
        self._known = (self._known[0], latest)
        if type(event) in OFTEN:
            self._events.append((number, event))
            self._weight += weight(event)
            if self._weight > _MOST:
                # The disk has refused pages for long; these events stay what they are.
                self.skip(number)
        if isinstance(event, HostSample):
            self._samples[event.host] = [*self._samples.get(event.host, [])[-2:], (number, event)]

    def skip(self, last: int) -> None:
        """Leave the events up to `last` as rows."""
        self._events = [one for one in self._events if one[0] > last]
        self._weight = sum(weight(event) for _, event in self._events)
        self._first, self._known = last + 1, (self._known[1], self._known[1])

    def bind(self, last: int, state: State) -> None:
        """Pack all events up to `last`, and the state after them, as a page.

        Raises sqlite3.Error, and OverflowError for numbers that do not fit; nothing has changed then.
        """
        page = [one for one in self._events if one[0] <= last]
        begin, end = self._known
        final = final_seconds(state)
        points = {name: len(host.points) for name, host in state.hosts.items()}
        grown = Grown(
            final - self._kept.seconds, {name: count - self._kept.points.get(name, 0) for name, count in points.items()}
        )
        parts: list[tuple[int, bytes]] = []

        def store(body: bytes) -> int:
            parts.append((self._parts + len(parts) + 1, body))
            return parts[-1][0]

        try:
            body = self._keeper.pack(state, self._sampled(state), store)
            told = pack(page, latencies(self._seconds(state, grown)))
            row = (self._first, last, begin, end, msgspec.json.encode(grown).decode(), told, self._series(state, grown))
            with self._database:
                self._database.executemany("INSERT INTO parts VALUES (?, ?)", parts)
                self._database.execute("INSERT INTO pages VALUES (?,?,?,?,?,?,?,?)", (*row, body))
                marks = ",".join("?" * len(OFTEN_KINDS))
                self._database.execute(
                    f"DELETE FROM events WHERE seq BETWEEN ? AND ? AND kind IN ({marks})",
                    (self._first, last, *OFTEN_KINDS),
                )
                tell_tables(self._database, state, (self._kept.seconds, len(state.seconds)))
        except Exception:
            self._keeper.undo()
            raise
        self.skip(last)
        self._parts += len(parts)
        self._kept = Grown(final, points)

    def _series(self, state: State, grown: Grown) -> bytes:
        sink = ByteWriter()
        column_for(LoadSecond).write(self._seconds(state, grown), sink)
        for name in grown.points:
            column_for(HostPoint).write(state.hosts[name].points[self._kept.points.get(name, 0) :], sink)
        return sink.blob()

    def _seconds(self, state: State, grown: Grown) -> Sequence[LoadSecond]:
        return state.seconds[self._kept.seconds : self._kept.seconds + grown.seconds]

    def _sampled(self, state: State) -> Mapping[str, Sampled]:
        return {name: self._sampled_of(host) for name, host in state.hosts.items()}

    def _sampled_of(self, host: HostState) -> Sampled:
        known = self._samples.get(host.config.name, [])
        place = next((at for at, (_, sample) in enumerate(known) if sample is host.sample), None)
        if place is None:
            return Sampled()
        before = known[place - 1][0] if place else None
        return Sampled(known[place][0], before, bool(host.cores or host.disks or host.nets))
