"""A way to run commands on a host: what tuning and the probe need of it, whatever the way is."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

# The interpreter of programs: it reads them on its standard input.
SH = "sh -s"
# A longer line is cut here, so that no server can fill the cockpit's memory with one line.
LINE_LIMIT = 65536
CHUNK = 65536
# A connection over which nothing comes for so many seconds, not even answers to its keepalives, is given up.
SILENCE = 8.0
# Bytes that a command may print to its standard output and error; the largest that is read is a server's configuration.
STDOUT_LIMIT, STDERR_LIMIT = 16 * 1024 * 1024, 1024 * 1024

Read = Callable[[int], Awaitable[bytes]]


class Completed(NamedTuple):
    """A command that has ended; `exit_status` is negative where a signal ended it."""

    exit_status: int
    stdout: bytes
    stderr: bytes


class Channel(Protocol):
    """A command that runs on, with its standard input and output."""

    async def write(self, data: bytes) -> None:
        """Sends to its input. Raises HostError when it has ended or the connection is gone."""

    async def readline(self) -> bytes:
        """One line of its output with its end, cut at LINE_LIMIT bytes; b"" at the end of the output.

        Raises HostError when the connection is lost.
        """

    async def read(self, size: int) -> bytes:
        """What has come of its output, at most `size` bytes, as soon as there is any; b"" at its end.

        Not to be mixed with `readline`. Raises HostError when the connection is lost.
        """

    @property
    def stderr(self) -> bytes:
        """The last few KiB it wrote to its standard error."""

    def close(self) -> None:
        """Ends it: its input and output are closed."""


class Wire(Protocol):
    """A TCP connection that a host makes. Its methods raise HostError when it or the host is lost."""

    async def read(self, size: int) -> bytes:
        """What has come, at most `size` bytes, as soon as there is any; b"" at its end."""

    async def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class Shell(Protocol):
    """A host's shell. All methods raise HostError when the host cannot be talked to."""

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        """Run a program in sh to its end, whatever the login shell is and prints; `input` is its standard input.

        `interpreter` reads the program on its standard input. Raises HostError when it takes longer than `timeout` (s)
        or prints more than STDOUT_LIMIT, STDERR_LIMIT bytes.
        """

    async def open(self, program: str) -> Channel:
        """Start a program in sh that is talked to; its channel, once it runs."""

    async def open_stream(self, host: str, port: int) -> Wire:
        """Opens a TCP connection from the host to `host`, a name as the host knows it."""

    async def wait_closed(self) -> None:
        """Returns once the connection is gone, however that came about."""

    async def close(self) -> None:
        """Ends what still runs and lets the connection go."""


class OutputTooLong(Exception):
    """A program printed more than it may; says how much that is."""


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
    """Lines out of a stream of bytes, in bounded memory."""

    def __init__(self, read: Read, limit: int = LINE_LIMIT) -> None:
        self._read = read
        self._limit = limit
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()

    async def readline(self) -> bytes:
        """The next line with its end, cut at the limit; the rest of the stream at its end, then b""."""
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
    """Reads a stream to its end by itself and keeps the last bytes: enough to say why a command failed."""

    SIZE = 4096
    # Seconds that the end of the stream may come after the end of the command's output.
    LAG = 0.5

    def __init__(self, read: Read) -> None:
        self.kept = b""
        self._read = read
        self._reading = asyncio.ensure_future(self._drain())

    async def settle(self) -> None:
        """Returns when all of it has come, or is not worth waiting for."""
        await asyncio.wait([self._reading], timeout=self.LAG)

    def cancel(self) -> None:
        self._reading.cancel()

    async def _drain(self) -> None:
        while data := await self._read(CHUNK):
            self.kept = (self.kept + data)[-self.SIZE :]
