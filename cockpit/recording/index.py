"""The index of a recording: ranges of events, and the growth of the series per page."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from cockpit.model.text import clock
from cockpit.recording.database import words
from cockpit.recording.packing import Damaged, checksum, reading
from cockpit.recording.pages import Grown
from cockpit.recording.schema import EVENTS, is_intact
from cockpit.recording.validity import LONGEST

# Unpacked rows per read.
_ROWS = 64
# No session is longer (s).
_LAST = LONGEST
# Samples of a host in a second, and seconds or points of a page, at most.
_POINTS = 100
_MOST = 200_000
# Seconds by which the clock of a page may be behind its seconds.
_SLACK = 60.0


class _Place(NamedTuple):
    """A row of the table of pages."""

    first: int
    last: int
    begin: float
    end: float
    rows: int


class EventRange(NamedTuple):
    """Events `first` to `last`. All before them were known at `begin`, all of them at `end`. `page`: packed, except for
    `rows` events that are not frequent."""

    first: int
    last: int
    begin: float
    end: float
    page: bool
    rows: int = 0


class Index:
    """The ranges of a recording in order; `grown` is the growth of the series per page."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        # Seconds, and points by host, so far; each with how many a second can have.
        self._counted: dict[tuple[str, int], int] = {}
        # Events after which a damaged page was left out.
        self._left_out: set[int] = set()
        self.pages: list[EventRange] = []
        self.grown: list[Grown] = []
        self.ranges: list[EventRange] = []

    def refresh(self) -> None:
        """Read what was written since."""
        self._read_pages()
        self.ranges = sorted([*self.pages, *self._read_loose()])

    def _read_pages(self) -> None:
        since = self.pages[-1].last if self.pages else 0
        question = "SELECT first, last, begin, end, rows, grown, crc FROM pages WHERE first > ? ORDER BY first"
        problem = ""
        for *values, crc in self._rows.ask(question, (since,)):
            before = self.pages[-1] if self.pages else EventRange(0, 0, 0.0, 0.0, True)
            try:
                page, grown = self._read_page(values, crc, before)
            except Damaged as error:
                problem = problem or str(error)
                self._left_out.add(before.last)
                continue
            if problem:
                self._rows.report_page(before.end, page.begin, problem)
                problem = ""
            self.pages.append(EventRange(page.first, page.last, page.begin, page.end, True, page.rows))
            self.grown.append(grown)
        if problem:
            end = self.pages[-1].end if self.pages else 0.0
            self._rows.report(f"ticks and samples after {clock(end)} are damaged and left out: {problem}")

    def _read_page(self, values: Sequence[Any], crc: object, before: EventRange) -> tuple[_Place, Grown]:
        """Return a row of the table of pages. Raises Damaged."""
        if checksum(values) != crc:
            raise Damaged("wrong checksum")
        with reading("a page"):
            *place, text = values
            page, grown = msgspec.convert(place, _Place), msgspec.json.decode(text, type=Grown)
        if page.first <= before.last or page.last < page.first or not before.end <= page.begin <= page.end < _LAST:
            raise Damaged("a page does not fit the one before")
        if not self._can_have_grown(page, grown):
            raise Damaged("a page has more seconds or points than its time")
        return page, grown

    def _can_have_grown(self, page: _Place, grown: Grown) -> bool:
        """Return whether seconds and points are not more than the session's time so far, and one page, can have."""
        self._counted["", 1] = self._counted.get(("", 1), 0) + grown.seconds
        for name, count in grown.points.items():
            self._counted[name, _POINTS] = self._counted.get((name, _POINTS), 0) + count
        each = (grown.seconds, *grown.points.values())
        most = all(0 <= count <= _MOST for count in each)
        return most and all(count <= (page.end + _SLACK) * rate for (_, rate), count in self._counted.items())

    def _read_loose(self) -> list[EventRange]:
        """Ranges of rows that no page covers: those after the last, and what was too much for one."""
        found = []
        ends = [(0, 0.0), *((page.last, page.end) for page in self.pages)]
        nexts = [*((page.first, page.begin) for page in self.pages), None]
        for (last, latest), after in zip(ends, nexts, strict=True):
            if after and after[0] == last + 1:
                continue
            until = f"AND seq < {after[0]}" if after else ""
            rows = self._rows.ask(f"SELECT seq, t, kind FROM events WHERE seq > ? {until} ORDER BY seq", (last,))
            if last not in self._left_out:
                self._report_holes(last, latest, [*rows, (*after, "")] if after else rows)
            for at in range(0, len(rows), _ROWS):
                some = rows[at : at + _ROWS]
                end = max(latest, self._latest(some, latest))
                found.append(EventRange(some[0][0], some[-1][0], latest, end, False))
                latest = end
        return found

    def _report_holes(self, last: int, latest: float, rows: Sequence[tuple[Any, ...]]) -> None:
        """Report events that are in neither a page nor a row, as if a page of the database is lost. `rows` (number,
        instant, kind) follow the event `last`. The recorder notes a range that it dropped at its first event."""
        before = ""
        for number, t, kind in rows:
            now = max(latest, t) if isinstance(t, float) and t < _LAST else latest
            if number > last + 1 and before != "note":
                self._rows.report_missing(number - last - 1, latest, now)
            last, latest, before = number, now, kind

    def _latest(self, rows: Sequence[tuple[Any, ...]], since: float) -> float:
        """Return the latest instant of intact rows (number, instant, kind) that is later than `since`, or `since`."""
        later = [(t, number) for number, t, _ in rows if isinstance(t, float) and since < t < _LAST]
        for t, number in sorted(later, reverse=True):
            if any(is_intact(row) for row in self._rows.ask(f"{EVENTS} WHERE seq = ?", (number,))):
                return t
        return since


