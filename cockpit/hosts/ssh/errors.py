"""Connection errors as one line with the host, the problem and the fix."""

from __future__ import annotations

import asyncio
import errno
import os
import shlex
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import asyncssh

from cockpit.hosts.ssh.keys import OfferedKeys
from cockpit.hosts.ssh.known_hosts import KnownHosts
from cockpit.hosts.ssh.offer import offered_host_keys, without_common
from cockpit.hosts.ssh.settings import SshSettings
from cockpit.model.errors import (
    AuthRefused,
    CockpitError,
    CredentialsRequired,
    HostError,
    HostKeyChanged,
    HostKeyUnknown,
    UsageError,
)
from cockpit.model.text import count_text, sanitize


class LoginClient(asyncssh.SSHClient):
    """Client callbacks of a login: records the host key (`shown`) or certificate authority that is not in known_hosts,
    and rejects it.

    Answers with the password, if any, once; `ask` prompts for other questions of the server. `limit` is the timeout of
    the attempt: `seconds` for the connect, then reset to `login_seconds`.
    """

    def __init__(
        self, login_seconds: float, password: str | None, ask: Callable[[str], Awaitable[str | None]] | None
    ) -> None:
        self.connection: asyncssh.SSHClientConnection | None = None
        self.shown: asyncssh.SSHKey | None = None
        self.authority: asyncssh.SSHKey | None = None
        self.wants_password = False
        self.limit: asyncio.Timeout | None = None
        self.seconds = login_seconds
        self._login_seconds = login_seconds
        self._password = password
        self._ask = ask

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self.connection = conn
        self.seconds = self._login_seconds
        self._set_timeout(self.seconds)

    def is_encrypted(self) -> bool:
        """Return whether keys were exchanged, so that a failure is one of the login."""
        return self.connection is not None and bool(self.connection.get_extra_info("send_cipher"))

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.shown = key
        return False

    def validate_host_ca_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.authority = key
        return False

    def password_auth_requested(self) -> str | None:
        self.wants_password = True
        return self._use_password()

    def kbdint_auth_requested(self) -> str | None:
        self.wants_password = True
        return None if self._password is None else ""

    async def kbdint_challenge_received(
        self, name: str, instructions: str, lang: str, prompts: Sequence[tuple[str, bool]]
    ) -> list[str] | None:
        """Answer the first hidden prompt with the password; the user answers the others."""
        answers = []
        for prompt, shown in prompts:
            answer = await self._prompt(prompt) if shown or self._password is None else self._use_password()
            if answer is None:
                return None
            answers.append(answer)
        return answers

    def _use_password(self) -> str | None:
        password, self._password = self._password, None
        return password

    async def _prompt(self, prompt: str) -> str | None:
        if self._ask is None:
            return None
        self._set_timeout(None)
        try:
            return await self._ask(prompt)
        finally:
            self._set_timeout(self._login_seconds)

    def _set_timeout(self, seconds: float | None) -> None:
        if self.limit is not None:
            self.limit.reschedule(None if seconds is None else asyncio.get_running_loop().time() + seconds)


@dataclass(frozen=True)
class Attempt:
    """A failed login, with its settings and observations. `host_keys` are the accepted algorithms, `wrong` is the
    number of wrong secrets so far."""

    name: str
    settings: SshSettings
    known: KnownHosts
    keys: OfferedKeys
    client: LoginClient
    tunnel: asyncssh.SSHClientConnection | None
    host_keys: str
    wrong: int = 0


async def explain(attempt: Attempt, error: Exception) -> CockpitError:
    """Return the CockpitError for an error of asyncssh during the connect."""
    name, settings = attempt.name, attempt.settings
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return _key_error(name, settings, attempt.known, attempt.client, error)
    if was_denied(error, attempt.client):
        return await _auth_error(attempt)
    if isinstance(error, TimeoutError):
        silence = f"no answer from {settings.where} within {attempt.client.seconds:.3g} s"
        return HostError(f"{silence}; is it up, and does a firewall allow ssh?", subject=name)
    if isinstance(error, socket.gaierror | UnicodeError):
        why = sanitize((isinstance(error, OSError) and error.strerror) or "invalid name")
        return HostError(f"cannot resolve {settings.host} ({why}); check `ssh` or ssh_config", subject=name)
    if isinstance(error, asyncssh.KeyImportError) or not isinstance(error, asyncssh.Error | OSError):
        return UsageError(f"invalid ssh_config or key file: {sanitize(str(error), 200)}", subject=name)
    cut = isinstance(error, asyncssh.KeyExchangeFailed | asyncssh.ConnectionLost | ConnectionResetError)
    if cut and not settings.options.value("proxycommand"):
        offered = await offered_host_keys(settings.host, settings.port, attempt.tunnel)
        named = settings.options.value("hostkeyalgorithms") is not None
        if problem := without_common(offered, attempt.host_keys, named):
            return HostError(f"{settings.where}: {problem}", subject=name)
    return HostError(f"{settings.where}: {reason(error)}", subject=name)


