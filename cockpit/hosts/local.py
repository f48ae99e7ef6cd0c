"""The shell of this machine: what a host without `ssh` is watched through."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from contextlib import suppress

from cockpit.hosts.shell import CHUNK, Completed, LineReader, OutputTooLong, Tail, read_output
from cockpit.hosts.wire import StreamWire
from cockpit.model.errors import HostError


class _Protocol(SubprocessStreamProtocol):
    """Tells when the process has ended, whoever still holds its pipes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=CHUNK, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class _Command:
    """A command of this machine, in a session of its own, so that the terminal's Ctrl-C does not reach it."""

    def __init__(self, name: str, transport: asyncio.SubprocessTransport, protocol: _Protocol) -> None:
        self.process = Process(transport, protocol, asyncio.get_running_loop())
        self.name = name
        self._transport = transport
        self._exited = protocol.exited

    @classmethod
    async def start(cls, name: str, command: str) -> _Command:
        loop = asyncio.get_running_loop()
        arguments = ("/bin/sh", "-c", command)
        starting = asyncio.ensure_future(
            loop.subprocess_exec(
                lambda: _Protocol(loop), *arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
            )
        )
        try:
            # Shielded: cancelled in the middle of this, asyncio may wait for ever for the process to end.
            transport, protocol = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await cls(name, *await starting).end()
            raise
        except OSError as error:
            raise HostError(f"{name}: cannot start /bin/sh: {error}") from None
        return cls(name, transport, protocol)

    @property
    def running(self) -> bool:
        return not self._exited.is_set()

    async def communicate(self, input: bytes) -> tuple[bytes, bytes]:
        """Write its input, read its output and wait for its end. Raises OutputTooLong."""
        process = self.process
        assert process.stdin and process.stdout and process.stderr
        feeding = asyncio.ensure_future(_feed(process.stdin, input))
        try:
            printed = await read_output(process.stdout.read, process.stderr.read)
            await process.wait()
            return printed
        finally:
            feeding.cancel()
            await asyncio.wait([feeding])

    def kill(self) -> None:
        """Kills it with the children that it has in its session, where it still runs."""
        if self.running:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    async def end(self) -> None:
        """Kills it and returns once nothing of it is left."""
        self.kill()
        await self._exited.wait()
        self._transport.close()


async def _feed(stdin: asyncio.StreamWriter, data: bytes) -> None:
    """Write all of a command's input; one that ended before does not need the rest."""
    with suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(data)
        await stdin.drain()
    stdin.close()


class LocalChannel:
    """A command of this machine that is talked to."""

    def __init__(self, command: _Command) -> None:
        process = command.process
        assert process.stdin and process.stdout and process.stderr
        self._command = command
        self._input = process.stdin
        self._lines = LineReader(process.stdout.read)
        self._tail = Tail(process.stderr.read)
        self._ending: asyncio.Future[None] | None = None

    @property
    def stderr(self) -> bytes:
        return self._tail.kept

    async def write(self, data: bytes) -> None:
        try:
            self._input.write(data)
            await self._input.drain()
        except OSError:
            raise HostError(f"{self._command.name}: the command has ended") from None

    async def readline(self) -> bytes:
        line = await self._lines.readline()
        if not line:
            await self._tail.settle()
        return line

    async def read(self, size: int) -> bytes:
        assert self._command.process.stdout
        data = await self._command.process.stdout.read(size)
        if not data:
            await self._tail.settle()
        return data

    @property
    def gone(self) -> bool:
        """Whether it was closed and nothing of it is left."""
        return self._ending is not None and self._ending.done()

    def close(self) -> None:
        if self._ending is None:
            self._tail.cancel()
            self._ending = asyncio.ensure_future(self._command.end())

    async def closed(self) -> None:
        """Closes it and returns once nothing of it is left."""
        self.close()
        assert self._ending is not None
        await self._ending
        await self._tail.settle()


class LocalShell:
    """`sh -c` on this machine; `name` is what errors call it."""

    def __init__(self, name: str = "this machine") -> None:
        self._name = name
        self._channels: list[LocalChannel] = []
        self._closed = asyncio.Event()

    async def run(self, command: str, *, input: bytes = b"", timeout: float = 30) -> Completed:  # noqa: ASYNC109
        running = await self._start(command)
        try:
            async with asyncio.timeout(timeout):
                stdout, stderr = await running.communicate(input)
        except TimeoutError:
            raise HostError(f"{self._name}: {command!r} took longer than {timeout:g} s") from None
        except OutputTooLong as error:
            raise HostError(f"{self._name}: {command!r} {error}") from None
        finally:
            await running.end()
        status = running.process.returncode
        assert status is not None
        return Completed(status, stdout, stderr)

    async def open(self, command: str) -> LocalChannel:
        channel = LocalChannel(await self._start(command))
        if self._closed.is_set():
            await channel.closed()
            raise HostError(f"{self._name}: its shell was closed")
        self._channels = [*(known for known in self._channels if not known.gone), channel]
        return channel

    async def dial(self, host: str, port: int) -> StreamWire:
        what = f"{self._name}: {host}:{port}"
        try:
            reader, writer = await asyncio.open_connection(host, port)
        except OSError as error:
            raise HostError(f"{what}: not to be reached: {error.strerror or error}") from None
        return StreamWire(what, reader, writer, (OSError,))

    async def wait_closed(self) -> None:
        await self._closed.wait()

    async def close(self) -> None:
        self._closed.set()
        while self._channels:
            await self._channels.pop().closed()

    async def _start(self, command: str) -> _Command:
        if self._closed.is_set():
            raise HostError(f"{self._name}: its shell was closed")
        return await _Command.start(self._name, command)
