"""The settings of a connection to a host, from the user's ssh_config."""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cockpit.hosts.ssh.config import Options, resolve
from cockpit.model.errors import UsageError

USER_CONFIG = "~/.ssh/config"
SYSTEM_CONFIG = "/etc/ssh/ssh_config"
USER_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
GLOBAL_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
DEFAULT_KEYS = ("id_ed25519_sk", "id_ecdsa_sk", "id_ed25519", "id_ecdsa", "id_rsa")

_NOT_FOLLOWED = {
    "KnownHostsCommand": "not run by cockpit; put the host's key into known_hosts",
    "RequiredRSASize": "not checked by cockpit; remove shorter RSA keys from known_hosts and authorized_keys",
}
_WITHOUT_CLIENT = (
    "read without OpenSSH's client",
    "install ssh; without it, options such as StrictHostKeyChecking and RevokedHostKeys are ignored",
)
_DESTINATION = re.compile(
    r"(?:(?P<user>[^@\s]+)@)?(?P<host>\[[^\]\s]+\]|[^:@\s\[\]]+|[0-9a-fA-F:.%]+)(?::(?P<port>\d+))?"
)


@dataclass(frozen=True)
class Destination:
    """`[user@]host[:port]`, also after `ssh://`; the host may be an alias of ssh_config. None: as in ssh_config."""

    host: str
    user: str | None = None
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Destination:
        """Parse a destination. Raises UsageError with the allowed forms."""
        uri = text.strip().startswith("ssh://")
        match = _DESTINATION.fullmatch(text.strip().removeprefix("ssh://").removesuffix("/" * uri))
        port = int(match["port"]) if match and match["port"] else None
        if not match or match["host"].startswith("-") or (port is not None and not 0 < port < 65536):
            raise UsageError(
                f"ssh = {text!r}: write user@host, user@host:port or an alias; options belong in ssh_config"
            )
        return cls(match["host"].strip("[]"), match["user"], port)


UnknownKeys = Literal["refuse", "ask", "accept"]


@dataclass(frozen=True)
class SshSettings:
    """A destination with the settings of ssh_config.

    `host` and `port` are the address to connect to, `known_as` is the host's name in known_hosts. `user_file` is the
    file to which an accepted key is added; None: ssh_config names none. `unknown_keys`: what happens to an unknown key.
    `identities` are the existing key files,
    from ssh_config or ssh's defaults. `agent` is a socket's path, "" without an agent. `jumps` are the jump hosts, in
    the order of connecting.
    """

    destination: Destination
    options: Options
    explicit_config: Path | None
    host: str
    port: int
    user: str
    known_as: str
    known_hosts: tuple[Path, ...]
    user_file: Path | None
    unknown_keys: UnknownKeys
    revoked_host_keys: tuple[Path, ...]
    identities: tuple[Path, ...]
    agent: str
    jumps: tuple[Destination, ...]

    @property
    def where(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == 22 else f"{host}:{self.port}"

    @property
    def unsupported(self) -> tuple[tuple[str, str], ...]:
        """Options that ssh(1) supports and cockpit does not: (option and value, remedy)."""
        options = [(name, self.options.value(name.lower()), todo) for name, todo in _NOT_FOLLOWED.items()]
        without = () if self.options.by_client else (_WITHOUT_CLIENT,)
        return (*without, *((f"{name} {value}", todo) for name, value, todo in options if value))


def read_settings(destination: Destination, explicit: Path | None) -> SshSettings:
    """Read ssh_config: `explicit`, or the user's and the system's. Commands of `Match exec` are run.

    Raises UsageError if it is invalid.
    """
    default = [Path(name).expanduser() for name in (USER_CONFIG, SYSTEM_CONFIG)]
    files = (explicit,) if explicit else tuple(path for path in default if path.is_file())
    try:
        options = resolve(destination.host, destination.user, destination.port, files, explicit)
        port = int(options.value("port") or 22)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"ssh_config {explicit or ', '.join(map(str, files))}: {reason}") from None
    host = options.value("hostname") or destination.host
    user = options.value("user") or destination.user or getpass.getuser()
    tokens = _tokens(destination.host, host, port, user, options)
    known_hosts = _files(options, "userknownhostsfile", USER_KNOWN_HOSTS, tokens)
    user_file = next((file for file in known_hosts[:1] if file != Path("/dev/null")), None)
    return SshSettings(
        destination=destination,
        options=options,
        explicit_config=explicit,
        host=host,
        port=port,
        user=user,
        known_as=tokens["k"].lower(),
        known_hosts=known_hosts + _files(options, "globalknownhostsfile", GLOBAL_KNOWN_HOSTS, tokens),
        user_file=user_file,
        unknown_keys=_unknown_keys(options, user_file),
        revoked_host_keys=_paths(filter(None, [options.value("revokedhostkeys")]), tokens),
        identities=_identities(options, tokens),
        agent=_agent(options, tokens),
        jumps=_jumps(options, host, port),
    )


