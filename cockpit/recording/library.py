"""The library: recordings that cockpit names itself, and that are found by name."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from cockpit.files import make_private, state_folder
from cockpit.model.errors import RecordingError, naming
from cockpit.model.events import SessionStarted
from cockpit.model.text import numbered
from cockpit.recording.database import error_line, in_use, opened
from cockpit.recording.packing import Damaged
from cockpit.recording.schema import EVENTS, from_row, last_instant
from cockpit.recording.validity import is_metric
from cockpit.recording.writer import RecordingExists, RecordingWriter

SUFFIX = ".cockpit"
# Suffixes of the files of SQLite beside a recording that is open, or was not closed.
_COMPANIONS = ("-wal", "-shm", "-journal")
_LONGEST_NAME = 60
_DISALLOWED = re.compile(r"[^A-Za-z0-9._-]+")
# Maximum number of characters of a text in a summary.
_LONGEST_TEXT = 300


class RecordingInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A recording in the library. `began` is in epoch seconds, `seconds` the duration, `size` in bytes; `problem` is
    the reason why the file cannot be read."""

    name: str
    path: str
    size: int
    began: float = 0.0
    seconds: float = 0.0
    runs: int = 0
    session: str = ""
    target: str = ""
    ended: bool = False
    problem: str = ""


def folder() -> Path:
    """The library in the user's state directory; it might not exist yet."""
    return state_folder() / "recordings"


def new_recording(session: str, wall: float) -> RecordingWriter:
    """Create the recording of a session that starts at `wall` (epoch s), in a folder that only this user can read.

    Raises RecordingError if it cannot be created.
    """
    library = folder()
    with naming(library, "create a recording", RecordingError):
        make_private(library)
    name = f"{sanitized_name(session)}-{time.strftime('%Y%m%d-%H%M%S', time.localtime(wall))}"
    for unused in numbered(name):
        with suppress(RecordingExists):
            return RecordingWriter(library / f"{unused}{SUFFIX}")
    raise AssertionError("names never run out")


def sanitized_name(name: str) -> str:
    """Return a file name: other characters than letters, digits, dots, dashes and underscores become dashes."""
    return _DISALLOWED.sub("-", name).strip("-.")[:_LONGEST_NAME] or "session"


def find(text: str | Path) -> Path:
    """Return the path if it exists, else the recording with that name in the library, else the path."""
    path = Path(text)
    if os.path.exists(path) or path.name != str(text):  # noqa: PTH110
        return path
    return next((known for known in _library_paths(str(text)) if os.path.exists(known)), path)  # noqa: PTH110


def in_library(name: str) -> Path:
    """Return the recording with that name in the library. Raises RecordingError if there is none."""
    if Path(name).name == name and name != "..":
        for path in _library_paths(name):
            if os.path.exists(path):  # noqa: PTH110
                return path
    raise RecordingError(f"{name}: no such recording in the library; list them: cockpit recordings list")


def list_recordings() -> list[RecordingInfo]:
    library = folder()
    recordings = [recording_info(path) for path in library.glob(f"*{SUFFIX}")] if library.is_dir() else []
    return sorted(recordings, key=lambda kept: (-kept.began, kept.name))


def rename(name: str, new: str) -> Path:
    """Rename a recording. Raises RecordingError if there is none, the new name is invalid or taken, or it is in use."""
    path = in_library(name)
    new_name = new.removesuffix(SUFFIX)
    if sanitized_name(new_name) != new_name:
        raise RecordingError(f"{new!r}: invalid name; use letters, digits, dots and dashes, at most {_LONGEST_NAME}")
    target = folder() / f"{new_name}{SUFFIX}"
    if target.exists():
        raise RecordingError(f"{new_name}: exists already; choose another name")
    _not_in_use(path)
    with naming(path, "be renamed", RecordingError):
        path.rename(target)
    return target


def delete(name: str) -> int:
    """Delete a recording; return its size in bytes. Raises RecordingError if there is none, or it is in use."""
    path = in_library(name)
    _not_in_use(path)
    with naming(path, "be deleted", RecordingError):
        size = path.stat().st_size
        for companion in _COMPANIONS:
            path.with_name(path.name + companion).unlink(missing_ok=True)
        path.unlink()
    return size


def _not_in_use(path: Path) -> None:
    if in_use(path):
        raise RecordingError(f"{path.stem}: is open in another cockpit; quit that cockpit first")


def _library_paths(name: str) -> tuple[Path, Path]:
    return folder() / name, folder() / f"{name}{SUFFIX}"


