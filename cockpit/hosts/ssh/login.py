"""Login to one SSH server, with prompts for keys and secrets.

No connection stays open while the user reads a prompt: the connection is closed, the user is prompted, and the login is
retried with the answer.
"""

from __future__ import annotations

import asyncio
import re
import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import asyncssh

from cockpit.hosts.shell import SILENCE
from cockpit.hosts.ssh.errors import Attempt, LoginClient, explain, was_denied
from cockpit.hosts.ssh.keys import OfferedKeys, decrypt, sort_keys
from cockpit.hosts.ssh.known_hosts import KnownHosts, add_known_host, read_revoked, unknown_host_key
from cockpit.hosts.ssh.offer import HOST_KEY_KINDS
from cockpit.hosts.ssh.prompts import Keyring, Prompter
from cockpit.hosts.ssh.settings import SshSettings, public_half
from cockpit.model.text import count_text, sanitize

# Timeouts (s): of the connect, short so that a restarted host is soon found; then of key exchange and login together.
DIAL_TIMEOUT = 4.0
CONNECT_TIMEOUT = 15.0
# Maximum number of attempts per secret.
TRIES = 3
KEEPALIVE_COUNT = 3


class Login:
    """A login to the server of `settings`, through the connection `tunnel` if any."""

    def __init__(
        self,
        name: str,
        settings: SshSettings,
        tunnel: asyncssh.SSHClientConnection | None,
        asker: Prompter | None,
        keyring: Keyring,
    ) -> None:
        self._name = name
        self._settings = settings
        self._tunnel = tunnel
        self._asker = asker
        self._keyring = keyring
        self._password: str | None = None
        self._passwords_tried = 0
        self._wrong = 0
        # No further prompts for these: key files after TRIES wrong passphrases, and "host key" after it was accepted.
        self._prompted: set[Path | str] = set()
        # OfferedKeys that ssh_config lets in without a prompt (StrictHostKeyChecking).
        self._accepted: list[asyncssh.SSHKey] = []

    async def open(self) -> asyncssh.SSHClientConnection:
        """Open the connection. Raises the CockpitError that `explain` returns."""
        while True:
            settings = self._settings
            known = await asyncio.to_thread(_known_hosts, self._name, settings)
            known.trusted += self._accepted
            keys = await asyncio.to_thread(sort_keys, settings.identities, self._keyring)
            password, self._password = self._password, None
            client = LoginClient(CONNECT_TIMEOUT, password, self._prompt_live if self._asker else None)
            try:
                return await self._try(known, keys, client)
            except (asyncssh.Error, asyncssh.KeyImportError, OSError, ValueError) as error:
                if isinstance(error, asyncssh.HostKeyNotVerifiable) and await self._accept_host_key(known, client):
                    continue
                kinds = settings.options.value("hostkeyalgorithms") or _host_key_kinds(known)
                attempt = Attempt(self._name, settings, known, keys, client, self._tunnel, kinds)
                if self._asker is None or not await self._prompt(self._asker, attempt, error):
                    raise await explain(replace(attempt, wrong=self._wrong), error) from None

    async def _try(self, known: KnownHosts, keys: OfferedKeys, client: LoginClient) -> asyncssh.SSHClientConnection:
        client.seconds = await self._connect_timeout()
        with NamedTemporaryFile("w", encoding="utf-8", prefix="cockpit-ssh-") as config:
            config.write(self._settings.options.text)
            config.flush()
            options = _options(self._settings, known, keys, client, self._tunnel)
            try:
                async with asyncio.timeout(client.seconds) as client.limit:
                    return await asyncssh.connect(config=[config.name], **options)
            except UnicodeError:
                raise
            except ValueError as error:
                raise ValueError(re.sub(r"^\S+ line \d+: ", "", str(error))) from None

    async def _connect_timeout(self) -> float:
        """Return the timeout (s) of the connect, which is longer if names resolve slowly."""
        if self._tunnel or self._settings.options.value("proxycommand"):
            return CONNECT_TIMEOUT
        loop = asyncio.get_running_loop()
        start = loop.time()
        with suppress(OSError, UnicodeError):
            await loop.getaddrinfo(self._settings.host, self._settings.port, type=socket.SOCK_STREAM)
        return DIAL_TIMEOUT + 2 * (loop.time() - start)

    async def _prompt(self, asker: Prompter, attempt: Attempt, error: Exception) -> bool:
        """Prompt for the missing key or secret; return whether to retry."""
        if isinstance(error, asyncssh.HostKeyNotVerifiable):
            return await self._prompt_host_key(asker, attempt.known, attempt.client)
        if not was_denied(error, attempt.client):
            return False
        for path in attempt.keys.needed():
            if path not in self._prompted:
                return await self._prompt_passphrase(asker, path)
        return attempt.client.wants_password and await self._prompt_password(asker)

    async def _accept_host_key(self, known: KnownHosts, client: LoginClient) -> bool:
        """Accept an unknown key without a prompt if ssh_config says so, and add it to its file, if any."""
        settings = self._settings
        accepts = settings.unknown_keys == "accept" and not known.expected and not self._accepted
        if not accepts or client.shown is None:
            return False
        if settings.user_file is not None:
            hashed = settings.options.is_on("hashknownhosts")
            key = unknown_host_key(settings.where, known.lookup, client.shown, settings.user_file, hashed)
            await asyncio.to_thread(add_known_host, key)
        self._accepted.append(client.shown)
        return True

    async def _prompt_host_key(self, asker: Prompter, known: KnownHosts, client: LoginClient) -> bool:
        """Prompt for an unknown key. A key that differs from the known one is always refused."""
        file = self._settings.user_file
        if file is None or client.shown is None or known.expected or "host key" in self._prompted:
            return False
        if self._settings.unknown_keys != "ask":
            return False
        key = unknown_host_key(
            self._settings.where, known.lookup, client.shown, file, self._settings.options.is_on("hashknownhosts")
        )
        if not await asker.trust(self._name, key):
            return False
        self._prompted.add("host key")
        await asyncio.to_thread(add_known_host, key)
        return True

    async def _prompt_passphrase(self, asker: Prompter, path: Path) -> bool:
        """Prompt for the passphrase of a key that the server accepts, at most TRIES times; return whether to retry."""
        async with self._keyring.prompt_locks[path]:
            if path in self._keyring.keys:
                return True
            question = f"passphrase of {path}"
            for attempt in range(1, TRIES + 1):
                passphrase = await asker.secret(self._name, question)
                if passphrase is None:
                    return False
                try:
                    self._keyring.keys[path] = await asyncio.to_thread(decrypt, path, passphrase)
                    return True
                except (asyncssh.KeyEncryptionError, asyncssh.KeyImportError) as error:
                    self._wrong += 1
                    left = count_text(TRIES - attempt, "attempt")
                    question = f"passphrase of {path} ({sanitize(str(error), 80)}; {left} left)"
        self._prompted.add(path)
        return True

    async def _prompt_password(self, asker: Prompter) -> bool:
        """Prompt for the password, at most TRIES times; return whether to retry."""
        self._wrong = self._passwords_tried
        left = TRIES - self._passwords_tried
        if left <= 0:
            return False
        wrong = f" (wrong; {count_text(left, 'attempt')} left)" if self._passwords_tried else ""
        who = f"{self._settings.user}@{self._settings.where}"
        self._password = await asker.secret(self._name, f"password of {who}{wrong}")
        self._passwords_tried += 1
        return self._password is not None

    async def _prompt_live(self, prompt: str) -> str | None:
        """Prompt for another question of the server, such as a one-time code, on the open connection."""
        assert self._asker is not None
        return await self._asker.secret(self._name, f"{self._settings.where} asks: {sanitize(prompt, 80).strip()}")


