"""What went wrong with a connection, as one line that names the host and the way out."""

from __future__ import annotations

import errno
import os
import re
import shlex
import socket
from contextlib import suppress
from pathlib import Path

import asyncssh

from cockpit.hosts.known_hosts import KnownHosts
from cockpit.hosts.ssh_settings import Settings
from cockpit.model.errors import AuthRefused, CockpitError, HostError, HostKeyChanged, HostKeyUnknown, UsageError
from cockpit.model.text import neutral


class Witness(asyncssh.SSHClient):
    """Remembers what a server showed and known_hosts has not: its key, or who signed its certificate. Accepts none."""

    def __init__(self) -> None:
        self.shown: asyncssh.SSHKey | None = None
        self.authority: asyncssh.SSHKey | None = None

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.shown = key
        return False

    def validate_host_ca_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.authority = key
        return False


async def explain(
    name: str, settings: Settings, known: KnownHosts, witness: Witness, error: Exception, seconds: float
) -> CockpitError:
    """The error to raise for one that asyncssh raised while it connected."""
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return _key_error(name, settings, known, witness, error)
    if isinstance(error, asyncssh.PermissionDenied) or "authentication failures" in str(error):
        return await _auth_error(name, settings)
    if isinstance(error, TimeoutError):
        return HostError(f"{name}: {settings.where} does not answer within {seconds:g} s")
    if isinstance(error, socket.gaierror | UnicodeError):
        why = neutral((isinstance(error, OSError) and error.strerror) or "no host has such a name")
        return HostError(f"{name}: the name {settings.host} is not known ({why}); check `ssh` or ssh_config")
    if isinstance(error, asyncssh.KeyImportError) or not isinstance(error, asyncssh.Error | OSError):
        return UsageError(f"{name}: ssh_config or a key file does not read: {neutral(str(error), 200)}")
    return HostError(f"{name}: {settings.where}: {reason(error)}")


def reason(error: BaseException) -> str:
    """What an error says, without Python's words around it."""
    if isinstance(error, asyncssh.Error):
        return neutral(error.reason, 200)
    number = getattr(error, "errno", None)
    if number is None and (found := re.search(r"\[Errno (\d+)\]", str(error))):
        number = int(found[1])
    if number in (errno.ECONNREFUSED,):
        return "connection refused: nothing listens on that port"
    return os.strerror(number).lower() if number else neutral(str(error), 200) or type(error).__name__


def _key_error(
    name: str, settings: Settings, known: KnownHosts, witness: Witness, error: asyncssh.HostKeyNotVerifiable
) -> HostError:
    looked = ", ".join(str(file) for file in known.files if file.is_file()) or "any known_hosts file"
    if witness.authority:
        return HostKeyUnknown(
            f"{name}: {settings.where} shows a certificate signed by {_named(witness.authority)}, which is no"
            f" @cert-authority for it in {looked}"
        )
    shown = witness.shown
    if shown is None:
        # A key that is revoked, or a certificate that is out of date or for another host.
        return HostKeyChanged(f"{name}: the key of {settings.where} is refused: {reason(error)}")
    if known.expected:
        wanted = ", ".join(dict.fromkeys(_named(entry.key) for entry in known.expected))
        files = list(dict.fromkeys(entry.file for entry in known.expected))
        remedy = "; ".join(f"ssh-keygen -R {shlex.quote(known.lookup)} -f {shlex.quote(str(file))}" for file in files)
        return HostKeyChanged(
            f"{name}: the key of {settings.where} has CHANGED: it shows {_named(shown)}, known is {wanted}; somebody"
            f" may be in between. Refused. If you know why it changed, forget the old key: {remedy}"
        )
    return HostKeyUnknown(
        f"{name}: the key of {settings.where}, {_named(shown)}, is not in {looked}; compare the fingerprint with the"
        f" server's and accept it with: {_accept(settings)}"
    )


def _named(key: asyncssh.SSHKey) -> str:
    return f"{key.get_algorithm()} {key.get_fingerprint()}"


def _accept(settings: Settings) -> str:
    """The ssh command that shows the key and asks whether to keep it, whatever ssh_config says of asking."""
    words = ["ssh"]
    if settings.explicit_config:
        words += ["-F", str(settings.explicit_config)]
    words += ["-o", "StrictHostKeyChecking=ask"]
    if settings.destination.port:
        words += ["-p", str(settings.destination.port)]
    user = f"{settings.destination.user}@" if settings.destination.user else ""
    return shlex.join([*words, f"{user}{settings.destination.host}", "true"])


async def _auth_error(name: str, settings: Settings) -> AuthRefused:
    locked = [str(path) for path in settings.identities if _is_locked(path)]
    tried = [str(path) for path in settings.identities if str(path) not in locked]
    tried.append(await _agent_keys(settings))
    says = f"{name}: {settings.where} does not let {settings.user} in; tried {', '.join(tried)}"
    if locked:
        says += f"; not tried, for want of a passphrase (ssh-add it): {', '.join(locked)}"
    return AuthRefused(f"{says}. Put the public key into {settings.user}'s authorized_keys there, or load another key")


def _is_locked(path: Path) -> bool:
    try:
        asyncssh.read_private_key(path)
    except asyncssh.KeyImportError as error:
        return "assphrase" in str(error)
    except OSError:
        return False
    return False


async def _agent_keys(settings: Settings) -> str:
    if not settings.agent:
        return "no ssh agent (none is running)"
    with suppress(OSError, asyncssh.Error, ValueError):
        async with asyncssh.connect_agent(settings.agent) as agent:
            count = len(await agent.get_keys())
            return f"the ssh agent's {count} key{'' if count == 1 else 's'}"
    return f"no ssh agent ({settings.agent} does not answer)"
