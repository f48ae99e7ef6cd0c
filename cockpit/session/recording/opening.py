"""Opening a file that should be a recording."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from cockpit.model.errors import RecordingError
from cockpit.session.recording.schema import APPLICATION_ID, VERSION


def checked(path: Path, database: sqlite3.Connection) -> int:
    """The format's version, after a look at whether the file is ours."""
    try:
        application = database.execute("PRAGMA application_id").fetchone()[0]
        version = int(database.execute("PRAGMA user_version").fetchone()[0])
        if application != APPLICATION_ID:
            raise RecordingError(f"{path}: is not a cockpit recording")
        if version > VERSION:
            raise RecordingError(f"{path}: was written by a newer cockpit (format {version}; this one reads {VERSION})")
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except UnicodeError:
        # SQLite names what it found, which need not be text.
        raise RecordingError(f"{path}: does not read as a recording: its tables are damaged") from None
    except sqlite3.Error as error:
        raise RecordingError(f"{path}: does not read as a recording: {words(error)}") from None
    return version


def words(error: Exception | None) -> str:
    """What SQLite says, short and on one line: it may show what it read."""
    return " ".join(str(error).split())[:120]


def opened(path: Path) -> sqlite3.Connection:
    # os.path says no, where pathlib raises, to a name that cannot be one: too long, or with a NUL.
    if os.path.isdir(path):  # noqa: PTH112
        raise RecordingError(f"{path}: is a folder; name a .cockpit file")
    if not os.path.exists(path):  # noqa: PTH110
        raise RecordingError(f"{path}: no such recording; cockpit recordings list shows those that are kept")
    problem: Exception | None = None
    # A file cut short has its last events in the -wal beside it, which only a writable opening can take in; one in a
    # folder that nobody may write reads as it is.
    for how in ("mode=rw", "mode=ro&immutable=1"):
        try:
            database = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=5)
            database.isolation_level = None
            database.execute("PRAGMA query_only = 1")
            database.execute("PRAGMA schema_version").fetchone()
        except (sqlite3.Error, UnicodeError) as error:
            problem = error
        else:
            return database
    raise RecordingError(f"{path}: does not read as a recording: {words(problem)}")


def in_use(path: Path) -> bool:
    """Whether somebody has the recording open, to write or to look at. Asks of our own files only."""
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=0)
    except sqlite3.Error:
        return False
    try:
        # Asked of SQLite: to open and close the file by other means would take the locks of this process off it.
        if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            return False
        # One who leaves the write-ahead log must be alone; in a file that is closed there is none to leave.
        if database.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            database.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    except (sqlite3.DatabaseError, UnicodeError):
        return False
    finally:
        database.close()
    return False
