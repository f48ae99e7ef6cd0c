"""Write events in a separate thread, so that a slow disk never delays the session.

Every event is first written as a row, within COMMIT_EVERY. Later, rows are packed into pages (see `pages`).
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from cockpit.model.errors import RecordingError
from cockpit.model.events import AnyEvent
from cockpit.model.state import State
from cockpit.model.text import clock
from cockpit.recording.database import error_line, is_locked
from cockpit.recording.page_builder import PageBuilder
from cockpit.recording.schema import TABLES, EventRow, to_row
from cockpit.recording.write_queue import Page, WriteBatch, WriteQueue

# Interval between commits (s): a crash loses at most the events since the last one.
COMMIT_EVERY = 0.3
# Size of a page: duration (s), or weight of its events (see `weight`).
PAGE_SECONDS = 25.0
PAGE_WEIGHT = 40_000
# Duration (s) of a commit after which the disk is reported as not responding; timeout (s) of the last commit.
STALLED = 5.0
TIMEOUT = 60.0


class RecordingExists(RecordingError):
    """The file of a new recording already exists."""


class RecordingWriter:
    """A Recorder to a new file at `path`, mode 0600. Raises RecordingError if the file cannot be created."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last_number = 0
        self._latest_page: Page | None = None
        # At the last page: its last event, its time (session s), and the weight queued so far.
        self._page_start = (0, 0.0, 0)
        self._backlog = WriteQueue()
        self._rows: list[EventRow] = []
        # Weight of the rows.
        self._weight = 0
        self._database = _create(path)
        self._status = RecordingStatus(path)
        # Start time of a write in progress, else None.
        self._write_began: float | None = None
        self._builder = PageBuilder(self._database)
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    @property
    def path(self) -> str:
        return str(self._path)

    @property
    def trouble(self) -> str:
        began, status = self._write_began, self._status
        if began is not None and time.monotonic() - began >= STALLED:
            held = clock(status.held)
            return f"{self._path.name}: the disk does not respond; the session is recorded up to {held}"
        return status.words

    @property
    def backlog(self) -> int:
        """Weight (see `weight`) of the events that are not written yet."""
        return self._backlog.weight

    @property
    def gaps(self) -> tuple[str, ...]:
        return tuple(gap.words for gap in self._backlog.gaps)

    def record(self, events: Sequence[AnyEvent]) -> None:
        first = self._last_number + 1
        self._last_number += len(events)
        self._backlog.offer(list(enumerate(events, first)))

    def settle(self, state: State) -> None:
        self._latest_page = Page(self._last_number, state)
        _, instant, units = self._page_start
        due = state.t - instant >= PAGE_SECONDS or self._backlog.given - units >= PAGE_WEIGHT
        if due and self._backlog.offer_page(self._latest_page):
            self._page_start = (self._last_number, state.t, self._backlog.given)

    def close(self) -> None:
        """Write the remaining events, and merge the -wal into the file."""
        if self._thread.is_alive():
            if self._latest_page is not None and self._latest_page.last == self._last_number > self._page_start[0]:
                self._backlog.offer_page(self._latest_page)
            self._backlog.end()
            # A hanging file system must not block the session forever.
            self._thread.join(TIMEOUT)

    def _run(self) -> None:
        """Write until the backlog ends. An unexpected exception loses the current rows and is reported."""
        due = time.monotonic() + COMMIT_EVERY
        item: WriteBatch | Page | None = WriteBatch([], 0)
        while item is not None:
            item = self._backlog.next_item(due)
            try:
                if isinstance(item, WriteBatch):
                    self._write_batch(item)
                if not isinstance(item, WriteBatch) or time.monotonic() >= due:
                    self._write(item if isinstance(item, Page) else None)
                    due = time.monotonic() + COMMIT_EVERY
            except Exception as error:
                self._drop_rows(error)
        try:
            self._write_began = time.monotonic()
            self._finish()
        except Exception as error:
            self._drop_rows(error)
        self._write_began = None
        self._status.over = True

    def _write_batch(self, batch: WriteBatch) -> None:
        """Turn events into rows. Events that cannot be encoded are counted as lost."""
        self._weight += batch.weight
        for number, event in batch.events:
            try:
                self._rows.append(to_row(number, event))
            except (ValueError, TypeError, msgspec.MsgspecError) as error:
                self._status.lost += 1
                self._status.fault = f"an event cannot be encoded: {error_line(error)}"
            else:
                self._builder.add(number, event)

    def _write(self, page: Page | None) -> None:
        self._write_began = time.monotonic()
        self._commit()
        if page and not self._rows:
            self._build_page(page)
        self._write_began = None

    def _drop_rows(self, error: Exception) -> None:
        """Drop the current rows after an unexpected error, and report it."""
        self._status.lost += len(self._rows)
        self._status.fault = f"the recorder failed: {type(error).__name__}: {error_line(error)}"
        self._clear()

    def _clear(self) -> None:
        self._backlog.release(self._weight)
        self._rows, self._weight, self._write_began = [], 0, None
        self._status.waiting = 0

    def _commit(self) -> None:
        """Write the rows; keep them if that fails."""
        if not self._rows:
            return
        try:
            with self._database:
                self._database.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", self._rows)
        except sqlite3.Error as error:
            self._status.waiting = len(self._rows)
            self._status.error = str(error)
            return
        self._status.held = max([self._status.held, *(row[1] for row in self._rows)])
        self._status.error = ""
        self._status.gone = not self._status.file_exists
        self._clear()

    def _build_page(self, page: Page) -> None:
        """Write a page; if that fails, its events are packed with the next page."""
        try:
            self._builder.build(page.last, page.state)
        except sqlite3.Error as error:
            self._status.error = str(error)
        except Exception as error:
            # No data is lost: events that cannot be packed stay rows.
            self._builder.skip(page.last)
            self._status.fault = f"events cannot be packed: {type(error).__name__}: {error_line(error)}"

    def _finish(self) -> None:
        try:
            # By executescript: execute would stop after the first row, which frees only one page.
            self._database.executescript("PRAGMA incremental_vacuum")
            self._database.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.Error as error:
            # Another process has the file open: the last one to close it merges the -wal.
            if not is_locked(error):
                self._status.error = self._status.error or str(error)
        self._status.gone = not self._status.file_exists
        self._database.close()