def _unknown_keys(options: Options, user_file: Path | None) -> UnknownKeys:
    """Return what ssh(1) does with an unknown key. ssh -G prints no and off as false, yes as true."""
    strict = options.value("stricthostkeychecking") or "ask"
    if strict in ("no", "off", "false", "accept-new"):
        return "accept"
    return "refuse" if user_file is None or options.is_on("stricthostkeychecking") else "ask"


def _tokens(name: str, host: str, port: int, user: str, options: Options) -> dict[str, str]:
    """Return the values of %h and other tokens, which `ssh -G` does not expand in most paths."""
    local, jump = socket.gethostname(), options.value("proxyjump") or ""
    return {
        "%": "%",
        "C": hashlib.sha1("".join((local, host, str(port), user, jump)).encode()).hexdigest(),
        "d": str(Path.home()),
        "h": host,
        "i": str(os.getuid()),
        "j": jump,
        "k": options.value("hostkeyalias") or host,
        "L": local.partition(".")[0],
        "l": local,
        "n": name,
        "p": str(port),
        "r": user,
        "u": getpass.getuser(),
    }


def _files(options: Options, name: str, default: tuple[str, ...], tokens: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the files of an option. `none` means no file, never that any key is accepted."""
    value = options.values.get(name)
    # ssh -G does not quote spaces, but expands ~.
    named = default if value is None else re.split(r" (?=[/~])", value[0])
    return _paths((file for file in named if file.lower() != "none"), tokens)


def _paths(names: Iterable[str], tokens: Mapping[str, str]) -> tuple[Path, ...]:
    """Expand tokens and `${VARIABLES}` in paths; unknown ones are left as they are."""

    def expanded(text: str) -> str:
        text = re.sub(r"%(.)", lambda token: tokens.get(token[1], token[0]), text)
        return re.sub(r"\$\{(\w+)\}", lambda name: os.environ.get(name[1], name[0]), text)

    return tuple(Path(expanded(name)).expanduser() for name in names)


def _identities(options: Options, tokens: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the key files to offer. With IdentitiesOnly, also public keys without a private one, which select a key of
    the agent."""
    named = [name for name in options.values.get("identityfile", ()) if name != "none"]
    files = []
    for path in _paths(named or [f"~/.ssh/{name}" for name in DEFAULT_KEYS], tokens):
        public = path.with_name(path.name + ".pub")
        if path.is_file():
            files.append(path)
        elif options.is_on("identitiesonly") and public.is_file():
            files.append(public)
    return tuple(files)


def public_half(path: Path) -> Path:
    """Return the public key file beside a private key; the private key's file if there is none."""
    public = path.with_name(path.name + ".pub")
    return public if path.suffix != ".pub" and public.is_file() else path


def _agent(options: Options, tokens: Mapping[str, str]) -> str:
    named = options.values.get("identityagent", ("SSH_AUTH_SOCK",))[0]
    if named.lower() == "none":
        return ""
    if named == "SSH_AUTH_SOCK" or named.startswith("$"):
        return os.environ.get(named.strip("${}"), "")
    return str(_paths((named,), tokens)[0])


def _jumps(options: Options, host: str, port: int) -> tuple[Destination, ...]:
    """Return the jump hosts, without the host itself, which a ProxyJump under `Host *` would add to the jump host."""
    text = options.value("proxyjump") or ""
    jumps = tuple(Destination.parse(part) for part in text.split(",") if part)
    return tuple(jump for jump in jumps if (jump.host, jump.port or port) != (host, port))
