"""The interface to run commands on a host, and readers of their output."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

# The interpreter of programs; it reads them from standard input.
SH = "sh -s"
# Longer lines are cut, so that no server can fill the memory with one line.
LINE_LIMIT = 65536
CHUNK = 65536
# Seconds of silence, without answers to keepalives, after which a connection is closed.
SILENCE = 8.0
# Maximum output of a command (bytes); the largest is a server's configuration.
STDOUT_LIMIT, STDERR_LIMIT = 16 * 1024 * 1024, 1024 * 1024

Read = Callable[[int], Awaitable[bytes]]


class Completed(NamedTuple):
    """A completed command; `exit_status` is negative if a signal ended it."""

    exit_status: int
    stdout: bytes
    stderr: bytes


class Channel(Protocol):
    """A running command, with its standard streams."""

    async def write(self, data: bytes) -> None:
        """Write to its input. Raises HostError if it has ended or the connection is lost."""

    async def readline(self) -> bytes:
        """One line with its end, cut at LINE_LIMIT bytes; b"" at the end. Raises HostError if the connection is
        lost."""

    async def read(self, size: int) -> bytes:
        """Available output, at most `size` bytes; b"" at the end. Not to be mixed with `readline`.

        Raises HostError if the connection is lost.
        """

    @property
    def stderr(self) -> bytes:
        """The last few KiB of its standard error."""

    def close(self) -> None:
        """End it by closing its streams."""


class Wire(Protocol):
    """A TCP connection made by a host. Its methods raise HostError if it or the host is lost."""

    async def read(self, size: int) -> bytes:
        """Available data, at most `size` bytes; b"" at the end."""

    async def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class Shell(Protocol):
    """A host's shell. All methods raise HostError if the host cannot be reached."""

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        """Run a program in sh to its end, whatever the login shell is and prints; `input` is its standard input.

        `interpreter` reads the program on its standard input. Raises HostError when it takes longer than `timeout` (s)
        or prints more than STDOUT_LIMIT, STDERR_LIMIT bytes.
        """

    async def open(self, program: str, interpreter: str = SH) -> Channel:
        """Start an interactive program in sh; return its channel once it runs."""

    async def open_stream(self, host: str, port: int) -> Wire:
        """Open a TCP connection from the host to `host`, a name that the host resolves."""

    async def forward_back(self, port: int) -> int:
        """Return a port on the host's 127.0.0.1 whose connections end at this port of this machine's 127.0.0.1."""

    async def wait_closed(self) -> None:
        """Wait until the connection has ended."""

    async def close(self) -> None:
        """End all running commands, and disconnect."""


class OutputTooLong(Exception):
    """A program printed more than the limit, which is in the message."""


async def read_output(stdout: Read, stderr: Read) -> tuple[bytes, bytes]:
    """Read both streams to their ends. Raises OutputTooLong as soon as one of them exceeds its limit."""
    reading = (
        asyncio.ensure_future(_read_all(stdout, STDOUT_LIMIT, "to its standard output")),
        asyncio.ensure_future(_read_all(stderr, STDERR_LIMIT, "to its standard error")),
    )
    try:
        printed, complained = await asyncio.gather(*reading)
        return printed, complained
    finally:
        for task in reading:
            task.cancel()
        await asyncio.wait(reading)


async def _read_all(read: Read, limit: int, where: str) -> bytes:
    held = bytearray()
    while data := await read(CHUNK):
        held += data
        if len(held) > limit:
            raise OutputTooLong(f"printed more than {limit // 1024 // 1024} MiB {where}")
    return bytes(held)


class LineReader:
    """Reads lines from a stream in bounded memory."""

    def __init__(self, read: Read, limit: int = LINE_LIMIT) -> None:
        self._read = read
        self._limit = limit
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()

    async def readline(self) -> bytes:
        """The next line with its end, cut at the limit; b"" at the end of the stream."""
        while not self._lines:
            data = await self._read(CHUNK)
            if not data:
                rest = bytes(self._rest)
                self._rest.clear()
                return rest
            self._take(data)
        return self._lines.popleft()

    def _take(self, data: bytes) -> None:
        first, *others = data.split(b"\n")
        self._extend(first)
        if others:
            *whole, rest = others
            self._lines.append(bytes(self._rest) + b"\n")
            self._lines.extend([part[: self._limit] + b"\n" for part in whole])
            self._rest = bytearray(rest[: self._limit])

    def _extend(self, part: bytes) -> None:
        room = self._limit - len(self._rest)
        if room > 0:
            self._rest += part[:room]


class Tail:
    """Reads a stream in the background and keeps the last bytes, which say why a command failed."""

    SIZE = 4096
    # Maximum seconds between the ends of the command's output and of this stream.
    LAG = 0.5

    def __init__(self, read: Read) -> None:
        self.kept = b""
        self._read = read
        self._reading = asyncio.ensure_future(self._drain())

    async def settle(self) -> None:
        """Wait for the end of the stream, at most LAG seconds."""
        await asyncio.wait([self._reading], timeout=self.LAG)

    def cancel(self) -> None:
        self._reading.cancel()

    async def _drain(self) -> None:
        while data := await self._read(CHUNK):
            self.kept = (self.kept + data)[-self.SIZE :]
