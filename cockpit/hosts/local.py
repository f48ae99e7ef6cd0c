"""The shell of this machine, for hosts without `ssh`."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from contextlib import suppress

from cockpit.hosts import program as program_in_sh
from cockpit.hosts.program import ProgramChannel, took_too_long
from cockpit.hosts.shell import CHUNK, SH, Completed
from cockpit.hosts.stream_connection import StreamConnection
from cockpit.model.errors import HostError


class _Protocol(SubprocessStreamProtocol):
    """Reports the end of the process, even if other processes still have its pipes open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=CHUNK, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class _Command:
    """A local command in its own session, so that the terminal's Ctrl-C does not reach it."""

    def __init__(self, name: str, transport: asyncio.SubprocessTransport, protocol: _Protocol) -> None:
        self.process = Process(transport, protocol, asyncio.get_running_loop())
        self.name = name
        self._transport = transport
        self._exited = protocol.exited

    @classmethod
    async def start(cls, name: str, interpreter: str) -> _Command:
        loop = asyncio.get_running_loop()
        # Other interpreters are commands of profiles, with the syntax of sh.
        arguments = shlex.split(SH) if interpreter == SH else ("/bin/sh", "-c", f"exec {interpreter}")
        starting = asyncio.ensure_future(
            loop.subprocess_exec(
                lambda: _Protocol(loop), *arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
            )
        )
        try:
            # Shielded: if cancelled here, asyncio may wait forever for the process to end.
            transport, protocol = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await cls(name, *await starting).end()
            raise
        except OSError as error:
            raise HostError(f"cannot start {arguments[0]}: {error}", subject=name) from None
        return cls(name, transport, protocol)

    async def read_stdout(self, size: int) -> bytes:
        assert self.process.stdout
        return await self.process.stdout.read(size)

    async def read_stderr(self, size: int) -> bytes:
        assert self.process.stderr
        return await self.process.stderr.read(size)

    async def write(self, data: bytes) -> None:
        assert self.process.stdin
        try:
            self.process.stdin.write(data)
            await self.process.stdin.drain()
        except OSError:
            raise HostError("the command has ended", subject=self.name) from None

    def write_eof(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()

    def close(self) -> None:
        if not self._exited.is_set():
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    async def wait_closed(self) -> None:
        """Wait for the end of the killed process, also if cancelled: it ends at once, and must not be left behind."""
        try:
            await self._exited.wait()
        except asyncio.CancelledError:
            await self._exited.wait()
            raise
        finally:
            self._transport.close()

    async def end(self) -> None:
        self.close()
        await self.wait_closed()


class LocalShell:
    """`sh` on this machine; errors name it as `name`."""

    def __init__(self, name: str = "this machine") -> None:
        self._name = name
        self._channels: list[ProgramChannel] = []
        self._closed = asyncio.Event()

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        running = await self._start(interpreter)
        try:
            async with asyncio.timeout(timeout):
                stdout, stderr = await program_in_sh.run(self._name, running, program, input)
                status = await running.process.wait()
        except TimeoutError:
            raise took_too_long(self._name, timeout) from None
        finally:
            await running.end()
        return Completed(status, stdout, stderr)

    async def open(self, program: str, interpreter: str = SH) -> ProgramChannel:
        channel = await program_in_sh.start(self._name, await self._start(interpreter), program)
        if self._closed.is_set():
            channel.close()
            await channel.wait_closed()
            raise HostError("the shell was closed", subject=self._name)
        self._channels = [*(other for other in self._channels if not other.gone), channel]
        return channel

    async def open_stream(self, host: str, port: int) -> StreamConnection:
        address = f"{host}:{port}"
        try:
            reader, writer = await asyncio.open_connection(host, port)
        except OSError as error:
            raise HostError(f"{address}: unreachable: {error.strerror or error}", subject=self._name) from None
        return StreamConnection(self._name, address, reader, writer, (OSError,))

    async def forward_back(self, port: int) -> int:
        return port

    async def wait_closed(self) -> None:
        await self._closed.wait()

    async def close(self) -> None:
        self._closed.set()
        while self._channels:
            channel = self._channels.pop()
            channel.close()
            await channel.wait_closed()

    async def _start(self, interpreter: str) -> _Command:
        if self._closed.is_set():
            raise HostError("the shell was closed", subject=self._name)
        return await _Command.start(self._name, interpreter)
