"""Files named in profiles and flags. Their size is limited; those of a profile must be in its folder."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path, PurePath

from cockpit.files import read_bounded

# Maximum size of a profile, and of a file named in a profile or flag (bytes).
MOST_PROFILE = 1 << 20
MOST_NAMED = 64 << 20


class FileRefused(ValueError):
    """A file that cannot be used; the message has its name and the reason."""


class NamedFiles:
    """Files named on the command line: any path, relative to the working directory."""

    def place(self, name: str) -> Path:
        """Return the path to open. Raises FileRefused."""
        return Path(name)

    def read(self, name: str) -> bytes:
        """Return the content, at most MOST_NAMED bytes. Raises FileRefused."""
        try:
            return read_bounded(self.place(name), MOST_NAMED)
        except FileNotFoundError:
            raise FileRefused(f"{name}: no such file") from None
        except OSError as error:
            raise FileRefused(f"{name}: cannot be read: {error.strerror}") from None

    def existing(self, name: str) -> str:
        """Return the path of an existing file or pipe (`-`: standard input), for code that opens it itself. Raises
        FileRefused."""
        path = self.place("/dev/stdin" if name == "-" else name)
        # os.path returns False for an invalid name (too long, with a NUL); pathlib may raise.
        if not os.path.exists(path) or os.path.isdir(path):  # noqa: PTH110, PTH112
            raise FileRefused(f"{name}: no such file")
        return str(path)


class FolderFiles(NamedFiles):
    """Files named in a profile: only files in its folder, after resolving links. Each file is read once.

    `digests` are the SHA-256 hashes of the files read so far, by their names in the profile.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._contents: dict[str, bytes] = {}
        self.digests: dict[str, str] = {}

    def place(self, name: str) -> Path:
        parts = PurePath(name)
        try:
            real = (self._folder / name).resolve()
            inside = real.is_relative_to(self._folder.resolve())
        except (OSError, ValueError, RuntimeError):
            # A NUL in the name, or a cycle of links.
            raise FileRefused(f"{name!r}: invalid file name") from None
        if parts.is_absolute() or ".." in parts.parts or not inside:
            raise FileRefused(f"{name}: is outside the profile's folder; move it there, or name it with a flag")
        return real

    def read(self, name: str) -> bytes:
        if name not in self._contents:
            path = self.place(name)
            if path.exists() and not path.is_file():
                raise FileRefused(f"{name}: is not a regular file")
            self._contents[name] = super().read(name)
            self.digests[name] = hashlib.sha256(self._contents[name]).hexdigest()
        return self._contents[name]

    def existing(self, name: str) -> str:
        self.read(name)
        return super().existing(name)
