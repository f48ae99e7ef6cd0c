"""Results that go to a file or to stdout."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cockpit.cli.terminal import tell_all
from cockpit.files import atomic_write
from cockpit.model.errors import UsageError


def put(pieces: Iterable[str], path: Path | None) -> None:
    """To the file, in one step and in the place of an older one; None: to stdout. Raises as `tell_all`."""
    if path is None:
        tell_all(pieces)
        return
    try:
        if path.exists() and not path.is_file():
            # A pipe or a device takes it as it comes.
            with path.open("w", encoding="utf-8") as file:
                file.writelines(pieces)
        else:
            with atomic_write(path.resolve()) as whole:
                whole.writelines(piece.encode() for piece in pieces)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
