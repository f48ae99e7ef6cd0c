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
from cockpit.recording.pages import Grown
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


class EventRange(NamedTuple):
    """Events `first` to `last`. All before them were known at `begin`, all of them at `end`. `page`: packed."""

    first: int
    last: int
    begin: float
    end: float
    page: bool


class Index:
    """The ranges of a recording in order; `grown` is the growth of the series per page."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        # Seconds, and points by host, so far; each with how many a second can have.
        self._counted: dict[tuple[str, int], int] = {}
        self.pages: list[EventRange] = []
        self.grown: list[Grown] = []
        self.ranges: list[EventRange] = []

    def refresh(self) -> None:
        """Read what was written since."""
        self._read_pages()
        self.ranges = sorted([*self.pages, *self._read_loose()])

    def _read_pages(self) -> None:
        since = self.pages[-1].last if self.pages else 0
        question = "SELECT first, last, begin, end, grown FROM pages WHERE first > ? ORDER BY first"
        for row in self._rows.ask(question, (since,)):
            try:
                page, grown = msgspec.convert(row[:4], _Place), msgspec.json.decode(row[4], type=Grown)
            except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
                self._rows.report(f"a page is damaged and left out: {words(error)}")
                continue
            before = self.pages[-1] if self.pages else EventRange(0, 0, 0.0, 0.0, True)
            if page.first <= before.last or page.last < page.first or not before.end <= page.begin <= page.end < _LAST:
                self._rows.report("a page that does not fit the one before is left out")
                continue
            if not self._can_have_grown(page, grown):
                self._rows.report("a page with more seconds or points than its time is left out")
                continue
            self.pages.append(EventRange(*page, True))
            self.grown.append(grown)

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
        firsts = [*(page.first for page in self.pages), None]
        for (last, latest), first in zip(ends, firsts, strict=True):
            if first == last + 1:
                continue
            until = "" if first is None else f"AND seq < {first}"
            rows = [
                (number, t)
                for number, t in self._rows.ask(
                    f"SELECT seq, t FROM events WHERE seq > ? {until} ORDER BY seq", (last,)
                )
                if isinstance(number, int) and isinstance(t, float | int) and 0 <= t < _LAST
            ]
            for at in range(0, len(rows), _ROWS):
                some = rows[at : at + _ROWS]
                end = max(latest, *(t for _, t in some))
                found.append(EventRange(some[0][0], some[-1][0], latest, end, False))
                latest = end
        return found


# Rows of one answer; a damaged file may lead in circles.
_MOST_ROWS = 2_000_000


class Rows:
    """Queries of the file; `damage` is the damage found so far."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._damage: dict[str, None] = {}

    @property
    def damage(self) -> tuple[str, ...]:
        return tuple(self._damage)

    def report(self, what: str) -> None:
        self._damage[what] = None

    def report_page(self, begin: float, end: float, error: Exception) -> None:
        """Report a damaged page, once."""
        span = f"{clock(max(0.0, begin))} to {clock(end)}"
        self.report(f"ticks and samples from {span} are damaged and left out: {error}")

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