# Rows of one answer; a damaged file may lead in circles.
_MOST_ROWS = 2_000_000


class Rows:
    """Queries of the file; `damage` is the damage found so far."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._damage: dict[str, None] = {}
        # Numbers of damaged events by the instants around them, and the reason.
        self._events: dict[tuple[float, float, str], set[int]] = {}

    @property
    def damage(self) -> tuple[str, ...]:
        return (*self._damage, *(_event_words(len(found), *place) for place, found in self._events.items()))

    def report(self, what: str) -> None:
        self._damage[what] = None

    def report_page(self, begin: float, end: float, error: object) -> None:
        """Report a damaged page, once."""
        self.report(f"ticks and samples from {_span(begin, end)} are damaged and left out: {error}")

    def report_missing(self, count: int, begin: float, end: float) -> None:
        """Report events whose numbers are not in the file."""
        self.report(f"{'1 event is' if count == 1 else f'{count} events are'} missing from {_span(begin, end)}")

    def report_event(self, number: int, begin: float, end: float, error: object) -> None:
        """Report a damaged event that was known between two instants, once."""
        self._events.setdefault((begin, end, str(error)), set()).add(number)

    def ask(self, question: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """As many rows as read: of a damaged file, those before the damage."""
        found: list[tuple[Any, ...]] = []
        try:
            for row in islice(self._database.execute(question, tuple(values)), _MOST_ROWS):
                found.append(row)
        except (sqlite3.Error, UnicodeError, OverflowError, MemoryError) as error:
            self.report(f"the file is damaged, a part of it cannot be read: {words(error)}")
        return found

    @contextmanager
    def one_view(self) -> Iterator[None]:
        """One view of the file for several questions, while another process writes."""
        self._database.execute("BEGIN")
        try:
            yield
        finally:
            self._database.rollback()

    def close(self) -> None:
        self._database.close()


def _span(begin: float, end: float) -> str:
    return f"{clock(max(0.0, begin))} to {clock(end)}"


def _event_words(count: int, begin: float, end: float, error: str) -> str:
    events = "1 event from {} is" if count == 1 else f"{count} events from {{}} are"
    return f"{events.format(_span(begin, end))} damaged and left out: {error}"