def recording_info(path: Path) -> RecordingInfo:
    """Return the summary of a file without reading all of it."""
    name = path.name.removesuffix(SUFFIX)
    try:
        size = sum(file.stat().st_size for file in (path, path.with_name(path.name + "-wal")) if file.exists())
    except OSError as error:
        return RecordingInfo(name=name, path=str(path), size=0, problem=error.strerror or "cannot be read")
    kept = RecordingInfo(name=name, path=str(path), size=size)
    try:
        with closing(opened(path, timeout=1)) as database:
            return _with_summary(database, kept)
    except RecordingError as error:
        return msgspec.structs.replace(kept, problem=error.problem)
    except (sqlite3.Error, Damaged) as error:
        return msgspec.structs.replace(kept, problem=f"cannot be read: {error_line(error)}")


def _with_summary(database: sqlite3.Connection, kept: RecordingInfo) -> RecordingInfo:
    row = database.execute(f"{EVENTS} WHERE kind = 'session_started' ORDER BY seq LIMIT 1").fetchone()
    started = from_row(row) if row else None
    if not isinstance(started, SessionStarted):
        return msgspec.structs.replace(kept, problem="has no events")
    return msgspec.structs.replace(
        kept,
        began=started.wall,
        seconds=last_instant(database),
        runs=database.execute("SELECT count(*) FROM events WHERE kind = 'run_started'").fetchone()[0],
        session=started.name[:_LONGEST_TEXT],
        target=started.target[:_LONGEST_TEXT],
        ended=database.execute("SELECT 1 FROM events WHERE kind = 'session_ended'").fetchone() is not None,
    )


class ChangeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a session: label, e.g. `A MaxSpareServers 10 → 30`, outcome (None or "": in progress), its verdict,
    e.g. `better` ("": none), and the change of the verdict's metric, e.g. `rate ×3.7` ("": no conclusion)."""

    letter: str
    label: str
    outcome: str | None
    verdict: str = ""
    effect: str = ""


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """A recording, the metrics of its last segment (requests/s and ms; None without one), its changes, and the last
    capacity with its limits, e.g. `1,840/s at p99 < 50ms` ("": none)."""

    info: RecordingInfo
    rate: float | None = None
    p99_ms: float | None = None
    failed: int = 0
    changes: tuple[ChangeSummary, ...] = ()
    capacity: str = ""


def recent(most: int) -> list[Recent]:
    """Return the `most` files with the latest modification, the newest session first."""
    newest = sorted(_modification_times(), key=lambda entry: -entry[0])[:most]
    entries = [_with_metrics(recording_info(path)) for _, path in newest]
    return sorted(entries, key=lambda entry: (-entry.info.began, entry.info.name))


def _modification_times() -> list[tuple[float, Path]]:
    modified = []
    for path in folder().glob(f"*{SUFFIX}"):
        try:
            modified.append((path.stat().st_mtime, path))
        except OSError:
            continue
    return modified


def _with_metrics(kept: RecordingInfo) -> Recent:
    if kept.problem:
        return Recent(info=kept)
    try:
        with closing(opened(Path(kept.path), timeout=1)) as database:
            row = database.execute("SELECT rate, p99_ms, failed FROM runs ORDER BY number DESC LIMIT 1").fetchone()
            names = ("letter", "label", "outcome", "verdict", "effect")
            columns = ", ".join(f"substr({name}, 1, {_LONGEST_TEXT})" for name in names)
            changes = database.execute(f"SELECT {columns} FROM changes ORDER BY begun LIMIT 100").fetchall()
            columns = ", ".join(f"substr({name}, 1, {_LONGEST_TEXT})" for name in ("result", "limits"))
            capacity = database.execute(f"SELECT {columns} FROM capacities ORDER BY begun DESC LIMIT 1").fetchone()
    except (RecordingError, sqlite3.Error, MemoryError, UnicodeError):
        return Recent(info=kept)
    made = tuple(
        ChangeSummary(**{name: str(value or "") for name, value in zip(names, change, strict=True)})
        for change in changes
    )
    known = " at ".join(map(str, capacity)) if capacity and capacity[0] else ""
    # A column of SQLite may have values of any type.
    rate, p99_ms, failed = (value if is_metric(value) else None for value in row or (None, None, None))
    if rate is None:
        return Recent(info=kept, changes=made, capacity=known)
    return Recent(info=kept, rate=rate, p99_ms=p99_ms, failed=int(failed or 0), changes=made, capacity=known)
