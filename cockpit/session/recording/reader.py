"""Reads a recording, whether it was closed, cut short, damaged, or is still being written."""

from __future__ import annotations

import sqlite3
import time
import zlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from cockpit.model.errors import RecordingError
from cockpit.model.events import AnyEvent, HostSample, Note, SessionStarted
from cockpit.model.fold import fold
from cockpit.model.host_state import HostPoint, MemoryUse
from cockpit.model.series import Series
from cockpit.model.state import LoadSecond, State
from cockpit.model.text import clock
from cockpit.session.recording.binding import Grown, latencies
from cockpit.session.recording.checkpoints import Restorer
from cockpit.session.recording.columns import column_for
from cockpit.session.recording.opening import checked, in_use, opened, words
from cockpit.session.recording.packing import Damaged
from cockpit.session.recording.pages import unpack
from cockpit.session.recording.schema import from_body
from cockpit.session.recording.sink import Spring

# Rows that are not packed are read so many at a time.
_ROWS = 64
# Stretches and parts of series that are kept at hand.
_AT_HAND = 16
_SERIES_AT_HAND = 256

_T = TypeVar("_T")
# What came with a page: seconds, and points by host.
Told = tuple[tuple[LoadSecond, ...], dict[str, tuple[HostPoint, ...]]]


# No session lasts so long (s).
_LAST = 1e8


class _Place(NamedTuple):
    """A row of the table of pages."""

    first: int
    last: int
    begin: float
    end: float


class Known(NamedTuple):
    """An event, its number in the order of arrival, and the instant at which it was known: never falling, although
    events may arrive late."""

    number: int
    event: AnyEvent
    instant: float


class Stretch(NamedTuple):
    """Events `first` to `last`. All before them were known at `begin`, all of them at `end`. `page`: packed."""

    first: int
    last: int
    begin: float
    end: float
    page: bool


class Anchor(NamedTuple):
    """A state, and the number and instant of the event after which it is."""

    state: State
    number: int
    instant: float


BEGINNING = Anchor(State(), 0, -1.0)


