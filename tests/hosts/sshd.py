"""A real SSH server on this machine: clients with the authorized key get a real /bin/sh."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncssh

from cockpit.demo.sshhost import CIPHER
from tests.load.servers import stop_listening
from tests.waiting import until

CHUNK = 65536


class Sshd:
    """An SSH server on loopback; a restart keeps its port.

    `directory` contains the client's key, ssh_config (Host web), and known_hosts, which is written only if it does
    not exist. `noise` is a shell command that every login runs first, like a .bashrc. `login` is the user's shell; its
    environment is that of the tests plus `environment`. `commands` are the running shells.
    With `password` set, the server accepts it as well as the key, with the password method or, with `prompts`, with
    keyboard-interactive prompts (prompt -> expected response). `tried_passwords` are all passwords received.
    `max_sessions` is the limit per connection.
    """

    def __init__(self, directory: Path, *, noise: str = "", login: Sequence[str] = ("/bin/sh",)) -> None:
        self.directory = directory
        self.noise = noise
        self.login = login
        self.environment: dict[str, str] = {}
        self.host_key = asyncssh.generate_private_key("ssh-ed25519")
        self.commands: list[Process] = []
        self.password: str | None = None
        self.prompts: dict[str, str] = {}
        self.tried_passwords: list[str] = []
        self.allows_remote_forwarding = True
        self.max_sessions: int | None = None
        self.port = 0
        self.ssh_config = directory / "ssh_config"
        self.known_hosts = directory / "known_hosts"
        self.client_key = directory / "key"
        self._certified_keys: list[tuple[asyncssh.SSHKey, asyncssh.SSHCertificate]] = []
        self._listener: asyncssh.SSHAcceptor | None = None
        self._connections: list[asyncssh.SSHServerConnection] = []
        self.authorize(asyncssh.generate_private_key("ssh-ed25519"))

    def authorize(self, key: asyncssh.SSHKey) -> None:
        """Use `key` as the client's key, and accept it."""
        self.client_key.unlink(missing_ok=True)
        self.client_key.touch(0o600)
        key.write_private_key(self.client_key)
        key.write_public_key(self.directory / "authorized_keys")

    async def start(self) -> Sshd:
        """Listen; after `stop`, on the same port, which another test may use for a moment."""

        async def listen() -> asyncssh.SSHAcceptor | None:
            with contextlib.suppress(OSError):
                return await asyncssh.listen(
                    "127.0.0.1",
                    self.port,
                    server_host_keys=self._certified_keys or [self.host_key],
                    authorized_client_keys=str(self.directory / "authorized_keys"),
                    encryption_algs=[CIPHER],
                    server_factory=lambda: _Authentication(self, self._connections),
                    encoding=None,
                    reuse_address=True,
                )
            return None

        self._listener = await until(listen)
        self.port = self._listener.get_port()
        self.write_config()
        if not self.known_hosts.exists():
            self.trust(self.host_key)
        return self

    def write_config(self, **options: str) -> None:
        """Write ssh_config; `options` come before the fixed options, so they take precedence."""
        fixed = {
            "HostName": "127.0.0.1",
            "Port": str(self.port),
            "User": "root",
            "IdentityFile": f'"{self.client_key}"',
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": f'"{self.known_hosts}"',
            "GlobalKnownHostsFile": "/dev/null",
        }
        lines = [f"    {name} {value}" for name, value in (*options.items(), *fixed.items())]
        self.ssh_config.write_text("\n".join(["Host web", *lines, ""]))

    def trust(self, *keys: asyncssh.SSHKey, name: str | None = None) -> None:
        """Overwrite known_hosts with these keys."""
        name = name or f"[127.0.0.1]:{self.port}"
        self.known_hosts.write_text("".join(f"{name} {public(key)}\n" for key in keys))

    async def certify(self, authority: asyncssh.SSHKey) -> None:
        """Restart with a host certificate of this authority."""
        await self.stop()
        certificate = authority.generate_host_certificate(self.host_key, "web", principals=["127.0.0.1"])
        self._certified_keys = [(self.host_key, certificate)]
        await self.start()

    async def stop(self) -> None:
        """Abort all connections and kill their commands."""
        if self._listener:
            await stop_listening(self._listener)
        for connection in self._connections:
            connection.abort()
        for connection in self._connections:
            await connection.wait_closed()
        if self._listener:
            # Since Python 3.12 it waits for the connections, too.
            await self._listener.wait_closed()
            self._listener = None
        self._connections.clear()
        for command in self.commands:
            _kill(command)
            # Unread output keeps its pipe open, and `wait` would never return.
            command._transport.close()  # type: ignore[attr-defined]
            await command.wait()

    def cut(self) -> None:
        """Abort all connections, like a network failure; their commands keep running, new connections are accepted."""
        for connection in self._connections:
            connection.abort()
        self._connections.clear()

    @property
    def logins(self) -> int:
        """The number of connections since the start."""
        return len(self._connections)

    async def serve(self, session: asyncssh.SSHServerProcess[bytes]) -> None:
        line = f"{self.noise}\n{session.command}" if self.noise else session.command or ""
        command = await asyncio.create_subprocess_exec(
            *self.login,
            "-c",
            line,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
            env={**os.environ, **self.environment},
        )
        self.commands.append(command)
        assert command.stdin and command.stdout and command.stderr
        feeding = asyncio.ensure_future(_feed(session, command.stdin))
        try:
            with contextlib.suppress(asyncssh.Error, OSError):
                await asyncio.gather(_pump(command.stdout, session.stdout), _pump(command.stderr, session.stderr))
                session.exit(await command.wait())
        finally:
            feeding.cancel()


