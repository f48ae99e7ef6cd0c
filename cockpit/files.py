"""The user's directories, atomic writes, and reads up to a limit."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import platformdirs

from cockpit import DISTRIBUTION


def state_folder() -> Path:
    """Return the directory of recordings, baselines and other state of this user; it might not exist yet."""
    return platformdirs.user_state_path(DISTRIBUTION)


def configuration_folder() -> Path:
    """Return the directory of this user's profiles; it might not exist yet."""
    return platformdirs.user_config_path(DISTRIBUTION)


def open_new(path: Path, flags: int = 0) -> int:
    """Open a private file (mode 0600) for writing and return its descriptor; symbolic links are refused. Raises
    OSError."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | flags, 0o600)


@contextmanager
def atomic_write(path: Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Yield a file that replaces `path` once it is complete and on the disk; a symbolic link is replaced too.

    Its mode is `mode`; None: the mode of the replaced file, else the default of the umask. Raises OSError.
    """
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:50]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(_mode(path) if mode is None else mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync(path.parent)


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents, for this user only. Raises OSError."""
    # Path.mkdir gives missing parents the default mode.
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only the user can read, atomically; create its folder if needed. Raises OSError."""
    make_private(path.parent)
    with atomic_write(path, 0o600) as file:
        file.write(content)


def _sync(folder: Path) -> None:
    """Flush the folder's entries to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mode(path: Path) -> int:
    if path.exists():
        return path.stat().st_mode & 0o7777
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def read_bounded(path: Path, most: int) -> bytes:
    """Return the content of a file of at most `most` bytes. Raises OSError; EFBIG if the file is larger."""
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"is larger than {most >> 20} MiB", str(path))
    return content
