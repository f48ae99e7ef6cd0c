"""Reads a recording, whether it was closed, cut short or is still being written."""

from __future__ import annotations

import bisect
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from types import TracebackType

import msgspec

from cockpit.model.errors import RecordingError
from cockpit.model.events import AnyEvent, SessionStarted
from cockpit.session.recording.schema import APPLICATION_ID, VERSION, from_body


class Recording:
    """A recording opened for reading. Events are numbered from 0 in the order in which they arrived.

    `times[i]` is the instant at which event i was known: never falling, although events may arrive late.
    Raises RecordingError, one line, for a file that is not a recording or does not read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = _open(path)
        try:
            rows = _index(path, self._database)
        except RecordingError:
            self._database.close()
            raise
        self._sequence: list[int] = [row[0] for row in rows]
        self.times: list[float] = list(accumulate((row[1] for row in rows), max))

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._sequence)

    @property
    def end(self) -> float:
        """The last instant, session seconds."""
        return self.times[-1]

    @property
    def started(self) -> SessionStarted:
        first = next(iter(self.events(0, 1)))
        if not isinstance(first, SessionStarted):
            raise RecordingError(f"{self.path}: does not begin with the start of a session")
        return first

    def index_at(self, t: float) -> int:
        """How many events were known at instant `t`."""
        return bisect.bisect_right(self.times, t)

    def events(self, first: int = 0, last: int | None = None) -> Iterator[AnyEvent]:
        """Events first (included) to last (excluded)."""
        chosen = self._sequence[first:last]
        if not chosen:
            return
        try:
            rows = self._database.execute(
                "SELECT seq, body FROM events WHERE seq BETWEEN ? AND ? ORDER BY seq", (chosen[0], chosen[-1])
            )
            for seq, body in rows:
                yield self._event(seq, body)
        except sqlite3.Error as error:
            raise RecordingError(f"{self.path}: damaged: {error}") from None

    def times_of(self, kinds: Sequence[str]) -> list[float]:
        """Instants at which events of these kinds stand, ascending."""
        marks = ",".join("?" * len(kinds))
        rows = self._database.execute(f"SELECT t FROM events WHERE kind IN ({marks}) ORDER BY t", tuple(kinds))
        return [row[0] for row in rows]

    def close(self) -> None:
        self._database.close()

    def _event(self, seq: int, body: str | bytes) -> AnyEvent:
        try:
            return from_body(body)
        except (zlib.error, UnicodeError, msgspec.MsgspecError, ValueError) as error:
            raise RecordingError(f"{self.path}: event {seq} is damaged: {error}") from None


def _index(path: Path, database: sqlite3.Connection) -> list[tuple[int, float]]:
    """Number and time of every event, after a look at whether the file is ours."""
    try:
        application = database.execute("PRAGMA application_id").fetchone()[0]
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION_ID:
            raise RecordingError(f"{path}: is not a cockpit recording")
        if version > VERSION:
            raise RecordingError(f"{path}: was written by a newer cockpit (format {version}; this one reads {VERSION})")
        rows = database.execute("SELECT seq, t FROM events ORDER BY seq").fetchall()
    except sqlite3.Error as error:
        raise RecordingError(f"{path}: does not read as a recording: {error}") from None
    if not rows:
        raise RecordingError(f"{path}: holds no events; the session ended before anything was written")
    return rows


def _open(path: Path) -> sqlite3.Connection:
    # os.path says no, where pathlib raises, to a name that cannot be one: too long, or with a NUL.
    if os.path.isdir(path):  # noqa: PTH112
        raise RecordingError(f"{path}: is a folder; name a .cockpit file")
    if not os.path.exists(path):  # noqa: PTH110
        raise RecordingError(f"{path}: no such recording")
    try:
        # A file cut short has its last events in the -wal beside it, which only a writable opening can take in.
        return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)
    except sqlite3.Error as error:
        raise RecordingError(f"{path}: does not read as a recording: {error}") from None
