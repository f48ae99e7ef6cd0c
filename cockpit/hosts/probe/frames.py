"""Assembles frames from lines of the probe's output; drops incomplete frames and other lines. Pure.

    #cockpit begin 7
    #cockpit disks sda nvme0n1
    #cockpit layered dm-0
    /proc/uptime:1579.44 2800.16
    /proc/4711/cmdline:/usr/sbin/apache2\0-k\0start\0
    #cockpit there 4711 4712
    #cockpit end 7

Every line of a file starts with the file's path, so a process cannot forge other lines by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cockpit.hosts.probe.numbers import count

MARK = b"#cockpit "
# Maximum bytes kept of a process's file; the kernel does not limit command lines.
FILE_LIMIT = 65536
# Maximum bytes of a system-wide file, which is useless if cut: 8192 CPUs take 1 MiB of /proc/stat.
SYSTEM_FILE_LIMIT = 4 * 1024 * 1024
# Maximum number of watched processes of a host.
PROCESSES_LIMIT = 16384
# Maximum number of files of a frame: seven per process, and those of the system and the probe.
FILES_LIMIT = 7 * PROCESSES_LIMIT + 64
# Maximum bytes of a frame; each line counts LINE_COST more, for the time to read it.
FRAME_LIMIT, LINE_COST = 24 * 1024 * 1024, 64
# The longest path is `/proc/4194304/smaps_rollup`.
_PATH_BYTES = 64
# Maximum digits of a frame's number.
_NUMBER_DIGITS = 18
# Exclusive limit of process IDs; the kernel's own is 2^22.
PID_LIMIT = 2**22 + 1


class Frame(NamedTuple):
    """One reading of the probe: files by path, names of disks and of devices on disks (`layered`).

    `longest` is the length of the longest line. `pids` are the PIDs of all watched processes in a frame of changes,
    which has files only of changed processes; None: a full frame. `hidden`: other users' processes are not visible.
    """

    number: int
    files: Mapping[str, bytes]
    disks: frozenset[str] = frozenset()
    longest: int = 0
    layered: frozenset[str] = frozenset()
    pids: tuple[int, ...] | None = None
    hidden: bool = False


class FrameReader:
    """Turns lines into frames."""

    def __init__(self) -> None:
        self._number: int | None = None
        self._files: dict[str, bytes | bytearray] = {}
        self._disks: frozenset[str] = frozenset()
        self._layered: frozenset[str] = frozenset()
        self._there: list[int] | None = None
        self._hidden = False
        self._longest = 0
        self._bytes = 0

    def feed(self, line: bytes) -> Frame | None:
        """Take a line; return the frame that it completes, if any. Raises ValueError for invalid output."""
        size = len(line)
        self._bytes += size + LINE_COST
        if self._bytes > FRAME_LIMIT:
            raise ValueError(f"a frame is longer than {FRAME_LIMIT // 1024 // 1024} MiB; watch fewer processes")
        if line.startswith(b"/proc/"):
            if self._number is not None:
                if size > self._longest:
                    self._longest = size
                path, _, content = line.partition(b":")
                if len(path) <= _PATH_BYTES:
                    self._add(path.decode("ascii", "replace"), content)
        elif line.startswith(MARK):
            return self._mark(line[len(MARK) :].split())
        return None

    def _add(self, path: str, content: bytes) -> None:
        """Append a line to a file, within the limits. Most files have one line, so only longer ones get a bytearray."""
        earlier = self._files.get(path)
        if earlier is None:
            if len(self._files) >= FILES_LIMIT:
                raise ValueError(f"a frame has more than {FILES_LIMIT} files")
            self._files[path] = content[:FILE_LIMIT]
            return
        if not isinstance(earlier, bytearray):
            self._files[path] = earlier = bytearray(earlier)
        if path[6:7].isdigit():
            earlier += content[: max(0, FILE_LIMIT - len(earlier))]
        elif len(earlier) + len(content) > SYSTEM_FILE_LIMIT:
            raise ValueError(f"{path} is longer than {SYSTEM_FILE_LIMIT // 1024 // 1024} MiB")
        else:
            earlier += content

    def _mark(self, words: list[bytes]) -> Frame | None:
        match words:
            case [b"begin", number]:
                self._begin(number)
            case [b"disks", *names]:
                self._disks = _names(names)
            case [b"layered", *names]:
                self._layered = _names(names)
            case [b"hidden"]:
                self._hidden = True
            case [b"there", *pids]:
                self._there = self._there or []
                self._there += (count(pid, PID_LIMIT) for pid in pids)
                if len(self._there) > PROCESSES_LIMIT:
                    raise ValueError(f"more than {PROCESSES_LIMIT} processes; watch fewer")
            case [b"end", number]:
                return self._end(number)
        return None

    def _begin(self, number: bytes) -> None:
        self._number = int(number) if number.isdigit() and len(number) <= _NUMBER_DIGITS else None
        self._files = {}
        self._disks = self._layered = frozenset()
        self._there = None
        self._hidden = False
        self._longest = 0

    def _end(self, number: bytes) -> Frame | None:
        begin_number, self._number = self._number, None
        self._bytes = 0
        if begin_number is None or number != str(begin_number).encode():
            return None
        return Frame(
            number=begin_number,
            files={path: bytes(content) for path, content in self._files.items()},
            disks=self._disks,
            longest=self._longest,
            layered=self._layered,
            pids=None if self._there is None else tuple(self._there),
            hidden=self._hidden,
        )


def _names(words: list[bytes]) -> frozenset[str]:
    return frozenset(word.decode("utf-8", "replace") for word in words)
