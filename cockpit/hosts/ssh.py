"""The shell of a host over SSH. Importing this loads asyncssh, so it is imported only where a host has `ssh`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import asyncssh

from cockpit.hosts.known_hosts import KnownHosts
from cockpit.hosts.shell import Completed, LineReader, Tail
from cockpit.hosts.ssh_errors import Witness, explain, reason
from cockpit.hosts.ssh_settings import Destination, Settings, public_half, read_settings
from cockpit.model.errors import HostError, UsageError
from cockpit.model.hosts import HostConfig

# Seconds for name, connection, key exchange and login together.
CONNECT_TIMEOUT = 15.0
# A connection is given up when two questions in a row, this many seconds apart, stay without answer.
KEEPALIVE_INTERVAL = 5.0
KEEPALIVE_COUNT = 2
# Seconds that a connection may take to say goodbye.
CLOSE_TIMEOUT = 2.0
# Bytes that a server may send ahead of what is read.
WINDOW = 512 * 1024

# Offered after the kinds of key that are known, so that a server with another kind is seen to have changed.
_HOST_KEY_KINDS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)

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
                stdout, stderr = await _talk(self._name, process.communicate(input))
                await process.wait_closed()
        except TimeoutError:
            raise HostError(f"{self._name}: {command!r} took longer than {timeout:g} s") from None
        finally:
            if process:
                process.close()
        if process.returncode is None:
            raise HostError(f"{self._name}: connection lost while {command!r} ran")
        return Completed(process.returncode, _bytes(stdout), _bytes(stderr))

    async def open(self, command: str) -> SshChannel:
        return SshChannel(self._name, await self._start(command))

    async def wait_closed(self) -> None:
        await self._connection.wait_closed()

    async def close(self) -> None:
        await _close([self._connection, *reversed(self._via)])

    async def _start(self, command: str) -> asyncssh.SSHClientProcess[bytes]:
        starting = self._connection.create_process(
            command, encoding=None, request_pty=False, x11_forwarding=False, window=WINDOW
        )
        return await _talk(self._name, starting)


async def connect(config: HostConfig, ssh_config: Path | None = None) -> SshShell:
    """Connects to a host that has `ssh`. Its key must be the one in known_hosts; there is no way around that.

    Raises HostKeyUnknown, HostKeyChanged, AuthRefused, HostError, or UsageError where ssh_config does not read.
    """
    assert config.ssh is not None
    destination = Destination.parse(config.ssh)
    opened: list[asyncssh.SSHClientConnection] = []
    try:
        await _open(config.name, destination, ssh_config, opened)
    except BaseException:
        await _close(list(reversed(opened)))
        raise
    return SshShell(config.name, opened[-1], opened[:-1])


async def _open(
    name: str,
    destination: Destination,
    ssh_config: Path | None,
    opened: list[asyncssh.SSHClientConnection],
    trail: tuple[Destination, ...] = (),
) -> None:
    """Opens the connection over its jump hosts; each that stands is added to `opened`. `trail` led to these."""
    if destination in trail:
        raise UsageError(f"{name}: ProxyJump goes round in a circle")
    settings = await asyncio.to_thread(read_settings, destination, ssh_config)
    if not opened:
        for jump in settings.jumps:
            await _open(f"{name}, jump host {jump.host}", jump, ssh_config, opened, (*trail, destination))
    known = await asyncio.to_thread(KnownHosts, settings.known_hosts, settings.known_as, settings.port)
    witness = Witness()
    tunnel = opened[-1] if opened else None
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            opened.append(await asyncssh.connect(**_options(settings, known, witness, tunnel)))
    except (asyncssh.Error, asyncssh.KeyImportError, OSError, ValueError) as error:
        raise await explain(name, settings, known, witness, error, CONNECT_TIMEOUT) from None


def _options(
    settings: Settings, known: KnownHosts, witness: Witness, tunnel: asyncssh.SSHClientConnection | None
) -> dict[str, Any]:
    """What asyncssh is told. All that is not named here it takes from ssh_config itself."""
    destination = settings.destination
    options: dict[str, Any] = {
        "host": destination.host,
        "config": [str(path) for path in settings.config_files],
        "tunnel": tunnel,
        "client_factory": lambda: witness,
        "known_hosts": known.entries,
        "x509_trusted_certs": None,
        "client_keys": [str(path) for path in settings.identities],
        "ignore_encrypted": True,
        "agent_path": None if settings.identities_only and not settings.identities else settings.agent or None,
        "agent_forwarding": False,
        "keepalive_interval": KEEPALIVE_INTERVAL,
        "keepalive_count_max": KEEPALIVE_COUNT,
        "connect_timeout": None,
        "login_timeout": CONNECT_TIMEOUT,
        "encoding": None,
    }
    if destination.user:
        options["username"] = destination.user
    if destination.port:
        options["port"] = destination.port
    if settings.identities_only and settings.identities:
        options["agent_identities"] = [str(public_half(path)) for path in settings.identities]
    if not settings.config.get("HostKeyAlgorithms"):
        options["server_host_key_algs"] = _host_key_kinds(known)
    return options


def _host_key_kinds(known: KnownHosts) -> str:
    """Kinds of host key in the order of preference; a leading + adds them to those of host certificates."""
    kinds = [kind.decode() for key in known.trusted for kind in key.sig_algorithms]
    return ("+" if known.authorities else "") + ",".join(dict.fromkeys((*kinds, *_HOST_KEY_KINDS)))


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


def _bytes(data: str | bytes | None) -> bytes:
    return data.encode() if isinstance(data, str) else data or b""
