"""Read a recording: closed, truncated, damaged, or still being written."""

from __future__ import annotations

import math
import sqlite3
import time
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, get_args

from msgspec.structs import replace

from cockpit.model.errors import RecordingError
from cockpit.model.events import AnyEvent, Note, SessionStarted
from cockpit.model.fold.fold import fold, fold_all
from cockpit.model.state import State, StudyState
from cockpit.model.study import StudyEvent
from cockpit.recording.checkpoints import Restorer
from cockpit.recording.compaction import Numbered
from cockpit.recording.database import check, error_line, has_journal, opened
from cockpit.recording.index import EventRange, Index, Rows
from cockpit.recording.packing import Damaged
from cockpit.recording.page_reader import PageReader, cached
from cockpit.recording.pages import FREQUENT_KINDS
from cockpit.recording.schema import EVENTS, from_row, is_intact, note_row
from cockpit.recording.validity import is_valid

# Number of cached ranges of events.
_CACHED = 16
_STUDY_KINDS = tuple(str(kind.__struct_config__.tag) for kind in get_args(StudyEvent))


class TimedEvent(NamedTuple):
    """An event, its number in order of arrival, and the time at which it was known (`instant`, session s): the latest
    time so far, because events may arrive late."""

    number: int
    event: AnyEvent
    instant: float


class ReplayStart(NamedTuple):
    """A state, and the number and time (session s) of its last event."""

    state: State
    number: int
    instant: float


BEGINNING = ReplayStart(State(), 0, -1.0)


