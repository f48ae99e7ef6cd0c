"""The index of a recording: ranges of events, and the numbers of new seconds and points per page."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from cockpit.model.errors import RecordingError
from cockpit.model.text import clock
from cockpit.recording.database import error_line
from cockpit.recording.packing import Damaged, checksum, reading
from cockpit.recording.pages import FREQUENT_KINDS, PageGrowth
from cockpit.recording.schema import EVENTS, is_intact
from cockpit.recording.validity import LONGEST, MAX_EVENTS, MAX_LANDMARKS

# Number of unpacked rows per range.
_ROWS_PER_RANGE = 64
# Maximum duration of a session (s).
_LAST = LONGEST
# Maximum samples per second of a host, and maximum seconds or points per page.
_POINTS_PER_SECOND = 100
_ITEMS_PER_PAGE = 200_000
# Maximum lag (s) of the end of a page behind its seconds.
_CLOCK_SLACK = 60.0


class _PageRow(NamedTuple):
    """Columns of the table `pages`."""

    first: int
    last: int
    begin: float
    end: float
    rows: int


class EventRange(NamedTuple):
    """Events `first` to `last`. All earlier events were known at `begin`, all events of the range at `end`. `page`: the
    frequent events are packed; the number of the others is `rows`."""

    first: int
    last: int
    begin: float
    end: float
    page: bool
    rows: int = 0


class Index:
    """The ranges of a recording in order; `grown` are the numbers of new seconds and points per page."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        # Number of seconds (""), and of points by host, so far; the second part of the key is the maximum per second.
        self._counted: dict[tuple[str, int], int] = {}
        # Last events before a skipped damaged page.
        self._skipped_after: set[int] = set()
        self.pages: list[EventRange] = []
        self.grown: list[PageGrowth] = []
        self.ranges: list[EventRange] = []

    def refresh(self) -> None:
        """Read the ranges that were written since the last call."""
        self._read_pages()
        self.ranges = sorted([*self.pages, *self._read_unpacked()])

    def _read_pages(self) -> None:
        since = self.pages[-1].last if self.pages else 0
        question = "SELECT first, last, begin, end, rows, grown, crc FROM pages WHERE first > ? ORDER BY first"
        problem = ""
        for *values, crc in self._rows.select_rows(question, (since,)):
            before = self.pages[-1] if self.pages else EventRange(0, 0, 0.0, 0.0, True)
            try:
                page, grown = self._read_page(values, crc, before)
            except Damaged as error:
                problem = problem or str(error)
                self._skipped_after.add(before.last)
                continue
            if problem:
                self._rows.report_page(before.end, page.begin, problem)
                problem = ""
            self.pages.append(EventRange(page.first, page.last, page.begin, page.end, True, page.rows))
            self.grown.append(grown)
        if problem:
            end = self.pages[-1].end if self.pages else 0.0
            self._rows.report(f"ticks and samples after {clock(end)} are damaged and left out: {problem}")

    def _read_page(self, values: Sequence[Any], crc: object, before: EventRange) -> tuple[_PageRow, PageGrowth]:
        """Return the columns of a row of `pages`. Raises Damaged."""
        if checksum(values) != crc:
            raise Damaged("wrong checksum")
        with reading("a page"):
            *place, text = values
            page, grown = msgspec.convert(place, _PageRow), msgspec.json.decode(text, type=PageGrowth)
        if page.first <= before.last or page.last < page.first or not before.end <= page.begin <= page.end < _LAST:
            raise Damaged("a page is out of order")
        if not self._is_plausible(page, grown):
            raise Damaged("a page has more seconds or points than fit into its time range")
        return page, grown

    def _is_plausible(self, page: _PageRow, grown: PageGrowth) -> bool:
        """Return whether the numbers of seconds and points are possible for one page, and for the session so far."""
        self._counted["", 1] = self._counted.get(("", 1), 0) + grown.seconds
        for name, count in grown.points.items():
            self._counted[name, _POINTS_PER_SECOND] = self._counted.get((name, _POINTS_PER_SECOND), 0) + count
        each = (grown.seconds, *grown.points.values())
        most = all(0 <= count <= _ITEMS_PER_PAGE for count in each)
        return most and all(count <= (page.end + _CLOCK_SLACK) * rate for (_, rate), count in self._counted.items())

    def _read_unpacked(self) -> list[EventRange]:
        """Return the ranges of rows that are in no page: after the last page, or too many to be packed."""
        ranges = []
        limits = [(0, 0.0), *((page.last, page.end) for page in self.pages)]
        nexts = [*((page.first, page.begin) for page in self.pages), None]
        for (last, latest), after in zip(limits, nexts, strict=True):
            if after and after[0] == last + 1:
                continue
            until = f"AND seq < {after[0]}" if after else ""
            rows = self._rows.select_rows(
                f"SELECT seq, t, kind FROM events WHERE seq > ? {until} ORDER BY seq", (last,)
            )
            if last not in self._skipped_after:
                self._report_missing(last, latest, [*rows, (*after, "")] if after else rows)
            for at in range(0, len(rows), _ROWS_PER_RANGE):
                some = rows[at : at + _ROWS_PER_RANGE]
                end = max(latest, self._latest(some, latest))
                ranges.append(EventRange(some[0][0], some[-1][0], latest, end, False))
                latest = end
        return ranges

    def _report_missing(self, last: int, latest: float, rows: Sequence[tuple[Any, ...]]) -> None:
        """Report events that are in neither a page nor a row, e.g. because a page of the database is lost. `rows`
        (number, time, kind) follow the event `last`. A range that the recorder dropped starts with a note, and is not
        reported."""
        before = ""
        for number, t, kind in rows:
            now = max(latest, t) if isinstance(t, float) and t < _LAST else latest
            if number > last + 1 and before != "note":
                self._rows.report_missing(number - last - 1, latest, now)
            last, latest, before = number, now, kind

    def _latest(self, rows: Sequence[tuple[Any, ...]], since: float) -> float:
        """Return the latest time of the intact `rows` (number, time, kind), at least `since`."""
        later = [(t, number) for number, t, _ in rows if isinstance(t, float) and since < t < _LAST]
        for t, number in sorted(later, reverse=True):
            if any(is_intact(row) for row in self._rows.select_rows(f"{EVENTS} WHERE seq = ?", (number,))):
                return t
        return since


