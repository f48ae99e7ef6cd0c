"""Files that commands write, rename and delete, as lines of text or as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from cockpit.cli.terminal import emit
from cockpit.model.text import mebibytes, sanitize
from cockpit.report.encoding import to_json


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a command wrote, renamed or deleted, or would delete without --dry-run. `size` is in bytes."""

    action: Literal["wrote", "renamed", "deleted", "would delete"]
    name: str
    path: str
    size: int

    @classmethod
    def wrote(cls, path: Path) -> ChangedFile:
        return cls(action="wrote", name=path.stem, path=str(path), size=path.stat().st_size)

    @property
    def words(self) -> str:
        """The path of a file that exists, or the deleted file."""
        exists = self.action in ("wrote", "renamed")
        return self.path if exists else f"{self.action} {sanitize(self.name)}: {mebibytes(self.size)}"


def emit_changes(changes: Iterable[ChangedFile], *, as_json: bool) -> None:
    """Print each change once it is made; as JSON, all of them at the end, also of a command that then fails."""
    made: list[ChangedFile] = []
    try:
        for change in changes:
            made.append(change)
            if not as_json:
                emit(change.words)
    except Exception:
        if as_json and made:
            emit(to_json(made))
        raise
    if as_json:
        emit(to_json(made))