class Recording:
    """A recording opened for reading; only its index is in memory. Events are numbered from 1.

    `damage` describes the damaged parts found so far, which are skipped; "": none.
    Raises RecordingError for a file that is not a recording or is unreadable.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._cache: OrderedDict[EventRange, list[TimedEvent]] = OrderedDict()
        # Indexes of pages whose state cannot be read.
        self._stateless: set[int] = set()
        self.notes: list[Note] = []
        self._restorer = Restorer(self._part)
        database = opened(path)
        self._rows = Rows(database)
        try:
            self._rows.check_counts()
            self._index = Index(self._rows)
            self._pages = PageReader(self._rows, self._index)
            self.refresh()
            if not self._index.ranges:
                raise RecordingError(
                    f"has no events; {self.damage or 'the session ended before the first event was written'}"
                )
        except (sqlite3.Error, MemoryError) as error:
            self.close()
            raise RecordingError(f"{path}: cannot be read as a recording: {error_line(error)}") from None
        except RecordingError as error:
            self.close()
            raise RecordingError(error.problem, str(path)) from None
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._rows.close()

    @property
    def lost(self) -> tuple[str, ...]:
        return self._rows.damage

    @property
    def damage(self) -> str:
        return "; ".join(self.lost)

    @property
    def end(self) -> float:
        """The time of the last event (session s)."""
        return self._index.ranges[-1].end

    @property
    def last_packed(self) -> int:
        """The number of the last event in a page; later events are not packed yet."""
        return self._index.pages[-1].last if self._index.pages else 0

    @property
    def started(self) -> SessionStarted:
        first = next(iter(self.events()), None)
        if not isinstance(first, SessionStarted):
            raise RecordingError(
                f"{self.path}: the first event is not the start of a session: {self.damage or 'no event'}"
            )
        return first

    @property
    def ended(self) -> bool:
        """Return whether the session was closed."""
        return bool(self._decode_rows(f"{EVENTS} WHERE kind = 'session_ended' LIMIT 1"))

    def refresh(self) -> bool:
        """Read the events written since the last call; return whether there were any."""
        before = self._index.ranges[-1] if self._index.ranges else None
        with self._rows.consistent_read():
            self._index.refresh()
        self.notes = self._read_notes()
        return before != (self._index.ranges[-1] if self._index.ranges else None)

    def events(self) -> Iterator[AnyEvent]:
        """Yield all events in order of arrival, and notes added later at their time."""
        notes = sorted(self.notes, key=lambda note: note.t, reverse=True)
        for known in self._events_after(0):
            while notes and notes[-1].t < known.instant:
                yield notes.pop()
            yield known.event
        yield from reversed(notes)

    def following(self, number: int, since: float, until: float) -> list[TimedEvent]:
        """Return the events after `number` that were known at `until`, and the notes added later with times after
        `since`, up to `until`."""
        following = []
        for known in self._events_after(number):
            if known.instant > until:
                break
            following.append(known)
        for note in self.notes:
            if since < note.t <= until:
                # A note follows the events of the same time, and has the number of the event before it.
                place = bisect_right(following, note.t, key=lambda known: known.instant)
                before = following[place - 1].number if place else number
                following.insert(place, TimedEvent(before, note, note.t))
        return following

    def infrequent(self, number: int) -> list[AnyEvent]:
        """Return the events after `number`, except frequent ones: ticks, samples, status pages, lines of tails."""
        marks = ",".join("?" * len(FREQUENT_KINDS))
        query = f"{EVENTS} WHERE +seq > ? AND kind NOT IN ({marks}) ORDER BY seq"
        return self._decode_rows(query, (number, *FREQUENT_KINDS))

    def latest_checkpoint(self, t: float) -> ReplayStart:
        """Return the latest checkpoint at or before `t`, with its notes; BEGINNING if there is none."""
        place = bisect_right(self._index.pages, t, key=lambda page: page.end) - 1
        while place >= 0:
            page = self._index.pages[place]
            try:
                state = None if place in self._stateless else self._state(place)
            except Damaged as error:
                self._rows.report_page(page.begin, page.end, error)
                self._stateless.add(place)
                state = None
            if state is not None:
                for note in self.notes:
                    state = fold(state, note) if note.t <= page.end else state
                return ReplayStart(state, page.last, page.end)
            place -= 1
        return BEGINNING

    def has_checkpoint_near(self, number: int, within: int) -> bool:
        """Return whether there is a checkpoint less than `within` events before event `number`."""
        place = bisect_right(self._index.pages, number, key=lambda page: page.last) - 1
        return place >= 0 and number - self._index.pages[place].last < within

    def times_of(self, kinds: Sequence[str]) -> list[float]:
        """Return the times of all events of these kinds, ascending. Only for infrequent kinds."""
        marks = ",".join("?" * len(kinds))
        times = [event.t for event in self._decode_rows(f"{EVENTS} WHERE kind IN ({marks})", kinds)]
        return sorted([*times, *(note.t for note in self.notes)] if "note" in kinds else times)

    def annotate(self, t: float, text: str) -> Note:
        """Add a note to the file. Raises RecordingError if it cannot be written."""
        note = Note(t=t, text=text)
        if has_journal(self.path):
            raise RecordingError(
                f"{self.path}: the note is not saved: the file has a rollback journal; remove {self.path.name}-journal"
            )
        try:
            connection = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=rw", uri=True, timeout=5)
            try:
                connection.execute("PRAGMA trusted_schema = OFF")
                check(self.path, connection)
                with connection:
                    connection.execute("INSERT INTO notes VALUES (?, ?, ?, ?)", note_row(note, time.time()))
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise RecordingError(f"{self.path}: the note is not saved: {error}") from None
        self.notes = self._read_notes()
        return note

    def _events_after(self, number: int) -> Iterator[TimedEvent]:
        for part in self._ranges_from(number + 1):
            yield from (known for known in self._range(part) if known.number > number)

    def _ranges_from(self, number: int) -> Sequence[EventRange]:
        return self._index.ranges[bisect_left(self._index.ranges, number, key=lambda part: part.last) :]

    def _range(self, part: EventRange) -> list[TimedEvent]:
        return cached(self._cache, part, lambda: self._decode_range(part), _CACHED)

    def _decode_range(self, part: EventRange) -> list[TimedEvent]:
        numbered, damaged = self._read_rows(part)
        if part.page:
            try:
                numbered += self._pages.events(self._index.pages.index(part))
            except Damaged as error:
                self._rows.report_page(part.begin, part.end, error)
        decoded, latest = [], part.begin
        for number, event in sorted(numbered, key=lambda pair: pair[0]):
            latest = max(latest, event.t)
            decoded.append(TimedEvent(number, event, latest))
        for number, reason in damaged:
            place = bisect_right(decoded, number, key=lambda known: known.number)
            begin = decoded[place - 1].instant if place else part.begin
            end = decoded[place].instant if place < len(decoded) else part.end
            self._rows.report_event(number, begin, end, reason)
        return decoded

    def _read_rows(self, part: EventRange) -> tuple[list[Numbered], list[tuple[int, Damaged]]]:
        """Return the events of a range that are rows, and the numbers of damaged events with the reason."""
        rows = self._rows.select_rows(f"{EVENTS} WHERE seq BETWEEN ? AND ? ORDER BY seq", (part.first, part.last))
        if len(rows) < part.rows:
            # A damaged number breaks the search by number, but not a scan of the whole table.
            rows += self._rows.select_rows(EVENTS)
        within = {row[0]: row for row in rows if part.first <= row[0] <= part.last}
        if len(within) < part.rows:
            self._rows.report_missing(part.rows - len(within), part.begin, part.end)
        decoded, damaged = [], []
        for row in within.values():
            try:
                decoded.append((row[0], from_row(row)))
            except Damaged as error:
                damaged.append((row[0], error))
        return decoded, damaged

    def _decode_rows(self, query: str, values: Sequence[Any] = ()) -> list[AnyEvent]:
        """Return the events of a query. `+seq` in it prevents a search by number, which damaged numbers would break."""
        decoded = []
        for row in self._rows.select_rows(query, values):
            try:
                decoded.append(from_row(row))
            except Damaged:
                # Reading the range reports the damage, with its time.
                for part in self._ranges_from(row[0])[:1]:
                    self._range(part)
        return decoded

    def _read_notes(self) -> list[Note]:
        notes = []
        for t, text, wall, crc in self._rows.select_rows("SELECT t, text, wall, crc FROM notes ORDER BY t"):
            if not is_intact((t, text, wall, crc)):
                self._rows.report("a note is damaged and left out: wrong checksum")
                continue
            notes.append(Note(t=t, text=text))
        return [note for note in notes if is_valid(note)]

    def _state(self, place: int) -> State:
        """Return the state at the end of a page; its series are read on first access. Raises Damaged."""
        blob = self._pages.column(place, "state")
        state = self._restorer.restore(blob, lambda segment: self._pages.totals(place, segment))
        hosts = {name: replace(host, points=self._pages.points(name, place)) for name, host in state.hosts.items()}
        seconds = self._pages.seconds(place)
        return replace(state, hosts=hosts, closed_seconds=seconds, study=self._study(self._index.pages[place].last))

    def _study(self, last: int) -> StudyState | None:
        """Return the progress of the study up to event `last`. Its events are rows, not packed in pages."""
        marks = ",".join("?" * len(_STUDY_KINDS))
        return fold_all(
            self._decode_rows(f"{EVENTS} WHERE +seq <= ? AND kind IN ({marks}) ORDER BY seq", (last, *_STUDY_KINDS))
        ).study

    def _part(self, number: int) -> bytes:
        rows = self._rows.select_rows("SELECT body FROM parts WHERE id = ?", (number,))
        if not rows:
            raise Damaged(f"part {number} is missing")
        blob: bytes = rows[0][0]
        return blob


def last_state(recording: Recording) -> State:
    """Return the last state. Its series are read from the file on first access."""
    anchor = recording.latest_checkpoint(math.inf)
    known = recording.following(anchor.number, anchor.instant, math.inf)
    return fold_all((recorded.event for recorded in known), anchor.state)
