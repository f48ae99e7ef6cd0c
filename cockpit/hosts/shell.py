"""The interface to run commands on a host, and readers of their output."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

# The interpreter of programs; it reads them from standard input.
SH = "sh -s"
# Maximum bytes of a line; longer lines are cut, so that a server cannot fill the memory with one line.
LINE_LIMIT = 65536
CHUNK = 65536
# A connection is closed after this time (s) without data and without answers to keepalives.
SILENCE = 8.0
# Maximum output of a command (bytes); the largest is a server's configuration.
STDOUT_LIMIT, STDERR_LIMIT = 16 * 1024 * 1024, 1024 * 1024

Read = Callable[[int], Awaitable[bytes]]


class Completed(NamedTuple):
    """A completed command; `exit_status` is negative if a signal ended it."""

    exit_status: int
    stdout: bytes
    stderr: bytes

    @property
    def lines(self) -> list[str]:
        """The lines of stdout. Only line feeds end a line: names and values may contain other separators."""
        text = self.stdout.decode("utf-8", "replace").removesuffix("\n")
        return [line.removesuffix("\r") for line in text.split("\n")] if text else []


class Channel(Protocol):
    """A running command, with its standard streams."""

    async def write(self, data: bytes) -> None:
        """Write to its input. Raises HostError if it has ended or the connection is lost."""

    async def readline(self) -> bytes:
        """Return one line with its newline, cut at LINE_LIMIT bytes; b"" at the end. Raises HostError if the connection
        is lost."""

    async def read(self, size: int) -> bytes:
        """Return available output, at most `size` bytes; b"" at the end. Not to be mixed with `readline`.

        Raises HostError if the connection is lost.
        """

    @property
    def stderr(self) -> bytes:
        """The last few KiB of its standard error."""

    def close(self) -> None:
        """End the command by closing its streams."""


class HostConnection(Protocol):
    """A TCP connection made by a host. Its methods raise HostError if it or the host is lost."""

    async def read(self, size: int) -> bytes:
        """Return available data, at most `size` bytes; b"" at the end."""

    async def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class Shell(Protocol):
    """A host's shell. All methods raise HostError if the host cannot be reached."""

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        """Run a program in sh to its end, independent of the login shell and its output; `input` is standard input.

        `interpreter` reads the program on its standard input. Raises HostError if the program takes longer than
        `timeout` (s) or prints more than STDOUT_LIMIT or STDERR_LIMIT bytes.
        """

    async def open(self, program: str, interpreter: str = SH) -> Channel:
        """Start an interactive program in sh; return its channel when it runs."""

    async def open_stream(self, host: str, port: int) -> HostConnection:
        """Open a TCP connection from the host to `host`, a name that the host resolves."""

    async def forward_back(self, port: int) -> int:
        """Return a port on the host's 127.0.0.1 whose connections end at this port of this machine's 127.0.0.1."""

    async def wait_closed(self) -> None:
        """Wait until the connection has ended."""

    async def close(self) -> None:
        """End all running commands, and disconnect."""


class OutputTooLong(Exception):
    """A program printed more than the limit; the message has the limit."""


async def read_output(stdout: Read, stderr: Read) -> tuple[bytes, bytes]:
    """Read both streams to their ends. Raises OutputTooLong as soon as one of them exceeds its limit."""
    reading = (
        asyncio.ensure_future(_read_all(stdout, STDOUT_LIMIT, "to its standard output")),
        asyncio.ensure_future(_read_all(stderr, STDERR_LIMIT, "to its standard error")),
    )
    try:
        output, errors = await asyncio.gather(*reading)
        return output, errors
    finally:
        for task in reading:
            task.cancel()
        await asyncio.wait(reading)


async def _read_all(read: Read, limit: int, where: str) -> bytes:
    output = bytearray()
    while data := await read(CHUNK):
        output += data
        if len(output) > limit:
            raise OutputTooLong(f"printed more than {limit // 1024 // 1024} MiB {where}")
    return bytes(output)


class LineReader:
    """Reads lines from a stream in bounded memory."""

    def __init__(self, read: Read, limit: int = LINE_LIMIT) -> None:
        self._read = read
        self._limit = limit
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()

    async def readline(self) -> bytes:
        """Return the next line with its newline, cut at the limit; b"" at the end of the stream."""
        while not self._lines:
            data = await self._read(CHUNK)
            if not data:
                rest = bytes(self._rest)
                self._rest.clear()
                return rest
            self._feed(data)
        return self._lines.popleft()

    def _feed(self, data: bytes) -> None:
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
    """Reads a stream in the background and keeps its last bytes, which have the reason if a command failed."""

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
