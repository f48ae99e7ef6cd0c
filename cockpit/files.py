"""Files written in one step, whole or not at all, and files read up to a limit."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def open_new(path: Path, flags: int = 0) -> int:
    """A descriptor to write a file of ours; a symbolic link in its place is refused. Raises OSError."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | flags, 0o600)


@contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the path's place when all is written and on the disk. A link stays a link.

    It gets `mode`, else that of the file that makes way, else what the umask leaves. Raises OSError.
    """
    target = path.resolve()
    handle, beside = tempfile.mkstemp(prefix=f".{target.name[:50]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(beside).chmod(_mode(target) if mode is None else mode)
        Path(beside).replace(target)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    if path.exists():
        return path.stat().st_mode & 0o7777
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def read_bounded(path: Path, most: int) -> bytes:
    """The content of a file of at most `most` bytes. Raises OSError, EFBIG for a larger one."""
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"is larger than {most >> 20} MiB", str(path))
    return content