class _Authentication(asyncssh.SSHServer):
    def __init__(self, sshd: Sshd, connections: list[asyncssh.SSHServerConnection]) -> None:
        self._sshd = sshd
        self._connections = connections
        self._sessions = 0

    def session_requested(self) -> asyncssh.SSHServerProcess[bytes] | bool:
        if self._sessions == self._sshd.max_sessions:
            return False
        self._sessions += 1
        return asyncssh.SSHServerProcess(self._serve, None, 3, False)

    async def _serve(self, session: asyncssh.SSHServerProcess[bytes]) -> None:
        try:
            await self._sshd.serve(session)
        finally:
            self._sessions -= 1

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._connections.append(conn)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> Any:
        return self._forward(dest_host, dest_port)  # as a jump host

    async def _forward(self, host: str, port: int) -> Any:
        """Connect to the destination. asyncssh leaves that connection open if the client's was lost meanwhile."""
        forwarder = await self._connection.forward_connection(host, port)
        if self._connection.is_closed():
            forwarder.close()
        return forwarder

    def server_requested(self, listen_host: str, listen_port: int) -> bool:
        return self._sshd.allows_remote_forwarding

    def password_auth_supported(self) -> bool:
        return self._sshd.password is not None and not self._sshd.prompts

    def validate_password(self, username: str, password: str) -> bool:
        self._sshd.tried_passwords.append(password)
        return password == self._sshd.password

    def kbdint_auth_supported(self) -> bool:
        return bool(self._sshd.prompts)

    def get_kbdint_challenge(
        self, username: str, lang: str, submethods: str
    ) -> tuple[str, str, str, list[tuple[str, bool]]]:
        return "", "", "", [(prompt, False) for prompt in self._sshd.prompts]

    def validate_kbdint_response(self, username: str, responses: Sequence[str]) -> bool:
        self._sshd.tried_passwords += responses
        return list(responses) == list(self._sshd.prompts.values())


async def _feed(session: asyncssh.SSHServerProcess[bytes], stdin: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncssh.Error, OSError):
        while data := await session.stdin.read(CHUNK):
            stdin.write(data)
            await stdin.drain()
    stdin.close()


async def _pump(source: asyncio.StreamReader, sink: asyncssh.SSHWriter[bytes]) -> None:
    while data := await source.read(CHUNK):
        sink.write(data)
        await sink.drain()


def _kill(command: Process) -> None:
    if command.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(command.pid, signal.SIGCONT)
            os.killpg(command.pid, signal.SIGKILL)


def public(key: asyncssh.SSHKey) -> str:
    """The public key as in known_hosts, without a comment."""
    return " ".join(key.export_public_key().decode().split()[:2])


def locked(key: asyncssh.SSHKey, passphrase: str, form: str = "openssh") -> bytes:
    """The private key under a passphrase, with one round of bcrypt; ssh-keygen's rounds take a second of CPU time."""
    return key.export_private_key(form, passphrase, rounds=1, ignore_few_rounds=True)