def was_denied(error: Exception, client: LoginClient) -> bool:
    """Return whether the login failed; OpenSSH disconnects with a protocol error after too many keys."""
    return isinstance(error, asyncssh.PermissionDenied) or (
        isinstance(error, asyncssh.ProtocolError) and client.is_encrypted()
    )


def reason(error: BaseException) -> str:
    """Return the text of an error, without Python's additions."""
    number = getattr(error, "errno", None)
    if number == errno.ECONNREFUSED:
        return "connection refused; is sshd running there, and on this port?"
    text = error.reason if isinstance(error, asyncssh.Error) else str(error)
    if isinstance(error, asyncssh.ChannelOpenError) and error.code == asyncssh.OPEN_CONNECT_FAILED:
        return f"connection failed ({sanitize(text, 200)}); is sshd running there, and on this port?"
    return os.strerror(number).lower() if number else sanitize(text, 200) or type(error).__name__


def _key_error(
    name: str, settings: SshSettings, known: KnownHosts, client: LoginClient, error: asyncssh.HostKeyNotVerifiable
) -> HostError:
    files = ", ".join(str(file) for file in known.files if file.is_file()) or "any known_hosts file"
    if client.authority:
        return HostKeyUnknown(
            f"the host certificate of {settings.where} is signed by {_key_text(client.authority)}, which is not a"
            f" @cert-authority in {files}",
            subject=name,
        )
    shown = client.shown
    if shown is None:
        # A revoked key, or a certificate that is expired or for another host.
        return HostKeyChanged(f"the host key of {settings.where} was refused: {reason(error)}", subject=name)
    if known.expected:
        expected = ", ".join(f"{_key_text(entry.key)} ({entry.file} line {entry.line})" for entry in known.expected)
        changed = dict.fromkeys(entry.file for entry in known.expected)
        remedy = "; ".join(f"ssh-keygen -R {shlex.quote(known.lookup)} -f {shlex.quote(str(file))}" for file in changed)
        return HostKeyChanged(
            f"the host key of {settings.where} has CHANGED and was refused. Offered: {_key_text(shown)}."
            f" Known: {expected}. Someone may intercept the connection."
            f" If you know why the key changed, remove the old key: {remedy}",
            subject=name,
        )
    if settings.options.value("knownhostscommand"):
        files += " (KnownHostsCommand is not run by cockpit)"
    compare = "compare the fingerprint with the server's and"
    if settings.user_file is None:
        way_out = "UserKnownHostsFile of ssh_config names no file that can keep it; name one"
    elif settings.options.by_client:
        way_out = f"{compare} accept it with: {_accept(settings)}"
    else:
        way_out = f"{compare} accept it on the screen of cockpit"
    return HostKeyUnknown(
        f"the host key of {settings.where}, {_key_text(shown)}, is not in {files}; {way_out}", subject=name
    )


def _key_text(key: asyncssh.SSHKey) -> str:
    return f"{key.get_algorithm()} {key.get_fingerprint()}"


def _accept(settings: SshSettings) -> str:
    """Return the ssh command that prints the key and asks whether to accept it, with any ssh_config."""
    words = ["ssh"]
    if settings.explicit_config:
        words += ["-F", str(settings.explicit_config)]
    words += ["-o", "StrictHostKeyChecking=ask"]
    if settings.destination.port:
        words += ["-p", str(settings.destination.port)]
    user = f"{settings.destination.user}@" if settings.destination.user else ""
    return shlex.join([*words, f"{user}{settings.destination.host}", "true"])


async def _auth_error(attempt: Attempt) -> AuthRefused:
    settings, keys = attempt.settings, attempt.keys
    tried = [*map(str, keys.plain), *(str(path) for path in keys.encrypted if path not in keys.accepted)]
    name = attempt.name
    refusal = f"login as {settings.user} on {settings.where} failed"
    wrong = f" ({count_text(attempt.wrong, 'wrong attempt')})" if attempt.wrong else ""
    if keys.needed():
        files = ", ".join(map(str, keys.needed()))
        way_out = (
            f"enter it on the screen or {'' if settings.agent else 'start ssh-agent and '}add the key with ssh-add"
        )
        return CredentialsRequired(f"{refusal}: no passphrase for {files}{wrong}; {way_out}", subject=name)
    refusal += f"; tried {', '.join([*tried, await _agent_keys(settings)])}"
    if keys.invalid:
        refusal += f"; invalid key: {', '.join(map(str, keys.invalid))}"
    if attempt.client.wants_password:
        way_out = "enter it on the screen or install a public key with ssh-copy-id"
        return CredentialsRequired(f"{refusal}. It also accepts a password{wrong}; {way_out}", subject=name)
    way_out = f"Add the public key to {settings.user}'s authorized_keys there, or load another key"
    return AuthRefused(f"{refusal}. {way_out}", subject=name)


async def _agent_keys(settings: SshSettings) -> str:
    if not settings.agent:
        return "no ssh agent (not running)"
    with suppress(OSError, asyncssh.Error, ValueError):
        async with asyncssh.connect_agent(settings.agent) as agent:
            count = len(await agent.get_keys())
            return f"the ssh agent's {count_text(count, 'key')}"
    return f"no ssh agent ({settings.agent} does not answer)"
