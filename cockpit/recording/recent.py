"""Summaries of the newest recordings in the library, for lists to pick from."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from cockpit.model.errors import RecordingError
from cockpit.recording.database import opened
from cockpit.recording.library import SUFFIX, Kept, about, folder


class ChangeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A change that was made in a session: its words, as `MaxSpareServers 10 -> 30`, and what became of it."""

    letter: str
    label: str
    outcome: str


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """A recording, the figures of its last row (requests/s and ms; None where it has none) and its changes."""

    kept: Kept
    rate: float | None = None
    p99_ms: float | None = None
    failed: int = 0
    changes: tuple[ChangeSummary, ...] = ()


def recent(most: int) -> list[Recent]:
    """The `most` files that were written last, the newest session first."""
    found = sorted(_written(), key=lambda entry: -entry[0])[:most]
    told = [_with_figures(about(path)) for _, path in found]
    return sorted(told, key=lambda one: (-one.kept.began, one.kept.name))


def _written() -> list[tuple[float, Path]]:
    """Each file of the library with when it was last written (epoch s)."""
    found = []
    for path in folder().glob(f"*{SUFFIX}"):
        try:
            found.append((path.stat().st_mtime, path))
        except OSError:
            continue
    return found


def _with_figures(kept: Kept) -> Recent:
    if kept.problem:
        return Recent(kept=kept)
    try:
        with closing(opened(Path(kept.path), timeout=1)) as database:
            row = database.execute("SELECT rate, p99_ms, failed FROM runs ORDER BY number DESC LIMIT 1").fetchone()
            changes = database.execute("SELECT letter, label, outcome FROM changes ORDER BY begun LIMIT 100").fetchall()
    except (RecordingError, sqlite3.Error, MemoryError, UnicodeError):
        # One of the first format has no such tables.
        return Recent(kept=kept)
    made = tuple(ChangeSummary(letter=str(one[0]), label=str(one[1]), outcome=str(one[2] or "")) for one in changes)
    # SQLite keeps any type in any column.
    rate, p99_ms, failed = (one if isinstance(one, int | float) else None for one in row or (None, None, None))
    if rate is None:
        return Recent(kept=kept, changes=made)
    return Recent(kept=kept, rate=rate, p99_ms=p99_ms, failed=int(failed or 0), changes=made)