class Recording:
    """A recording opened for reading; nothing of it is held in memory but its index. Events are numbered from 1.

    `damage` says what was found damaged so far, and so is left out; it is empty for a file that is whole.
    Raises RecordingError, one line, for a file that is not a recording or does not read at all.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lost: dict[str, None] = {}
        self._at_hand: OrderedDict[Stretch, list[Known]] = OrderedDict()
        self._series: OrderedDict[int, Told] = OrderedDict()
        self._sampled: OrderedDict[Stretch, dict[int, Any]] = OrderedDict()
        self._pages: list[Stretch] = []
        self._grown: list[Grown] = []
        self._between: list[Stretch] = []
        self._stretches: list[Stretch] = []
        self._cut = False
        self._pending: tuple[Stretch, list[Known]] | None = None
        self.notes: list[Note] = []
        self._restorer = Restorer(self._part)
        alone = not in_use(path)
        self._database = opened(path)
        try:
            self._version = checked(path, self._database)
            self._cut = alone and self._version > 1 and not self.ended
            self.refresh()
            if not self._stretches:
                raise RecordingError(
                    f"{path}: holds no events; {self.damage or 'the session ended before any was kept'}"
                )
        except RecordingError:
            self._database.close()
            raise

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    @property
    def damage(self) -> str:
        return "; ".join(self._lost)

    @property
    def end(self) -> float:
        """The last instant, session seconds."""
        return self._stretches[-1].end

    @property
    def started(self) -> SessionStarted:
        first = next(iter(self.events()), None)
        if not isinstance(first, SessionStarted):
            raise RecordingError(
                f"{self.path}: does not begin with the start of a session: {self.damage or 'no event'}"
            )
        return first

    @property
    def ended(self) -> bool:
        """Whether the session was closed; nothing comes any more then."""
        return bool(self._rows("SELECT 1 FROM events WHERE kind = 'session_ended' LIMIT 1"))

    def refresh(self) -> bool:
        """Takes in what was written since; whether there was anything."""
        before = self._stretches[-1] if self._stretches else None
        with _reading(self._database):
            self._read_pages()
            loose = self._read_loose()
        self._stretches = sorted([*self._pages, *loose])
        if self._cut and self._stretches:
            self._read_pending(self._stretches[-1])
        self.notes = self._read_notes()
        return before != (self._stretches[-1] if self._stretches else None)

    def events(self) -> Iterator[AnyEvent]:
        """All events in the order of arrival; notes that were made afterwards stand at their instant."""
        notes = sorted(self.notes, key=lambda note: note.t, reverse=True)
        for known in self._from(0):
            while notes and notes[-1].t < known.instant:
                yield notes.pop()
            yield known.event
        yield from reversed(notes)

    def following(self, number: int, since: float, until: float) -> list[Known]:
        """Events after that number that were known at `until`, with the notes made afterwards for instants since
        `since`."""
        found = []
        for known in self._from(number):
            if known.instant > until:
                break
            found.append(known)
        notes = [Known(number, note, note.t) for note in self.notes if since < note.t <= until]
        # A note stands after what was known at its instant.
        return sorted((*found, *notes), key=lambda known: known.instant) if notes else found

    def anchor(self, t: float) -> Anchor:
        """The latest state that is kept of an instant not after `t`, notes included."""
        place = bisect_right(self._pages, t, key=lambda page: page.end) - 1
        while place >= 0:
            page = self._pages[place]
            try:
                state = self._state(place)
            except Damaged as error:
                self._lose(page, error)
                state = None
            if state is not None:
                for note in self.notes:
                    state = fold(state, note) if note.t <= page.end else state
                return Anchor(state, page.last, page.end)
            place -= 1
        return BEGINNING

    def kept_near(self, number: int, within: int) -> bool:
        """Whether the file keeps a state at most so many events before that one."""
        place = bisect_right(self._pages, number, key=lambda page: page.last) - 1
        return place >= 0 and number - self._pages[place].last < within

    def times_of(self, kinds: Sequence[str]) -> list[float]:
        """Instants at which events of these kinds stand, ascending; of kinds that do not come often."""
        marks = ",".join("?" * len(kinds))
        times = [row[0] for row in self._rows(f"SELECT t FROM events WHERE kind IN ({marks})", kinds)]
        return sorted([*times, *(note.t for note in self.notes)] if "note" in kinds else times)

    def annotate(self, t: float, text: str) -> Note:
        """Adds a note of an instant to the file. Raises RecordingError where it cannot be written."""
        note = Note(t=t, text=text)
        try:
            writing = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=rw", uri=True, timeout=5)
            try:
                with writing:
                    writing.execute("CREATE TABLE IF NOT EXISTS notes (t REAL NOT NULL, text TEXT NOT NULL, wall REAL)")
                    writing.execute("INSERT INTO notes VALUES (?, ?, ?)", (note.t, note.text, time.time()))
            finally:
                writing.close()
        except sqlite3.Error as error:
            raise RecordingError(f"{self.path}: the note is not kept: {error}") from None
        self.notes = self._read_notes()
        return note

    def _from(self, number: int) -> Iterator[Known]:
        """Events after that number."""
        place = bisect_right(self._stretches, number, key=lambda stretch: stretch.last)
        for stretch in self._stretches[place:]:
            yield from (known for known in self._read(stretch) if known.number > number)

    def _read(self, stretch: Stretch) -> list[Known]:
        if self._pending is not None and stretch == self._pending[0]:
            return self._pending[1]
        if stretch in self._at_hand:
            self._at_hand.move_to_end(stretch)
            return self._at_hand[stretch]
        numbered = self._read_rows(stretch)
        if stretch.page:
            try:
                [(blob,)] = self._rows("SELECT events FROM pages WHERE first = ?", (stretch.first,))
                often = unpack(blob, lambda: latencies(self._series_at(self._pages.index(stretch))[0]))
                numbered = sorted([*numbered, *often], key=lambda one: one[0])
            except (Damaged, ValueError) as error:
                self._lose(stretch, error)
        found, latest = [], stretch.begin
        for number, event in numbered:
            latest = max(latest, event.t)
            found.append(Known(number, event, latest))
        _keep(self._at_hand, stretch, found, _AT_HAND)
        return found

    def _read_rows(self, stretch: Stretch) -> list[tuple[int, AnyEvent]]:
        rows = self._rows(
            "SELECT seq, body FROM events WHERE seq BETWEEN ? AND ? ORDER BY seq", (stretch.first, stretch.last)
        )
        found = []
        for number, body in rows:
            try:
                found.append((number, from_body(body)))
            except (zlib.error, UnicodeError, msgspec.MsgspecError, ValueError, TypeError) as error:
                self._lost[f"event {number} is damaged and left out: {error}"] = None
        return found

    def _lose(self, stretch: Stretch, error: Exception) -> None:
        begin, end = clock(max(0.0, stretch.begin)), clock(stretch.end)
        self._lost[f"what came often from {begin} to {end} is damaged and left out: {error}"] = None

    def _rows(self, question: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """As many rows as read: of a damaged file, those before the damage."""
        found: list[tuple[Any, ...]] = []
        try:
            for row in self._database.execute(question, tuple(values)):
                found.append(row)
        except (sqlite3.Error, UnicodeError, OverflowError) as error:
            self._lost[f"the file is damaged, part of it does not read: {words(error)}"] = None
        return found

    def _read_pages(self) -> None:
        if self._version == 1:
            return
        since = self._pages[-1].last if self._pages else 0
        question = "SELECT first, last, begin, end, grown FROM pages WHERE first > ? ORDER BY first"
        for row in self._rows(question, (since,)):
            try:
                page, grown = msgspec.convert(row[:4], _Place), msgspec.json.decode(row[4], type=Grown)
            except (msgspec.MsgspecError, TypeError) as error:
                self._lost[f"a page is damaged and left out: {error}"] = None
                continue
            before = self._pages[-1] if self._pages else Stretch(0, 0, 0.0, 0.0, True)
            if page.first <= before.last or page.last < page.first or not before.end <= page.begin <= page.end < _LAST:
                self._lost["a page that does not fit the one before is left out"] = None
                continue
            self._pages.append(Stretch(*page, True))
            self._grown.append(grown)

    def _read_loose(self) -> list[Stretch]:
        """Stretches of rows that no page covers: those after the last, and what was too much for one."""
        found = []
        ends = [(0, 0.0), *((page.last, page.end) for page in self._pages)]
        firsts = [*(page.first for page in self._pages), None]
        for (last, latest), first in zip(ends, firsts, strict=True):
            if first == last + 1:
                continue
            until = "" if first is None else f"AND seq < {first}"
            rows = [
                (number, t)
                for number, t in self._rows(f"SELECT seq, t FROM events WHERE seq > ? {until} ORDER BY seq", (last,))
                if isinstance(number, int) and isinstance(t, float | int) and 0 <= t < _LAST
            ]
            for at in range(0, len(rows), _ROWS):
                some = rows[at : at + _ROWS]
                end = max(latest, *(t for _, t in some))
                found.append(Stretch(some[0][0], some[-1][0], latest, end, False))
                latest = end
        return found

    def _read_pending(self, before: Stretch) -> None:
        """What was held back when the session was cut short, behind all that came."""
        found: list[Known] = []
        latest = before.end
        for after, body in self._rows("SELECT after, body FROM pending"):
            # Of what was written before the last rows were, they have the rest.
            if after != before.last or not isinstance(body, str | bytes):
                continue
            try:
                event = from_body(body)
            except (zlib.error, UnicodeError, msgspec.MsgspecError, ValueError):
                self._lost["the last second is damaged and left out"] = None
                continue
            latest = max(latest, event.t)
            found.append(Known(before.last + len(found) + 1, event, latest))
        if found:
            self._pending = (Stretch(before.last + 1, found[-1].number, before.end, latest, False), found)
            self._stretches.append(self._pending[0])

    def _read_notes(self) -> list[Note]:
        if not self._rows("SELECT 1 FROM sqlite_master WHERE name = 'notes'"):
            return []
        told = self._rows("SELECT t, text FROM notes ORDER BY t")
        return [Note(t=t, text=text) for t, text in told if isinstance(t, float | int) and isinstance(text, str)]

    def _state(self, place: int) -> State | None:
        """The state after a page, its series fetched when somebody looks. Raises Damaged."""
        rows = self._rows("SELECT state FROM pages WHERE first = ?", (self._pages[place].first,))
        if not rows or rows[0][0] is None:
            return None
        state = self._restorer.restore(rows[0][0], self._sample)
        hosts = {}
        for name, host in state.hosts.items():
            chunks = [
                Fetched(self, at, grown.points[name], name) for at, grown in self._upto(place) if name in grown.points
            ]
            hosts[name] = replace(host, points=Series(tuple(chunks), ()))
        seconds = [Fetched(self, at, grown.seconds) for at, grown in self._upto(place) if grown.seconds]
        return replace(state, hosts=hosts, seconds=Series(tuple(seconds), tuple(state.seconds)))

    def _upto(self, place: int) -> Iterable[tuple[int, Grown]]:
        return enumerate(self._grown[: place + 1])

    def _sample(self, number: int) -> HostSample | None:
        place = bisect_right(self._stretches, number - 1, key=lambda stretch: stretch.last)
        found = self._samples(self._stretches[place]).get(number)
        if found is None:
            raise Damaged(f"event {number} is missing")
        return found

    def _samples(self, stretch: Stretch) -> dict[int, HostSample]:
        """The samples of a stretch by their numbers. Raises Damaged."""
        if stretch in self._at_hand or not stretch.page:
            return {one.number: one.event for one in self._read(stretch) if isinstance(one.event, HostSample)}
        if stretch not in self._sampled:
            [(blob,)] = self._rows("SELECT events FROM pages WHERE first = ?", (stretch.first,))
            samples = dict(unpack(blob, dict, "host_sample"))
            _keep(self._sampled, stretch, samples, _AT_HAND)
        return self._sampled[stretch]

    def _part(self, number: int) -> bytes:
        rows = self._rows("SELECT body FROM parts WHERE id = ?", (number,))
        if not rows:
            raise Damaged(f"part {number} is missing")
        blob: bytes = rows[0][0]
        return blob

    def series_of(self, place: int) -> Told:
        """What seconds and points came with a page; where they are damaged, as many of which nothing is known."""
        try:
            return self._series_at(place)
        except Damaged as error:
            page, grown = self._pages[place], self._grown[place]
            self._lose(page, error)
            return _unknown(page, grown)

    def _series_at(self, place: int) -> Told:
        """As `series_of`; raises Damaged."""
        if place in self._series:
            self._series.move_to_end(place)
            return self._series[place]
        page, grown = self._pages[place], self._grown[place]
        try:
            [(blob,)] = self._rows("SELECT series FROM pages WHERE first = ?", (page.first,))
            spring = Spring.of(blob)
            seconds = tuple(column_for(LoadSecond).read(grown.seconds, spring))
            points = {name: tuple(column_for(HostPoint).read(count, spring)) for name, count in grown.points.items()}
        except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
            raise Damaged(str(error)) from None
        _keep(self._series, place, (seconds, points), _SERIES_AT_HAND)
        return seconds, points


class Fetched:
    """A chunk of a series that is read from its page when somebody looks: of `host`'s points, or of the seconds."""

    __slots__ = ("_count", "_host", "_place", "_recording")

    def __init__(self, recording: Recording, place: int, count: int, host: str | None = None) -> None:
        self._recording = recording
        self._place = place
        self._count = count
        self._host = host

    def __len__(self) -> int:
        return self._count

    def items(self) -> tuple[Any, ...]:
        seconds, points = self._recording.series_of(self._place)
        return seconds if self._host is None else points[self._host]


class _reading:
    """One view of the file for several questions, while another process writes."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("BEGIN")

    def __exit__(self, *error: object) -> None:
        self._database.rollback()


def _unknown(page: Stretch, grown: Grown) -> Told:
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


def _keep(at_hand: OrderedDict[Any, _T], key: Any, value: _T, most: int) -> None:
    at_hand[key] = value
    if len(at_hand) > most:
        at_hand.popitem(last=False)
