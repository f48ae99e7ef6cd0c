"""Lines of the probe's output put together to frames; what is not whole, or not the probe's, is dropped. Pure.

    #cockpit begin 7
    #cockpit disks sda nvme0n1
    /proc/uptime:1579.44 2800.16
    /proc/4711/cmdline:/usr/sbin/apache2\0-k\0start\0
    #cockpit end 7

Every line of a file carries the file's name, so that no process can forge another line by what it calls itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

MARK = b"#cockpit "
# What one file may add to a frame; a process can make its command line as long as it likes.
FILE_LIMIT = 65536


class Frame(NamedTuple):
    """What the probe read at one tick: the files by their paths, the names of the whole disks.

    `longest` is the length of the longest line of it.
    """

    number: int
    files: Mapping[str, bytes]
    disks: frozenset[str]
    longest: int


class FrameReader:
    """Takes lines in and gives frames out."""

    def __init__(self) -> None:
        self._number: int | None = None
        self._files: dict[str, bytearray] = {}
        self._disks: frozenset[str] = frozenset()
        self._longest = 0

    def take(self, line: bytes) -> Frame | None:
        """The frame that this line completes, if it does."""
        if line.startswith(MARK):
            return self._mark(line[len(MARK) :].split())
        if self._number is not None and line.startswith(b"/proc/"):
            self._longest = max(self._longest, len(line))
            path, _, content = line.partition(b":")
            self._add(path.decode("ascii", "replace"), content)
        return None

    def _add(self, path: str, content: bytes) -> None:
        held = self._files.setdefault(path, bytearray())
        room = FILE_LIMIT - len(held)
        if room > 0:
            held += content[:room]

    def _mark(self, words: list[bytes]) -> Frame | None:
        match words:
            case [b"begin", number]:
                self._begin(number)
            case [b"disks", *names]:
                self._disks = frozenset(name.decode("utf-8", "replace") for name in names)
            case [b"end", number]:
                return self._end(number)
        return None

    def _begin(self, number: bytes) -> None:
        self._number = int(number) if number.isdigit() else None
        self._files = {}
        self._disks = frozenset()
        self._longest = 0

    def _end(self, number: bytes) -> Frame | None:
        begun, self._number = self._number, None
        if begun is None or number != str(begun).encode():
            return None
        files = {path: bytes(content) for path, content in self._files.items()}
        return Frame(begun, files, self._disks, self._longest)
