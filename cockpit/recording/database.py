"""Opening a file that should be a recording: it may come from anybody.

Only tables of ours are read, by statements of ours: no views, triggers, virtual tables or generated columns, and no
functions that a schema names. A statement has a deadline, a value a largest length.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from cockpit.model.errors import RecordingError
from cockpit.recording.schema import APPLICATION_ID, TABLES, VERSION

# The longest time (s) that one statement takes; a damaged file may lead in circles.
DEADLINE = 5.0
# Bytes of the largest value: a page of a large session has some MiB.
LARGEST = 64 << 20
# Instructions of SQLite's machine between two checks of the clock.
_INSTRUCTIONS = 10_000
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: LARGEST,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 10,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
}


class Database(sqlite3.Connection):
    """A connection to a file that is not trusted; every statement has a deadline."""

    _until = float("inf")

    def harden(self) -> None:
        """Set limits. Raises sqlite3.Error for a file that cannot be read."""
        for limit, value in _LIMITS.items():
            self.setlimit(limit, value)
        self.isolation_level = None
        # Damaged text must not end a query; its checksum is wrong then.
        self.text_factory = partial(str, encoding="utf-8", errors="replace")
        self.set_progress_handler(self._overdue, _INSTRUCTIONS)
        for pragma in ("trusted_schema = OFF", "query_only = 1", "cell_size_check = ON", "mmap_size = 0"):
            self.execute(f"PRAGMA {pragma}")

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """As of sqlite3; reading rows raises sqlite3.OperationalError once the deadline is over."""
        self._until = time.monotonic() + DEADLINE
        return super().execute(sql, parameters)

    def _overdue(self) -> bool:
        return time.monotonic() > self._until


def opened(path: Path, *, timeout: float = 5.0) -> Database:
    """The file, to be read. Raises RecordingError for one that is not a recording."""
    # os.path says no, where pathlib raises, to a name that cannot be one: too long, or with a NUL.
    if os.path.isdir(path):  # noqa: PTH112
        raise RecordingError(f"{path}: is a folder; name a .cockpit file")
    if not os.path.exists(path):  # noqa: PTH110
        raise RecordingError(f"{path}: no such recording; cockpit recordings list shows the library")
    if not os.path.isfile(path):  # noqa: PTH113
        raise RecordingError(f"{path}: is not a regular file; name a .cockpit file")
    problem: Exception | None = None
    for how in _ways(path):
        try:
            database = _connected(path, how, timeout)
        except (sqlite3.Error, UnicodeError, MemoryError) as error:
            problem = error
            continue
        try:
            check(path, database)
        except BaseException:
            database.close()
            raise
        return database
    raise RecordingError(f"{path}: cannot be read as a recording: {words(problem)}")


def _ways(path: Path) -> tuple[str, ...]:
    """A file cut short has its last events in the -wal beside it, which only a writable opening can take in; one in a
    folder that nobody may write reads as it is. A rollback journal is never played back: it names files to delete."""
    as_it_is = "mode=ro&immutable=1"
    return (as_it_is,) if has_journal(path) else ("mode=rw", as_it_is)


def has_journal(path: Path) -> bool:
    """Return whether a rollback journal is beside a recording, as after a note that was cut short."""
    try:
        return path.with_name(f"{path.name}-journal").exists()
    except OSError:  # the name is too long for any file
        return False


def _connected(path: Path, how: str, timeout: float) -> Database:
    uri = f"{path.absolute().as_uri()}?{how}"
    database = sqlite3.connect(uri, uri=True, timeout=timeout, factory=Database)
    try:
        database.harden()
        database.execute("PRAGMA schema_version").fetchone()
    except BaseException:
        database.close()
        raise
    return database


def check(path: Path, database: sqlite3.Connection) -> None:
    """Raises RecordingError for a file that is not ours, is newer, or holds anything but our tables."""
    try:
        if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise RecordingError(f"{path}: is not a cockpit recording")
        version = int(database.execute("PRAGMA user_version").fetchone()[0])
        if version != VERSION:
            age = "a newer" if version > VERSION else "an older"
            raise RecordingError(f"{path}: was written by {age} cockpit (format {version}; this one reads {VERSION})")
        problem = _foreign(database)
    except UnicodeError:
        # SQLite names what it found, which need not be text.
        problem = "its tables are damaged"
    except (sqlite3.Error, MemoryError) as error:
        problem = words(error)
    if problem:
        raise RecordingError(f"{path}: cannot be read as a recording: {problem}")


def _foreign(database: sqlite3.Connection) -> str:
    """Return what differs from the schema that cockpit writes; "" if nothing."""
    columns = _columns()
    found = set()
    for kind, name, root, sql in database.execute("SELECT type, name, rootpage, sql FROM sqlite_master LIMIT 50"):
        if kind == "index" and sql is None:
            continue
        # A virtual table has no root page.
        if kind != "table" or name not in columns or not root:
            return f"holds a {words(kind)} {words(name)!r} that is not of this format"
        found.add(name)
    if missing := set(columns) - found:
        return f"has no table {min(missing)!r}"
    for name in sorted(found):
        table = [(row[1], row[6]) for row in database.execute(f"PRAGMA table_xinfo({name})")]
        # Hidden: generated.
        if [column for column, _ in table] != columns[name] or any(hidden for _, hidden in table):
            return f"its table {name!r} has other columns"
    return ""


def _columns() -> dict[str, list[str]]:
    """The columns of each of our tables."""
    with closing(sqlite3.connect(":memory:")) as ours:
        ours.executescript(TABLES)
        names = [name for (name,) in ours.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: [row[1] for row in ours.execute(f"PRAGMA table_xinfo({name})")] for name in names}


def words(error: object) -> str:
    """Return an error of SQLite on one short line: it may contain file content."""
    if isinstance(error, MemoryError):
        return "out of memory"
    return " ".join(str(error).split())[:120]


def in_use(path: Path) -> bool:
    """Return whether the recording is open in another process, or in this one. Only files of cockpit are opened."""
    if has_journal(path):
        return False
    try:
        database = _connected(path, "mode=rw", 0.0)
    except (sqlite3.Error, UnicodeError, MemoryError):
        return False
    try:
        # Asked of SQLite: to open and close the file by other means would take the locks of this process off it.
        if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            return False
        # One who leaves the write-ahead log must be alone; in a file that is closed there is none to leave.
        if database.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            database.execute("PRAGMA query_only = 0")
            database.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    except (sqlite3.DatabaseError, UnicodeError, MemoryError):
        return False
    finally:
        database.close()
    return False
