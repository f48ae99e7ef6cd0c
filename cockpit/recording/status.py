"""How a recording stands while it is written and at its end: what is wrong with it, what it holds, what it does not."""

from __future__ import annotations

import os
from pathlib import Path

from cockpit.model.text import clock

GONE = "is not there any more: moved or deleted, or its file system was unmounted"


class RecordingStatus:
    """Told by the thread that writes, read by others; every field is replaced as a whole.

    `problem` is what went wrong last, empty where nothing is wrong now. The file holds all events up to instant `held`
    (s) but `lost` ones; `waiting` later ones are in memory only. `over`: nothing more will be written. `fault` is the
    last failure of the recorder itself; it stays, because it is a defect to report.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity = _identity(path)
        self.problem = ""
        self.fault = ""
        self.held = 0.0
        self.waiting = 0
        self.lost = 0
        self.over = False

    @property
    def there(self) -> bool:
        """Whether the file can still be found where it was made."""
        return self._identity is None or _identity(self._path) == self._identity

    @property
    def words(self) -> str:
        """One line; empty where the recording is whole."""
        told = [self.problem] if self.problem else []
        if self.problem and self.problem != GONE:
            told.append(f"the file holds the session up to {clock(self.held)}")
        if self.waiting:
            told.append(f"{self.waiting} later events {'are not in it' if self.over else 'wait in memory'}")
        if self.lost:
            told.append(f"{self.lost} events lost")
        if self.fault:
            told.append(self.fault)
        return f"{self._path.name}: {'; '.join(told)}" if told else ""


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_dev, found.st_ino