def _known_hosts(name: str, settings: SshSettings) -> KnownHosts:
    """Read the known keys. Raises UsageError if the revoked keys cannot be read, since any key may be revoked."""
    revoked = [key for file in settings.revoked_host_keys for key in read_revoked(name, file)]
    is_alias = settings.options.value("hostkeyalias") is not None
    return KnownHosts(settings.known_hosts, settings.known_as, settings.port, is_alias=is_alias, revoked=revoked)


def _options(
    settings: SshSettings,
    known: KnownHosts,
    keys: OfferedKeys,
    client: LoginClient,
    tunnel: asyncssh.SSHClientConnection | None,
) -> dict[str, Any]:
    """Return the options of asyncssh.connect that take precedence over ssh_config."""
    destination = settings.destination
    identities_only = settings.options.is_on("identitiesonly")
    options: dict[str, Any] = {
        "host": destination.host,
        "tunnel": tunnel,
        "client_factory": lambda: client,
        "known_hosts": known.entries,
        "x509_trusted_certs": None,
        "client_keys": keys.pairs(),
        "passphrase": keys.require,
        "agent_path": None if identities_only and not settings.identities else settings.agent or None,
        "agent_forwarding": False,
        "keepalive_interval": SILENCE / (KEEPALIVE_COUNT + 1),
        "keepalive_count_max": KEEPALIVE_COUNT,
        "connect_timeout": None,
        "login_timeout": None,
        "encoding": None,
    }
    if destination.user:
        options["username"] = destination.user
    if destination.port:
        options["port"] = destination.port
    if identities_only and settings.identities:
        public = [public_half(path) for path in (*keys.plain, *keys.invalid)]
        files = [str(path) for path in public if path not in keys.invalid]
        options["agent_identities"] = [*files, *(key.public_data for key in keys.encrypted.values())]
    if not settings.options.value("hostkeyalgorithms"):
        options["server_host_key_algs"] = _host_key_kinds(known)
    return options


def _host_key_kinds(known: KnownHosts) -> str:
    """Return kinds of host keys in the order of preference; a leading + adds them to the kinds of certificates."""
    kinds = [kind.decode() for key in known.trusted for kind in key.sig_algorithms]
    return ("+" if known.authorities else "") + ",".join(dict.fromkeys((*kinds, *HOST_KEY_KINDS)))
