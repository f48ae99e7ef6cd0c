"""Writes events as they happen, in a thread of its own, so that a slow disk never delays the session.

Every event is first a row, committed within COMMIT_EVERY. What is older is packed into pages (see pages).
"""

from __future__ import annotations

import os
import queue
import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from cockpit.model.errors import RecordingError
from cockpit.model.events import AnyEvent
from cockpit.model.state import State
from cockpit.model.text import clock
from cockpit.session.recording.binding import Binder
from cockpit.session.recording.pages import Numbered
from cockpit.session.recording.schema import TABLES, Row, to_row
from cockpit.session.recording.standing import GONE, Standing

# A crash loses at most what came in since the last commit.
COMMIT_EVERY = 0.3
# While the disk refuses, this many rows wait in memory; what comes after is counted as lost.
BACKLOG = 50_000
# A page is bound when it has so many seconds or so many events.
PAGE_SECONDS = 25.0
PAGE_EVENTS = 5000
# A disk that takes so long (s) for a commit does not answer; at the end so long is waited for it.
STALLED = 5.0
PATIENCE = 60.0


class RecordingWriter:
    """A Recorder into a new file at `path`, mode 0600. Raises RecordingError at once when that cannot be made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbered = 0
        self._settled: tuple[int, State] | None = None
        self._page_from = (0, 0.0)
        self._pending: tuple[int, Sequence[AnyEvent]] = (0, ())
        self._held_back: Sequence[AnyEvent] = ()
        self._written = 0
        self._queue: queue.SimpleQueue[list[Numbered] | tuple[int, State] | None] = queue.SimpleQueue()
        self._database = _create(path)
        self._standing = Standing(path)
        # When the disk was asked for what it has not done yet.
        self._asked: float | None = None
        self._binder = Binder(self._database)
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    @property
    def path(self) -> str:
        return str(self._path)

    @property
    def trouble(self) -> str:
        asked, standing = self._asked, self._standing
        if asked is not None and time.monotonic() - asked >= STALLED:
            held = clock(standing.held)
            return f"{self._path.name}: the disk does not answer; the file holds the session up to {held}"
        return standing.words

    def record(self, events: Sequence[AnyEvent]) -> None:
        first = self._numbered + 1
        self._numbered += len(events)
        self._queue.put(list(enumerate(events, first)))

    def settle(self, state: State, pending: Sequence[AnyEvent] = ()) -> None:
        self._settled = (self._numbered, state)
        # One assignment: the recorder's thread takes whichever is the newest.
        self._pending = (self._numbered, pending)
        number, instant = self._page_from
        if state.t - instant >= PAGE_SECONDS or self._numbered - number >= PAGE_EVENTS:
            self._page_from = (self._numbered, state.t)
            self._queue.put(self._settled)

    def close(self) -> None:
        """Writes what is left and makes it one file again, without a -wal beside it."""
        if self._thread.is_alive():
            if self._settled is not None and self._settled[0] == self._numbered > self._page_from[0]:
                self._queue.put(self._settled)
            self._queue.put(None)
            # A file system that hangs must not take the session with it.
            self._thread.join(PATIENCE)

    def _run(self) -> None:
        try:
            self._write_all()
        except Exception as error:
            # A fault of ours ends the recording, never the session; it is said as loudly as a full disk.
            self._standing.problem = f"the recorder failed: {type(error).__name__}: {error}"

    def _write_all(self) -> None:
        waiting: list[Row] = []
        closing = False
        due = time.monotonic() + COMMIT_EVERY
        while not closing:
            page: tuple[int, State] | None = None
            try:
                given = self._queue.get(timeout=max(0.01, due - time.monotonic()))
                closing = given is None
                if isinstance(given, tuple):
                    page = given
                else:
                    waiting.extend(self._rows(given or ()))
            except queue.Empty:
                pass
            if closing or page or time.monotonic() >= due:
                self._asked = time.monotonic()
                waiting = self._commit(waiting)
                due = time.monotonic() + COMMIT_EVERY
                if page and not waiting:
                    self._bind(*page)
                self._asked = None
        self._asked = time.monotonic()
        self._finish()
        self._asked = None
        self._standing.over = True

    def _rows(self, events: Sequence[Numbered]) -> list[Row]:
        """What cannot be written down (a text that is no Unicode) is counted as lost; the rest goes on."""
        rows = []
        for number, event in events:
            try:
                rows.append(to_row(number, event))
            except (ValueError, TypeError) as error:
                self._standing.lost += 1
                self._standing.problem = f"an event cannot be written down: {error}"
            else:
                self._binder.take(number, event)
        return rows

    def _commit(self, rows: list[Row]) -> list[Row]:
        """Returns the rows that still wait: none, or as many as the backlog holds when the disk refused them."""
        after, pending = self._pending
        written = rows[-1][0] if rows else self._written
        held_back = pending if after == written else ()
        if not rows and held_back is self._held_back:
            return rows
        try:
            with self._database:
                self._database.executemany("INSERT INTO events (seq, t, kind, body) VALUES (?, ?, ?, ?)", rows)
                self._database.execute("DELETE FROM pending")
                told = [(after, to_row(0, event)[-1]) for event in held_back]
                self._database.executemany("INSERT INTO pending VALUES (?, ?)", told)
        except sqlite3.Error as error:
            self._standing.lost += max(0, len(rows) - BACKLOG)
            self._standing.waiting = min(len(rows), BACKLOG)
            self._standing.problem = str(error)
            return rows[:BACKLOG]
        self._standing.held = max([self._standing.held, *(row[1] for row in rows)])
        self._standing.waiting = 0
        self._standing.problem = "" if self._standing.there else GONE
        self._written, self._held_back = written, held_back
        return []

    def _bind(self, last: int, state: State) -> None:
        """Packs what has been written up to `last`; what the disk refuses now is packed with the next page."""
        try:
            self._binder.bind(last, state)
        except sqlite3.Error as error:
            self._standing.problem = str(error)

    def _finish(self) -> None:
        try:
            # As a script: a plain statement would free one page and be taken for done.
            self._database.executescript("PRAGMA incremental_vacuum")
            self._database.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.Error as error:
            # Somebody looks at it meanwhile: whoever is the last to close it makes it one file.
            if "locked" not in str(error):
                self._standing.problem = self._standing.problem or str(error)
        if not self._standing.there:
            self._standing.problem = GONE
        self._database.close()


class Unrecorded:
    """A Recorder for a session that cannot be kept: it goes on, and says why from its beginning."""

    path = ""

    def __init__(self, trouble: str) -> None:
        self.trouble = trouble

    def record(self, events: Sequence[AnyEvent]) -> None:
        """Keeps nothing."""

    def settle(self, state: State, pending: Sequence[AnyEvent] = ()) -> None:
        """Keeps nothing."""

    def close(self) -> None:
        """Nothing is open."""


def _create(path: Path) -> sqlite3.Connection:
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise RecordingError(f"{path}: exists already; name another file for --record") from None
    except OSError as error:
        raise RecordingError(f"{path}: cannot record there: {error.strerror}") from None
    os.close(descriptor)
    try:
        database = sqlite3.connect(path, check_same_thread=False)
        database.executescript(TABLES)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        # The first look at the log takes the lock by which others see that the file is in use.
        database.execute("SELECT count(*) FROM events").fetchone()
    except sqlite3.Error as error:
        raise RecordingError(f"{path}: cannot record there: {error}") from None
    return database
