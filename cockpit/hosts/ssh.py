"""The shell of a host over SSH. Importing this loads asyncssh, so it is imported only where a host has `ssh`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import asyncssh

from cockpit.hosts.asking import Asker
from cockpit.hosts.keyring import Keyring
from cockpit.hosts.shell import Completed, LineReader, OutputTooLong, Tail, read_output
from cockpit.hosts.ssh_errors import reason
from cockpit.hosts.ssh_login import Login
from cockpit.hosts.ssh_settings import Destination, read_settings
from cockpit.hosts.wire import StreamWire
from cockpit.model.errors import HostError, UsageError
from cockpit.model.hosts import HostConfig

# Seconds that a connection may take to say goodbye.
CLOSE_TIMEOUT = 2.0
# Bytes that a server may send ahead of what is read.
WINDOW = 512 * 1024

_Result = TypeVar("_Result")


class SshChannel:
    """A command on the host that is talked to."""

    def __init__(self, name: str, process: asyncssh.SSHClientProcess[bytes]) -> None:
        self._name = name
        self._process = process
        self._lines = LineReader(process.stdout.read)
        self._tail = Tail(self._read_stderr)

    @property
    def stderr(self) -> bytes:
        return self._tail.kept

    async def write(self, data: bytes) -> None:
        if self._process.is_closing():
            raise HostError(f"{self._name}: the command has ended")
        await _talk(self._name, self._send(data))

    async def readline(self) -> bytes:
        line = await _talk(self._name, self._lines.readline())
        if not line:
            await self._tail.settle()
        return line

    async def read(self, size: int) -> bytes:
        data = await _talk(self._name, self._process.stdout.read(size))
        if not data:
            await self._tail.settle()
        return data

    def close(self) -> None:
        self._tail.cancel()
        self._process.close()

    async def _send(self, data: bytes) -> None:
        self._process.stdin.write(data)
        await self._process.stdin.drain()

    async def _read_stderr(self, size: int) -> bytes:
        with suppress(asyncssh.Error, OSError):
            return await self._process.stderr.read(size)
        return b""


class SshShell:
    """A connection to a host; `via` are the connections to the jump hosts before it."""

    def __init__(
        self, name: str, connection: asyncssh.SSHClientConnection, via: Sequence[asyncssh.SSHClientConnection] = ()
    ) -> None:
        self._name = name
        self._connection = connection
        self._via = tuple(via)

    async def run(self, command: str, *, input: bytes = b"", timeout: float = 30) -> Completed:  # noqa: ASYNC109
        process: asyncssh.SSHClientProcess[bytes] | None = None
        try:
            async with asyncio.timeout(timeout):
                process = await self._start(command)
                stdout, stderr = await _talk(self._name, _communicate(process, input))
        except TimeoutError:
            raise HostError(f"{self._name}: {command!r} took longer than {timeout:g} s") from None
        except OutputTooLong as error:
            raise HostError(f"{self._name}: {command!r} {error}") from None
        finally:
            if process:
                process.close()
        if process.returncode is None:
            raise HostError(f"{self._name}: connection lost while {command!r} ran")
        return Completed(process.returncode, stdout, stderr)

    async def open(self, command: str) -> SshChannel:
        return SshChannel(self._name, await self._start(command))

    async def dial(self, host: str, port: int) -> StreamWire:
        what = f"{self._name}: {host}:{port}"
        try:
            reader, writer = await self._connection.open_connection(host, port)
        except asyncssh.ChannelOpenError as error:
            if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
                raise HostError(f"{what}: its sshd forbids this; let it: AllowTcpForwarding local") from None
            raise HostError(f"{what}: not to be reached from there: {error.reason}") from None
        except (asyncssh.Error, OSError) as error:
            raise HostError(f"{self._name}: connection lost: {reason(error)}") from None
        return StreamWire(what, reader, writer, (asyncssh.Error, OSError))

    async def wait_closed(self) -> None:
        await self._connection.wait_closed()

    async def close(self) -> None:
        await _close([self._connection, *reversed(self._via)])

    async def _start(self, command: str) -> asyncssh.SSHClientProcess[bytes]:
        starting = self._connection.create_process(
            command, encoding=None, request_pty=False, x11_forwarding=False, window=WINDOW
        )
        return await _talk(self._name, self._unless_full(starting))

    async def _unless_full(self, starting: Awaitable[_Result]) -> _Result:
        """Tells a server that has enough channels on this connection from one that is gone."""
        try:
            return await starting
        except asyncssh.ChannelOpenError as error:
            if self._connection.is_closed():
                raise
            why = f"its sshd opens no further channel ({reason(error)}): fewer tails, or raise its MaxSessions"
            raise HostError(f"{self._name}: {why}") from None


async def connect(
    config: HostConfig, ssh_config: Path | None = None, asker: Asker | None = None, keyring: Keyring | None = None
) -> SshShell:
    """Connects to a host that has `ssh`. Its key must be the one in known_hosts; there is no way around that.

    Raises HostKeyUnknown, HostKeyChanged, AuthRefused, Unanswered, HostError, or UsageError where ssh_config does not
    read. With an asker, what is unknown or locked is asked for first.
    """
    assert config.ssh is not None
    way = _Way(ssh_config, asker, keyring or Keyring())
    try:
        await way.open(config.name, Destination.parse(config.ssh))
    except BaseException:
        await _close(list(reversed(way.opened)))
        raise
    return SshShell(config.name, way.opened[-1], way.opened[:-1])


class _Way:
    """The way to a host over its jump hosts; each connection that stands is added to `opened`."""

    def __init__(self, ssh_config: Path | None, asker: Asker | None, keyring: Keyring) -> None:
        self.opened: list[asyncssh.SSHClientConnection] = []
        self._ssh_config = ssh_config
        self._asker = asker
        self._keyring = keyring

    async def open(self, name: str, destination: Destination, trail: tuple[Destination, ...] = ()) -> None:
        """`trail` are the destinations that this one is a jump host for."""
        if destination in trail:
            raise UsageError(f"{name}: ProxyJump goes round in a circle")
        settings = await asyncio.to_thread(read_settings, destination, self._ssh_config)
        if not self.opened:
            for jump in settings.jumps:
                await self.open(f"{name}, jump host {jump.host}", jump, (*trail, destination))
        tunnel = self.opened[-1] if self.opened else None
        self.opened.append(await Login(name, settings, tunnel, self._asker, self._keyring).open())


async def _talk(name: str, talking: Awaitable[_Result]) -> _Result:
    """Waits for something of the connection; what goes wrong with it becomes a HostError."""
    try:
        return await talking
    except (asyncssh.Error, OSError) as error:
        raise HostError(f"{name}: connection lost: {reason(error)}") from None


async def _close(connections: Sequence[asyncssh.SSHClientConnection]) -> None:
    """Closes them in order; one that does not say goodbye in time is cut off."""
    for connection in connections:
        connection.close()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await connection.wait_closed()
        except TimeoutError:
            connection.abort()


async def _communicate(process: asyncssh.SSHClientProcess[bytes], data: bytes) -> tuple[bytes, bytes]:
    """Write its input, read its output and wait for its end. Raises OutputTooLong."""
    if data:
        process.stdin.write(data)
    process.stdin.write_eof()
    printed = await read_output(process.stdout.read, process.stderr.read)
    await process.wait_closed()
    return printed