class NullRecorder:
    """A Recorder that records nothing, for a session that cannot be recorded; `trouble` is the reason."""

    path = ""
    gaps: tuple[str, ...] = ()

    def __init__(self, trouble: str) -> None:
        self.trouble = trouble

    def record(self, events: Sequence[AnyEvent]) -> None:
        """Do nothing."""

    def settle(self, state: State) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def _create(path: Path) -> sqlite3.Connection:
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise RecordingExists(f"{path}: exists already; name another file") from None
    except OSError as error:
        raise RecordingError(f"{path}: cannot create the recording: {error.strerror}") from None
    os.close(descriptor)
    try:
        database = sqlite3.connect(path, check_same_thread=False)
        database.executescript(TABLES)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        # The first read takes the lock that marks the file as in use.
        database.execute("SELECT count(*) FROM events").fetchone()
    except sqlite3.Error as error:
        path.unlink(missing_ok=True)
        raise RecordingError(f"{path}: cannot create the recording: {error}") from None
    return database


class RecordingStatus:
    """The status of a recording, set by the thread that writes, read by others. Fields are replaced as a whole.

    `error` is the error of SQLite in the last write, "" without one; `gone`: the file was not at its path after it. The
    file has all events up to `held` (session s), except `lost` ones; `waiting` later events are in memory only. `over`:
    the recorder has ended. `fault` is the last unexpected error of the recorder; it is kept, because it is a defect to
    report.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity = _identity(path)
        self.error = ""
        self.gone = False
        self.fault = ""
        self.held = 0.0
        self.waiting = 0
        self.lost = 0
        self.over = False

    @property
    def file_exists(self) -> bool:
        """Return whether the file is still at its path."""
        return self._identity is None or _identity(self._path) == self._identity

    @property
    def words(self) -> str:
        """All problems on one line; "" if the recording is complete."""
        parts = []
        if self.gone:
            parts.append("the file is gone: moved or deleted, or its file system was unmounted")
        elif self.error:
            parts += [self.error, f"the session is recorded up to {clock(self.held)}"]
        if self.waiting:
            parts.append(f"{self.waiting} later events {'are not recorded' if self.over else 'are waiting in memory'}")
        if self.lost:
            parts.append(f"{self.lost} events lost")
        if self.fault:
            parts.append(self.fault)
        return f"{self._path.name}: {'; '.join(parts)}" if parts else ""


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
