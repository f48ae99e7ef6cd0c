"""The rows of a recording, as many as read; what does not read is said, never raised."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from cockpit.model.text import clock
from cockpit.recording.database import words

# Rows of one answer; a damaged file may lead in circles.
_MOST = 2_000_000


class Rows:
    """Asks the file; `damage` says what was found damaged so far."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._lost: dict[str, None] = {}

    @property
    def damage(self) -> tuple[str, ...]:
        return tuple(self._lost)

    def lose(self, what: str) -> None:
        """Each is said once."""
        self._lost[what] = None

    def lose_often(self, begin: float, end: float, error: Exception) -> None:
        """What a page holds of events or series."""
        span = f"{clock(max(0.0, begin))} to {clock(end)}"
        self.lose(f"what came often from {span} is damaged and left out: {error}")

    def ask(self, question: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """As many rows as read: of a damaged file, those before the damage."""
        found: list[tuple[Any, ...]] = []
        try:
            for row in islice(self._database.execute(question, tuple(values)), _MOST):
                found.append(row)
        except (sqlite3.Error, UnicodeError, OverflowError, MemoryError) as error:
            self.lose(f"the file is damaged, part of it does not read: {words(error)}")
        return found

    @contextmanager
    def one_view(self) -> Iterator[None]:
        """One view of the file for several questions, while another process writes."""
        self._database.execute("BEGIN")
        try:
            yield
        finally:
            self._database.rollback()

    def close(self) -> None:
        self._database.close()
