"""Read the pages of a recording: events, totals and series, each on first access."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from cockpit.model.counts import add
from cockpit.model.host.state import HostPoint, MemoryUse
from cockpit.model.load.seconds import LoadSecond
from cockpit.model.series import Series
from cockpit.recording.compaction import Numbered, Totals
from cockpit.recording.index import EventRange, Index, Rows
from cockpit.recording.packing import Damaged, unpack
from cockpit.recording.pages import PageGrowth, PageSeries, PageTotals, unpack_events

# Number of pages whose series and totals are cached.
_CACHED = 256
# Number of pages in which the whole totals of the open segment are searched; one in 8 has them, unless damaged.
_WHOLE_WITHIN = 32

_T = TypeVar("_T")


class PageReader:
    """Reads pages by their position in the index."""

    def __init__(self, rows: Rows, index: Index) -> None:
        self._rows = rows
        self._index = index
        self._series: OrderedDict[int, PageSeries] = OrderedDict()
        self._totals: OrderedDict[int, PageTotals] = OrderedDict()

    def column(self, place: int, name: str) -> object:
        """Return a blob of a page. Raises Damaged."""
        rows = self._rows.select_rows(f"SELECT {name} FROM pages WHERE first = ?", (self._index.pages[place].first,))
        if not rows:
            raise Damaged("a page is missing")
        return rows[0][0]

    def events(self, place: int) -> list[Numbered]:
        """Return the frequent events of a page. Raises Damaged."""
        page = self._index.pages[place]
        return unpack_events(self.column(place, "events"), self._totals_of(place), page.first, page.last)

    def totals(self, last: int, segment: int) -> Totals:
        """Return the totals of a segment that is open at the end of page `last`. Raises Damaged."""
        joined_totals = Totals()
        for place in range(last, max(-1, last - _WHOLE_WITHIN), -1):
            totals = self._totals_of(place)
            if totals.whole is not None:
                return add(totals.whole, joined_totals)
            joined_totals = add(totals.segments.get(segment, Totals()), joined_totals)
        raise Damaged("totals of a segment are missing")

    def _totals_of(self, place: int) -> PageTotals:
        def read() -> PageTotals:
            totals: PageTotals = unpack(self.column(place, "totals"), PageTotals, "totals of a page")
            return totals

        return cached(self._totals, place, read)

    def points(self, host: str, last: int) -> Series[HostPoint]:
        chunks = [
            LazyChunk(self, at, grown.points[host], host)
            for at, grown in self._growth_up_to(last)
            if host in grown.points
        ]
        return Series(tuple(chunks), ())

    def seconds(self, last: int) -> Series[LoadSecond]:
        """Return the closed seconds up to page `last`, inclusive."""
        chunks = [LazyChunk(self, at, grown.seconds) for at, grown in self._growth_up_to(last) if grown.seconds]
        return Series(tuple(chunks), ())

    def _growth_up_to(self, last: int) -> Iterator[tuple[int, PageGrowth]]:
        return iter(enumerate(self._index.grown[: last + 1]))

    def series(self, place: int) -> PageSeries:
        """Return the seconds and points of a page; if they are damaged, the same number of empty ones."""
        return cached(self._series, place, lambda: self._read_series(place))

    def _read_series(self, place: int) -> PageSeries:
        page, grown = self._index.pages[place], self._index.grown[place]
        try:
            series: PageSeries = unpack(self.column(place, "series"), PageSeries, "a series")
            counts = {name: len(points) for name, points in series.points.items()}
            if (len(series.seconds), counts) != (grown.seconds, grown.points):
                raise Damaged("a series has an unexpected length")
        except Damaged as error:
            self._rows.report_page(page.begin, page.end, error)
            return _empty_series(page, grown)
        return series


class LazyChunk:
    """A chunk of a series, read from its page on first access: the points of `host`, or the seconds (None)."""

    __slots__ = ("_count", "_host", "_pages", "_place")

    def __init__(self, pages: PageReader, place: int, count: int, host: str | None = None) -> None:
        self._pages = pages
        self._place = place
        self._count = count
        self._host = host

    def __len__(self) -> int:
        return self._count

    def items(self) -> tuple[Any, ...]:
        series = self._pages.series(self._place)
        return series.seconds if self._host is None else series.points[self._host]


def _empty_series(page: EventRange, grown: PageGrowth) -> PageSeries:
    """Return empty seconds and points that replace the data of a damaged page."""
    none = MemoryUse(0, 0, 0, 0, 0, 0)
    seconds = tuple(
        LoadSecond(second=int(page.begin) + at, start=page.begin + at, end=page.begin + at)
        for at in range(grown.seconds)
    )
    points = {
        name: tuple(HostPoint(t=page.begin, memory=none, load=(0.0, 0.0, 0.0)) for _ in range(count))
        for name, count in grown.points.items()
    }
    return PageSeries(seconds, points)


def cached(known: OrderedDict[Any, _T], key: Any, read: Callable[[], _T], most: int = _CACHED) -> _T:
    """Return a cached value, read on first access; the `most` recently used values are kept."""
    if key in known:
        known.move_to_end(key)
        return known[key]
    known[key] = read()
    if len(known) > most:
        known.popitem(last=False)
    return known[key]