# Maximum number of rows of a query: pages of a damaged file may form a cycle.
_ROWS_LIMIT = 2_000_000


class Rows:
    """Queries on the file. Collects the damage found so far."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._damage: dict[str, None] = {}
        # Numbers of damaged events by the times of their neighbours, and the reason.
        self._events: dict[tuple[float, float, str], set[int]] = {}

    @property
    def damage(self) -> tuple[str, ...]:
        return (*self._damage, *(_damaged_events(len(problem), *place) for place, problem in self._events.items()))

    def report(self, what: str) -> None:
        self._damage[what] = None

    def report_page(self, begin: float, end: float, error: object) -> None:
        """Report a damaged page, once."""
        self.report(f"ticks and samples from {_span(begin, end)} are damaged and left out: {error}")

    def report_missing(self, count: int, begin: float, end: float) -> None:
        """Report missing events."""
        self.report(f"{'1 event is' if count == 1 else f'{count} events are'} missing from {_span(begin, end)}")

    def report_event(self, number: int, begin: float, end: float, error: object) -> None:
        """Report a damaged event between two times, once."""
        self._events.setdefault((begin, end, str(error)), set()).add(number)

    def select_rows(self, question: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query; of a damaged file, the rows before the damage, which is reported."""
        rows: list[tuple[Any, ...]] = []
        try:
            for row in islice(self._database.execute(question, tuple(values)), _ROWS_LIMIT):
                rows.append(row)
        except (sqlite3.Error, UnicodeError, OverflowError, MemoryError) as error:
            self.report(f"the file is damaged and partly unreadable: {error_line(error)}")
        return rows

    def check_counts(self) -> None:
        """Raise RecordingError if the file has more events of a kind than a session can have."""
        frequent = ",".join("?" * len(FREQUENT_KINDS))
        query = f"SELECT kind, count(*) FROM events WHERE kind NOT IN ({frequent}) GROUP BY kind"
        counts = [*self.select_rows(query, FREQUENT_KINDS), *self.select_rows("SELECT 'note', count(*) FROM notes")]
        for kind, count in counts:
            most = MAX_EVENTS.get(kind, MAX_LANDMARKS)
            if count > most:
                raise RecordingError(
                    f"has {count} events {error_line(kind)!r}, more than {most}; see: cockpit help recording-format"
                )

    @contextmanager
    def consistent_read(self) -> Iterator[None]:
        """A consistent snapshot of the file for several queries, while another process writes."""
        self._database.execute("BEGIN")
        try:
            yield
        finally:
            self._database.rollback()

    def close(self) -> None:
        self._database.close()


def _span(begin: float, end: float) -> str:
    return f"{clock(max(0.0, begin))} to {clock(end)}"


def _damaged_events(count: int, begin: float, end: float, error: str) -> str:
    events = "1 event from {} is" if count == 1 else f"{count} events from {{}} are"
    return f"{events.format(_span(begin, end))} damaged and left out: {error}"
