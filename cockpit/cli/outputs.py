"""Results that go to a file or to stdout."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from cockpit.cli.terminal import tell_all
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
            # A link stays one: what it leads to is replaced.
            _replace(path.resolve(), pieces)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def _replace(path: Path, pieces: Iterable[str]) -> None:
    handle, beside = tempfile.mkstemp(prefix=f".{path.name[:50]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.writelines(pieces)
        Path(beside).chmod(_mode(path))
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """That of the file that makes way, else what the umask leaves."""
    if path.exists():
        return path.stat().st_mode & 0o7777
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
