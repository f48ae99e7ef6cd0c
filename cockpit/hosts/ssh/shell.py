"""The shell of a host over SSH. Importing this loads asyncssh, so it is imported only if a host has `ssh`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TypeVar
from weakref import WeakSet

import asyncssh

from cockpit.hosts import program as program_in_sh
from cockpit.hosts.program import ProgramChannel, took_too_long
from cockpit.hosts.shell import SH, Completed
from cockpit.hosts.ssh.errors import reason
from cockpit.hosts.ssh.login import Login
from cockpit.hosts.ssh.prompts import Keyring, Prompter
from cockpit.hosts.ssh.settings import Destination, SshSettings, read_settings
from cockpit.hosts.stream_connection import StreamConnection
from cockpit.model.errors import CockpitError, HostError, UsageError
from cockpit.model.host.samples import HostConfig
from cockpit.model.text import sanitize

# Timeout (s) of a disconnect.
CLOSE_TIMEOUT = 2.0
# Timeout (s) for retries of the start of a process, and the pause before each retry.
_RETRY_TIME = 20.0
_RETRY_PAUSE = 0.02
# Maximum number of further connections to a host.
_FURTHER = 32
# Receive window of a channel (bytes): a server may send this much unread output.
WINDOW = 512 * 1024

_Result = TypeVar("_Result")


class _Pipes:
    def __init__(self, name: str, process: asyncssh.SSHClientProcess[bytes]) -> None:
        self.process = process
        self._name = name

    async def read_stdout(self, size: int) -> bytes:
        return await _awaited(self._name, self.process.stdout.read(size))

    async def read_stderr(self, size: int) -> bytes:
        """Never raises: reads of standard output report a lost connection."""
        with suppress(asyncssh.Error, OSError):
            return await self.process.stderr.read(size)
        return b""

    async def write(self, data: bytes) -> None:
        if self.process.is_closing():
            raise HostError("the command has ended", subject=self._name)
        await _awaited(self._name, self._send(data))

    def write_eof(self) -> None:
        with suppress(OSError):
            self.process.stdin.write_eof()

    def close(self) -> None:
        self.process.close()

    async def wait_closed(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self.process.wait_closed()

    async def _send(self, data: bytes) -> None:
        self.process.stdin.write(data)
        await self.process.stdin.drain()


class SshShell:
    """A connection to a host; `via` are the connections to its jump hosts, in order.

    `log_in` opens a further connection, without prompts, for sessions that sshd refuses on the others (MaxSessions).
    """

    def __init__(
        self,
        name: str,
        connection: asyncssh.SSHClientConnection,
        via: Sequence[asyncssh.SSHClientConnection] = (),
        log_in: Callable[[], Awaitable[asyncssh.SSHClientConnection]] | None = None,
    ) -> None:
        self._name = name
        self._connection = connection
        self._via = tuple(via)
        self._log_in = log_in
        self._further: list[asyncssh.SSHClientConnection] = []
        self._logging_in = asyncio.Lock()
        self._processes: WeakSet[asyncssh.SSHClientProcess[bytes]] = WeakSet()
        self._closed = False

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        pipes: _Pipes | None = None
        try:
            async with asyncio.timeout(timeout):
                pipes = await self._start(interpreter)
                stdout, stderr = await program_in_sh.run(self._name, pipes, program, input)
                await _awaited(self._name, pipes.process.wait_closed())
        except TimeoutError:
            raise took_too_long(self._name, timeout) from None
        finally:
            if pipes:
                pipes.close()
        if pipes.process.returncode is None:
            raise HostError("connection lost while a command ran", subject=self._name)
        return Completed(pipes.process.returncode, stdout, stderr)

    async def open(self, program: str, interpreter: str = SH) -> ProgramChannel:
        return await program_in_sh.start(self._name, await self._start(interpreter), program)

    async def open_stream(self, host: str, port: int) -> StreamConnection:
        address = f"{host}:{port}"
        try:
            reader, writer = await self._connection.open_connection(host, port)
        except asyncssh.ChannelOpenError as error:
            if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
                forbidden = f"{address}: sshd forbids forwarding; set AllowTcpForwarding local"
                raise HostError(forbidden, subject=self._name) from None
            why = f"{address}: unreachable from this host: {sanitize(error.reason, 200)}"
            raise HostError(why, subject=self._name) from None
        except (asyncssh.Error, OSError) as error:
            raise HostError(f"connection lost: {reason(error)}", subject=self._name) from None
        return StreamConnection(self._name, address, reader, writer, (asyncssh.Error, OSError))

    async def forward_back(self, port: int) -> int:
        try:
            listener = await self._connection.forward_remote_port("127.0.0.1", 0, "127.0.0.1", port)
        except asyncssh.ChannelListenError:
            forbidden = "sshd forbids remote forwarding; set AllowTcpForwarding yes"
            raise HostError(forbidden, subject=self._name) from None
        except (asyncssh.Error, OSError) as error:
            raise HostError(f"connection lost: {reason(error)}", subject=self._name) from None
        return listener.get_port()

    async def wait_closed(self) -> None:
        await self._connection.wait_closed()

    async def close(self) -> None:
        self._closed = True
        await _close([*self._further, self._connection, *reversed(self._via)])

    async def _start(self, interpreter: str) -> _Pipes:
        """Start a process in a new channel, on a further connection if sshd refuses it on the open ones."""
        if (pipes := await self._start_on_open(interpreter)) is not None:
            return pipes
        async with self._logging_in:
            if (pipes := await self._start_on_open(interpreter)) is not None:
                return pipes
            needed = 1 + sum(not process.is_closing() for process in self._processes)
            refused = f"sshd refused session {needed} on this connection"
            way_out = f"set MaxSessions {needed} or more in its sshd_config"
            if self._log_in is None or len(self._further) >= _FURTHER:
                raise HostError(f"{refused}; {way_out}", subject=self._name)
            try:
                further = await self._log_in()
            except CockpitError as error:
                why = f"{refused}, and a further login failed: {error.problem}"
                raise HostError(f"{why}; or {way_out}", subject=self._name) from None
            if self._closed:
                await _close([further])
                raise HostError("the shell was closed", subject=self._name)
            self._further.append(further)
            pipes = await self._start_on(further, interpreter)
            if pipes is None:
                further.close()
                raise HostError(f"sshd refuses all sessions; {way_out}", subject=self._name)
            return pipes

    async def _start_on_open(self, interpreter: str) -> _Pipes | None:
        self._further = [connection for connection in self._further if not connection.is_closed()]
        for connection in (self._connection, *self._further):
            if (pipes := await self._start_on(connection, interpreter)) is not None:
                return pipes
        return None

    async def _start_on(self, connection: asyncssh.SSHClientConnection, interpreter: str) -> _Pipes | None:
        """Start a process in a new channel of a connection; None if sshd refuses the channel.

        dropbear closes a new channel if another process exits before the program starts; retry the start.
        """
        deadline = monotonic() + _RETRY_TIME
        while True:
            try:
                process = await connection.create_process(
                    f"exec {interpreter}", encoding=None, request_pty=False, x11_forwarding=False, window=WINDOW
                )
                self._processes.add(process)
                return _Pipes(self._name, process)
            except (asyncssh.Error, OSError) as error:
                if not isinstance(error, asyncssh.ChannelOpenError) or connection.is_closed():
                    raise HostError(f"connection lost: {reason(error)}", subject=self._name) from None
                if error.code != asyncssh.OPEN_REQUEST_SESSION_FAILED:
                    return None
                if monotonic() > deadline:
                    raise HostError(f"sshd started no program: {reason(error)}", subject=self._name) from None
                await asyncio.sleep(_RETRY_PAUSE)


async def connect(
    config: HostConfig, ssh_config: Path | None = None, asker: Prompter | None = None, keyring: Keyring | None = None
) -> SshShell:
    """Connect to a host that has `ssh`; its key must be in known_hosts. An asker prompts for unknown keys and secrets.

    Raises HostKeyUnknown, HostKeyChanged, AuthRefused, Unanswered, HostError, or UsageError for an invalid ssh_config.
    """
    assert config.ssh is not None
    route = _Route(ssh_config, asker, keyring or Keyring())
    try:
        await route.open(config.name, Destination.parse(config.ssh))
    except BaseException:
        await _close(list(reversed(route.opened)))
        raise
    return SshShell(config.name, route.opened[-1], route.opened[:-1], route.log_in_again)


class _Route:
    """The route to a host through its jump hosts; open connections are in `opened`."""

    def __init__(self, ssh_config: Path | None, asker: Prompter | None, keyring: Keyring) -> None:
        self.opened: list[asyncssh.SSHClientConnection] = []
        self._ssh_config = ssh_config
        self._asker = asker
        self._keyring = keyring
        self._last: tuple[str, SshSettings, asyncssh.SSHClientConnection | None] | None = None

    async def log_in_again(self) -> asyncssh.SSHClientConnection:
        """Open a further connection to the last host, without prompts. Raises CockpitError."""
        assert self._last is not None
        return await Login(*self._last, None, self._keyring).open()

    async def open(self, name: str, destination: Destination, trail: tuple[Destination, ...] = ()) -> None:
        """Open the connection to a destination; `trail` are the destinations that are reached through it."""
        if destination in trail:
            raise UsageError("ProxyJump is circular; correct ssh_config", subject=name)
        settings = await asyncio.to_thread(read_settings, destination, self._ssh_config)
        if not self.opened:
            for jump in settings.jumps:
                await self.open(f"{name}, jump host {jump.host}", jump, (*trail, destination))
        tunnel = self.opened[-1] if self.opened else None
        self._last = (name, settings, tunnel)
        self.opened.append(await Login(*self._last, self._asker, self._keyring).open())


async def _awaited(name: str, operation: Awaitable[_Result]) -> _Result:
    """Await an operation on the connection. Raises HostError if it fails."""
    try:
        return await operation
    except (asyncssh.Error, OSError) as error:
        raise HostError(f"connection lost: {reason(error)}", subject=name) from None


async def _close(connections: Sequence[asyncssh.SSHClientConnection]) -> None:
    """Close connections in this order; abort those that are still open after CLOSE_TIMEOUT each, or if cancelled."""
    try:
        for connection in connections:
            connection.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await connection.wait_closed()
    finally:
        for connection in connections:
            connection.abort()
