"""A real SSH server of this machine for the tests: whoever has the client's key gets a real /bin/sh."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path

import asyncssh

CHUNK = 65536


class Sshd:
    """Listens on loopback once started, and after a stop again on the same port.

    `directory` gets the client's key, ssh_config (Host web), and known_hosts where there is none yet. `noise` is a
    shell command that every login runs first, as a .bashrc would. `login` is the user's shell, run with what is in
    `environment` on top of the tests' own. `commands` are the shells that it runs.
    With `password` set it takes that as well as the key, over the password method or, with `prompts`, by asking for
    just these things (which the answers must match). `tried` are the passwords that came.
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
        self.tried: list[str] = []
        self.forwards_back = True
        self.port = 0
        self.ssh_config = directory / "ssh_config"
        self.known_hosts = directory / "known_hosts"
        self.client_key = directory / "key"
        self._shown: list[tuple[asyncssh.SSHKey, asyncssh.SSHCertificate]] = []
        self._listener: asyncssh.SSHAcceptor | None = None
        self._connections: list[asyncssh.SSHServerConnection] = []
        self.let_in(asyncssh.generate_private_key("ssh-ed25519"))

    def let_in(self, key: asyncssh.SSHKey) -> None:
        """Makes `key` the client's, and the one that the server takes."""
        self.client_key.unlink(missing_ok=True)
        self.client_key.touch(0o600)
        key.write_private_key(self.client_key)
        key.write_public_key(self.directory / "authorized_keys")

    async def start(self) -> Sshd:
        self._listener = await asyncssh.listen(
            "127.0.0.1",
            self.port,
            server_host_keys=self._shown or [self.host_key],
            authorized_client_keys=str(self.directory / "authorized_keys"),
            process_factory=self._serve,
            server_factory=lambda: _Watcher(self, self._connections),
            encoding=None,
            reuse_address=True,
        )
        self.port = self._listener.get_port()
        self.write_config()
        if not self.known_hosts.exists():
            self.trust(self.host_key)
        return self

    def write_config(self, **options: str) -> None:
        """Writes ssh_config; further options stand before those that are always there, so they win."""
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
        """Writes known_hosts anew with these keys."""
        name = name or f"[127.0.0.1]:{self.port}"
        self.known_hosts.write_text("".join(f"{name} {public(key)}\n" for key in keys))

    async def certify(self, authority: asyncssh.SSHKey) -> None:
        """Starts anew with a certificate of this authority for its key."""
        await self.stop()
        certificate = authority.generate_host_certificate(self.host_key, "web", principals=["127.0.0.1"])
        self._shown = [(self.host_key, certificate)]
        await self.start()

    async def stop(self) -> None:
        """Cuts all connections and ends what they run."""
        if self._listener:
            self._listener.close()
            await self._listener.wait_closed()
            self._listener = None
        for connection in self._connections:
            connection.abort()
        for connection in self._connections:
            await connection.wait_closed()
        self._connections.clear()
        for command in self.commands:
            _end(command)
            # What nobody took of its output keeps its pipe open, and the wait would have no end.
            command._transport.close()  # type: ignore[attr-defined]
            await command.wait()

    def cut(self) -> None:
        """Cuts all connections, as a network does; what they run is not ended by it, and new ones are taken."""
        for connection in self._connections:
            connection.abort()
        self._connections.clear()

    async def _serve(self, session: asyncssh.SSHServerProcess[bytes]) -> None:
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


class _Watcher(asyncssh.SSHServer):
    def __init__(self, sshd: Sshd, connections: list[asyncssh.SSHServerConnection]) -> None:
        self._sshd = sshd
        self._connections = connections

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connections.append(conn)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        return True  # it may serve as a jump host

    def server_requested(self, listen_host: str, listen_port: int) -> bool:
        return self._sshd.forwards_back

    def password_auth_supported(self) -> bool:
        return self._sshd.password is not None and not self._sshd.prompts

    def validate_password(self, username: str, password: str) -> bool:
        self._sshd.tried.append(password)
        return password == self._sshd.password

    def kbdint_auth_supported(self) -> bool:
        return bool(self._sshd.prompts)

    def get_kbdint_challenge(
        self, username: str, lang: str, submethods: str
    ) -> tuple[str, str, str, list[tuple[str, bool]]]:
        return "", "", "", [(prompt, False) for prompt in self._sshd.prompts]

    def validate_kbdint_response(self, username: str, responses: Sequence[str]) -> bool:
        self._sshd.tried += responses
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


def _end(command: Process) -> None:
    if command.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(command.pid, signal.SIGCONT)
            os.killpg(command.pid, signal.SIGKILL)


def public(key: asyncssh.SSHKey) -> str:
    """The public half as a line of known_hosts has it, without a comment."""
    return " ".join(key.export_public_key().decode().split()[:2])


def locked(key: asyncssh.SSHKey, passphrase: str, form: str = "openssh") -> bytes:
    """The private half under a passphrase, in one round of bcrypt; ssh-keygen does more, at a second of CPU time."""
    return key.export_private_key(form, passphrase, rounds=1, ignore_few_rounds=True)
