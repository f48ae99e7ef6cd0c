"""Programs in sh on a host with any login shell: run to their end, or interactive.

A program is sent to the standard input of `sh -s`, so the login shell parses a constant command line. The program is
one compound command, which sh reads in full before it runs. First it prints a random marker on both outputs, and
earlier output of the login shell is dropped. The program's input is sent after the marker, because dash and busybox
read their standard input in blocks and would consume it.
"""

from __future__ import annotations

import asyncio
import secrets
import shlex
from contextlib import suppress
from typing import Protocol

from cockpit.hosts.shell import CHUNK, SH, LineReader, OutputTooLong, Read, Tail, read_output
from cockpit.model.errors import HostError
from cockpit.model.text import sanitize

# Timeout (s) for a login shell to start `sh -s`.
START_TIMEOUT = 15.0
# Maximum bytes kept of a login shell's output.
NOISE = 4096


class Pipes(Protocol):
    """The standard streams of a process on a host. Methods raise HostError if the connection is lost."""

    async def read_stdout(self, size: int) -> bytes:
        """Return available output, at most `size` bytes; b"" at the end."""

    async def read_stderr(self, size: int) -> bytes: ...

    async def write(self, data: bytes) -> None:
        """Write to its standard input. Raises HostError if the process has ended."""

    def write_eof(self) -> None: ...

    def close(self) -> None:
        """End the process and its streams."""

    async def wait_closed(self) -> None:
        """After `close`: wait until nothing of the process is left on this machine."""


class MarkedOutput:
    """Output after the marker. `started`: whether the marker was printed; `noise` is the end of earlier output."""

    def __init__(self, read: Read, marker: bytes) -> None:
        self.noise = b""
        self.started: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._read = read
        self._marker = marker
        self._rest = b""

    async def begin(self) -> bool:
        """Read up to the marker; False if the output ended without it."""
        seen = b""
        while self._marker not in seen:
            data = await self._read(CHUNK)
            if not data:
                self.noise = seen
                self.started.set_result(False)
                return False
            seen = seen[-NOISE:] + data
        self.noise, _, self._rest = seen.partition(self._marker)
        self.started.set_result(True)
        return True

    async def read(self, size: int) -> bytes:
        """Read output after the marker; if there was no marker, the end of all output."""
        if not self.started.done() and not await self.begin():
            self._rest = self.noise
        if self._rest:
            data, self._rest = self._rest[:size], self._rest[size:]
            return data
        return await self._read(size)


class ProgramChannel:
    """The Channel of an interactive program."""

    def __init__(self, pipes: Pipes, output: MarkedOutput, tail: Tail) -> None:
        self._pipes = pipes
        self._output = output
        self._lines = LineReader(output.read)
        self._tail = tail
        self._closing: asyncio.Future[None] | None = None

    @property
    def stderr(self) -> bytes:
        return self._tail.kept

    @property
    def gone(self) -> bool:
        return self._closing is not None and self._closing.done()

    async def write(self, data: bytes) -> None:
        await self._pipes.write(data)

    async def readline(self) -> bytes:
        line = await self._lines.readline()
        if not line:
            await self._tail.settle()
        return line

    async def read(self, size: int) -> bytes:
        data = await self._output.read(size)
        if not data:
            await self._tail.settle()
        return data

    def close(self) -> None:
        if self._closing is None:
            self._tail.cancel()
            self._pipes.close()
            self._closing = asyncio.ensure_future(self._pipes.wait_closed())

    async def wait_closed(self) -> None:
        assert self._closing is not None, "close it first"
        await asyncio.wait([self._closing])
        await self._tail.settle()


async def run(name: str, pipes: Pipes, program: str, input: bytes) -> tuple[bytes, bytes]:
    """Run a program of the host `name` to its end; return standard output and error. Raises HostError."""
    text, marker = _framed(program)
    stdout, stderr = MarkedOutput(pipes.read_stdout, marker), MarkedOutput(pipes.read_stderr, marker)
    feeding = asyncio.ensure_future(_feed(pipes, text, stdout.started, input))
    try:
        output, errors = await read_output(stdout.read, stderr.read)
    except OutputTooLong as error:
        raise HostError(f"a command {error}; it was stopped", subject=name) from None
    finally:
        feeding.cancel()
        await asyncio.wait([feeding])
    if not stdout.started.result():
        raise _not_started(name, stdout.noise, errors)
    return output, errors


async def _feed(pipes: Pipes, text: bytes, started: asyncio.Future[bool], input: bytes) -> None:
    """Send the program, then its input when the program has started."""
    with suppress(HostError):
        await pipes.write(text)
        if input:
            await asyncio.wait([started])
            if started.result():
                await pipes.write(input)
    pipes.write_eof()


async def start(name: str, pipes: Pipes, program: str) -> ProgramChannel:
    """Start an interactive program; return its channel when it runs. Raises HostError.

    If the program does not start, or this call is cancelled, its process is ended.
    """
    text, marker = _framed(program)
    output = MarkedOutput(pipes.read_stdout, marker)
    channel = ProgramChannel(pipes, output, Tail(MarkedOutput(pipes.read_stderr, marker).read))
    try:
        async with asyncio.timeout(START_TIMEOUT):
            with suppress(HostError):
                await pipes.write(text)
            begun = await output.begin()
        if not begun:
            await channel.read(1)
            raise _not_started(name, output.noise, channel.stderr)
    except BaseException as error:
        channel.close()
        await channel.wait_closed()
        if isinstance(error, TimeoutError):
            raise HostError(f"the login shell did not start `{SH}` within {START_TIMEOUT:g} s", subject=name) from None
        raise
    return channel


def took_too_long(name: str, seconds: float) -> HostError:
    """Return the error for a stopped program. The program is not quoted, because it may contain a secret."""
    return HostError(f"a command took longer than {seconds:g} s; it was stopped", subject=name)


def _framed(program: str) -> tuple[bytes, bytes]:
    """Return the text for `sh -s`, and the marker that it prints first."""
    marker = f"#cockpit {secrets.token_hex(16)}"
    text = f"{{ echo '{marker}'; echo '{marker}' >&2; eval {shlex.quote(program)}; exit; }}\n"
    return text.encode("utf-8", "surrogateescape"), f"{marker}\n".encode()


class NotStarted(HostError):
    """The program did not start. `reason` is the last line of the login shell, or of the command that replaces it."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"the login shell ended before `{SH}` started{': ' if reason else ''}{reason}", subject=name)
        self.reason = reason


def _not_started(name: str, noise: bytes, errors: bytes) -> NotStarted:
    lines = (errors.strip() or noise.strip()).decode("utf-8", "replace").splitlines()
    return NotStarted(name, sanitize(lines[-1].strip(), 200) if lines else "")
