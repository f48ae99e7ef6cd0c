"""The series of a recorded state, each chunk read from its page when somebody looks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, TypeVar

from cockpit.model.host_state import HostPoint, MemoryUse
from cockpit.model.series import Series
from cockpit.model.state import LoadSecond
from cockpit.recording.byte_streams import ByteReader
from cockpit.recording.columns import column_for
from cockpit.recording.index import EventRange, Index
from cockpit.recording.packing import Damaged, reading
from cockpit.recording.page_builder import Grown
from cockpit.recording.rows import Rows

# Pages whose series are kept at hand.
_AT_HAND = 256

# What came with a page: seconds, and points by host.
MeanGroup = tuple[tuple[LoadSecond, ...], dict[str, tuple[HostPoint, ...]]]
_T = TypeVar("_T")


class PageSeries:
    """Seconds and points by page."""

    def __init__(self, rows: Rows, index: Index) -> None:
        self._rows = rows
        self._index = index
        self._at_hand: OrderedDict[int, MeanGroup] = OrderedDict()
        self._unknown: OrderedDict[int, MeanGroup] = OrderedDict()

    def points(self, host: str, last: int) -> Series[HostPoint]:
        """Those of a host up to a page, that one included."""
        chunks = [
            LazyChunk(self, at, grown.points[host], host) for at, grown in self._upto(last) if host in grown.points
        ]
        return Series(tuple(chunks), ())

    def seconds(self, last: int, filling: tuple[LoadSecond, ...]) -> Series[LoadSecond]:
        """Those up to a page, that one included, and after them what is told anew."""
        chunks = [LazyChunk(self, at, grown.seconds) for at, grown in self._upto(last) if grown.seconds]
        return Series(tuple(chunks), filling)

    def _upto(self, last: int) -> Iterator[tuple[int, Grown]]:
        return iter(enumerate(self._index.grown[: last + 1]))

    def of(self, place: int) -> MeanGroup:
        """What seconds and points came with a page; where they are damaged, as many of which nothing is known."""
        if place in self._unknown:
            return self._unknown[place]
        try:
            return self.at(place)
        except Damaged as error:
            page, grown = self._index.pages[place], self._index.grown[place]
            self._rows.lose_often(page.begin, page.end, error)
            keep(self._unknown, place, _unknown(page, grown), _AT_HAND)
            return self._unknown[place]

    def at(self, place: int) -> MeanGroup:
        """As `of`; raises Damaged."""
        if place in self._at_hand:
            self._at_hand.move_to_end(place)
            return self._at_hand[place]
        page, grown = self._index.pages[place], self._index.grown[place]
        with reading("a series"):
            [(blob,)] = self._rows.ask("SELECT series FROM pages WHERE first = ?", (page.first,))
            spring = ByteReader.of(blob)
            seconds = tuple(column_for(LoadSecond).read(grown.seconds, spring))
            points = {name: tuple(column_for(HostPoint).read(count, spring)) for name, count in grown.points.items()}
        keep(self._at_hand, place, (seconds, points), _AT_HAND)
        return seconds, points


class LazyChunk:
    """A chunk of a series that is read from its page when somebody looks: of `host`'s points, or of the seconds."""

    __slots__ = ("_count", "_host", "_place", "_series")

    def __init__(self, series: PageSeries, place: int, count: int, host: str | None = None) -> None:
        self._series = series
        self._place = place
        self._count = count
        self._host = host

    def __len__(self) -> int:
        return self._count

    def items(self) -> tuple[Any, ...]:
        seconds, points = self._series.of(self._place)
        return seconds if self._host is None else points[self._host]


def _unknown(page: EventRange, grown: Grown) -> MeanGroup:
    """Seconds and points of a page of which nothing is known but how many there were."""
    none = MemoryUse(0, 0, 0, 0, 0, 0)
    seconds = tuple(
        LoadSecond(second=int(page.begin) + at, start=page.begin + at, end=page.begin + at)
        for at in range(grown.seconds)
    )
    points = {
        name: tuple(HostPoint(t=page.begin, memory=none, load=(0.0, 0.0, 0.0)) for _ in range(count))
        for name, count in grown.points.items()
    }
    return seconds, points


def keep(at_hand: OrderedDict[Any, _T], key: Any, value: _T, most: int) -> None:
    """Keeps the newest of what was read."""
    at_hand[key] = value
    if len(at_hand) > most:
        at_hand.popitem(last=False)
