"""Open a file as a recording. The file is not trusted.

Only the tables of this format are read, with fixed statements: no views, triggers, virtual tables or generated columns,
and no functions named in a schema. Statements have a deadline, values a maximum length.
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

# Deadline of a statement (s): pages of a damaged file may form a cycle.
DEADLINE = 5.0
# Maximum size of a value (bytes); a page of a large session has a few MiB.
LARGEST = 64 << 20
# Instructions of SQLite's virtual machine between two checks of the deadline.
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
    """A connection to an untrusted file; every statement has a deadline."""

    _until = float("inf")

    def apply_limits(self) -> None:
        """Set limits. Raises sqlite3.Error for a file that cannot be read."""
        for limit, value in _LIMITS.items():
            self.setlimit(limit, value)
        self.isolation_level = None
        # Invalid UTF-8 must not end a query; the checksum reports the damage.
        self.text_factory = partial(str, encoding="utf-8", errors="replace")
        self.set_progress_handler(self._is_overdue, _INSTRUCTIONS)
        for pragma in ("trusted_schema = OFF", "query_only = 1", "cell_size_check = ON", "mmap_size = 0"):
            self.execute(f"PRAGMA {pragma}")

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Like sqlite3.Connection.execute; reading rows after the deadline raises sqlite3.OperationalError."""
        self._until = time.monotonic() + DEADLINE
        return super().execute(sql, parameters)

    def _is_overdue(self) -> bool:
        return time.monotonic() > self._until


def opened(path: Path, *, timeout: float = 5.0) -> Database:
    """Open a recording for reading. Raises RecordingError if it is missing, unreadable, or not a recording."""
    # os.path returns False for an invalid name (too long, with a NUL); pathlib raises.
    if os.path.isdir(path):  # noqa: PTH112
        raise RecordingError("is a folder; name a .cockpit file", str(path))
    if not os.path.exists(path):  # noqa: PTH110
        raise RecordingError("no such recording; list the library: cockpit recordings list", str(path))
    if not os.path.isfile(path):  # noqa: PTH113
        raise RecordingError("is not a regular file; name a .cockpit file", str(path))
    problem: Exception | None = None
    for mode in _open_modes(path):
        try:
            database = _connect(path, mode, timeout)
        except (sqlite3.Error, UnicodeError, MemoryError) as error:
            problem = error
            continue
        try:
            check(path, database)
        except BaseException:
            database.close()
            raise
        return database
    raise RecordingError(f"cannot be read as a recording: {error_line(problem)}", str(path))


def _open_modes(path: Path) -> tuple[str, ...]:
    """Return the URI parameters to try in turn. After a crash the last events are in the -wal file, which SQLite reads
    only with write access; in a read-only folder the file is opened without. With a rollback journal the file is opened
    immutable, so that the journal, which may name other files to delete, is ignored."""
    immutable = "mode=ro&immutable=1"
    return (immutable,) if has_journal(path) else ("mode=rw", immutable)


def has_journal(path: Path) -> bool:
    """Return whether a recording has a rollback journal, e.g. after a crash while a note was written."""
    try:
        return path.with_name(f"{path.name}-journal").exists()
    except OSError:  # The name is too long for a file.
        return False


def _connect(path: Path, mode: str, timeout: float) -> Database:
    uri = f"{path.absolute().as_uri()}?{mode}"
    database = sqlite3.connect(uri, uri=True, timeout=timeout, factory=Database)
    try:
        database.apply_limits()
        database.execute("PRAGMA schema_version").fetchone()
    except BaseException:
        database.close()
        raise
    return database


def check(path: Path, database: sqlite3.Connection) -> None:
    """Raise RecordingError if the file is not a recording, has another format version, or other tables."""
    try:
        if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise RecordingError("is not a cockpit recording", str(path))
        version = int(database.execute("PRAGMA user_version").fetchone()[0])
        if version != VERSION:
            age = "a newer" if version > VERSION else "an older"
            raise RecordingError(
                f"was written by {age} cockpit (format {version}; this version reads {VERSION})", str(path)
            )
        problem = _schema_difference(database)
    except UnicodeError:
        # The error message of SQLite quotes the file, which might not be UTF-8.
        problem = "the tables are damaged"
    except (sqlite3.Error, MemoryError) as error:
        problem = error_line(error)
    if problem:
        raise RecordingError(f"cannot be read as a recording: {problem}", str(path))


def _schema_difference(database: sqlite3.Connection) -> str:
    """Return the first difference from the schema that cockpit writes; "" if there is none."""
    columns = _columns()
    known_objects = set()
    for kind, name, root, sql in database.execute("SELECT type, name, rootpage, sql FROM sqlite_master LIMIT 50"):
        if kind == "index" and sql is None:
            continue
        # A virtual table has no root page.
        if kind != "table" or name not in columns or not root:
            return f"unexpected {error_line(kind)} {error_line(name)!r}"
        known_objects.add(name)
    if missing := set(columns) - known_objects:
        return f"missing table {min(missing)!r}"
    for name in sorted(known_objects):
        table = [(row[1], row[6]) for row in database.execute(f"PRAGMA table_xinfo({name})")]
        # Hidden columns are generated ones.
        if [column for column, _ in table] != columns[name] or any(hidden for _, hidden in table):
            return f"unexpected columns in table {name!r}"
    return ""


def _columns() -> dict[str, list[str]]:
    with closing(sqlite3.connect(":memory:")) as reference:
        reference.executescript(TABLES)
        names = [name for (name,) in reference.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: [row[1] for row in reference.execute(f"PRAGMA table_xinfo({name})")] for name in names}


def error_line(error: object) -> str:
    """Return an error of SQLite on one short line, because it may quote the file."""
    if isinstance(error, MemoryError):
        return "out of memory"
    return " ".join(str(error).split())[:120]


def is_locked(error: sqlite3.Error) -> bool:
    """Return whether another connection had the database or a table locked."""
    # The low byte of an extended code is the primary code. Errors of the Python module have no code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def in_use(path: Path) -> bool:
    """Return whether a recording is open, in another process or in this one; False for other files."""
    if has_journal(path):
        return False
    try:
        database = _connect(path, "mode=rw", 0.0)
    except (sqlite3.Error, UnicodeError, MemoryError):
        return False
    try:
        # Use SQLite only: closing another descriptor of the file would release the locks of this process (POSIX locks).
        if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            return False
        # Leaving WAL mode needs exclusive access. A closed recording is not in WAL mode.
        if database.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            database.execute("PRAGMA query_only = 0")
            database.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.OperationalError as error:
        return is_locked(error)
    except (sqlite3.DatabaseError, UnicodeError, MemoryError):
        return False
    finally:
        database.close()
    return False
