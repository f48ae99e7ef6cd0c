"""What the user's ssh_config says of a host, read as OpenSSH reads it where asyncssh alone would not."""

from __future__ import annotations

import getpass
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from asyncssh.config import SSHClientConfig, SSHConfig

from cockpit.model.errors import UsageError

USER_CONFIG = "~/.ssh/config"
SYSTEM_CONFIG = "/etc/ssh/ssh_config"
USER_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
GLOBAL_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
DEFAULT_KEYS = ("id_ed25519_sk", "id_ecdsa_sk", "id_ed25519", "id_ecdsa", "id_rsa")

_DESTINATION = re.compile(
    r"(?:(?P<user>[^@\s]+)@)?(?P<host>\[[^\]\s]+\]|[^:@\s\[\]]+|[0-9a-fA-F:.%]+)(?::(?P<port>\d+))?"
)


@dataclass(frozen=True)
class Destination:
    """`[user@]host[:port]`, where the host may be an alias of ssh_config; None is: as ssh_config has it."""

    host: str
    user: str | None = None
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Destination:
        """Raises UsageError with what is allowed."""
        match = _DESTINATION.fullmatch(text.strip())
        port = int(match["port"]) if match and match["port"] else None
        if not match or match["host"].startswith("-") or (port is not None and not 0 < port < 65536):
            raise UsageError(
                f"ssh = {text!r}: write user@host, user@host:port or an alias; options belong in ssh_config"
            )
        return cls(match["host"].strip("[]"), match["user"], port)


@dataclass(frozen=True)
class Settings:
    """A destination with all that ssh_config adds to it.

    `host` and `port` are where to connect to, `known_as` the name under which known_hosts holds its key.
    `accept_into` is the file that an unknown key may be added to; None: to none, it has to be known.
    `identities` are the key files, named in ssh_config or ssh's own, that are there. `agent` is a socket's path.
    `jumps` lead to the host, nearest first.
    """

    destination: Destination
    config: SSHClientConfig
    config_files: tuple[Path, ...]
    explicit_config: Path | None
    host: str
    port: int
    user: str
    known_as: str
    known_hosts: tuple[Path, ...]
    accept_into: Path | None
    hash_known_hosts: bool
    identities: tuple[Path, ...]
    identities_only: bool
    agent: str
    jumps: tuple[Destination, ...]

    @property
    def where(self) -> str:
        """Host and port as errors name them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == 22 else f"{host}:{self.port}"


class _Config(SSHClientConfig):
    """With what asyncssh passes over, since it never writes known_hosts."""

    _handlers = {  # noqa: RUF012  as asyncssh has it
        **SSHClientConfig._handlers,
        "hashknownhosts": ("HashKnownHosts", SSHConfig._set_bool),
        "stricthostkeychecking": ("StrictHostKeyChecking", SSHConfig._set_bool_or_str),
    }


def read_settings(destination: Destination, explicit: Path | None) -> Settings:
    """Reads ssh_config: the file given, or the user's own and after it the system's, where the first value wins.

    Raises UsageError where it does not read.
    """
    own = [Path(name).expanduser() for name in (USER_CONFIG, SYSTEM_CONFIG)]
    files = (explicit,) if explicit else tuple(path for path in own if path.is_file())
    try:
        config = _load(destination, files)
    except (OSError, ValueError, KeyError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"ssh_config {explicit or ', '.join(map(str, files))}: {reason}") from None
    host = str(config.get("Hostname") or destination.host)
    port = cast(int, config.get("Port") or 22)
    user = str(config.get("User") or getpass.getuser())
    tokens = {
        "%": "%",
        "d": str(Path.home()),
        "h": host,
        "k": str(config.get("HostKeyAlias") or host),
        "i": str(os.getuid()),
        "n": destination.host,
        "p": str(port),
        "r": user,
        "u": getpass.getuser(),
    }
    return Settings(
        destination=destination,
        config=config,
        config_files=files,
        explicit_config=explicit,
        host=host,
        port=port,
        user=user,
        known_as=str(config.get("HostKeyAlias") or host).lower(),
        known_hosts=_known_hosts_files(config, tokens),
        accept_into=_accept_into(config, tokens),
        hash_known_hosts=bool(config.get("HashKnownHosts")),
        identities=_identities(config),
        identities_only=bool(config.get("IdentitiesOnly")),
        agent=_agent(config),
        jumps=_jumps(config, host, port),
    )


def _load(destination: Destination, files: tuple[Path, ...]) -> SSHClientConfig:
    about = (getpass.getuser(), destination.user or (), destination.host, destination.port or ())
    config = _Config.load(None, files, False, False, False, *about)
    if config.has_match_final():
        config = _Config.load(config, files, True, False, True, *about)
    return cast(SSHClientConfig, config)


def _known_hosts_files(config: SSHClientConfig, tokens: dict[str, str]) -> tuple[Path, ...]:
    """The files in which the host's key may stand. `none` is none: that never means that any key will do."""
    everybody = cast("list[str] | None", config.get("GlobalKnownHostsFile"))
    names = [*_user_known_hosts(config), *(GLOBAL_KNOWN_HOSTS if everybody is None else everybody)]
    return tuple(Path(_expand(name, tokens)).expanduser() for name in names)


def _user_known_hosts(config: SSHClientConfig) -> tuple[str, ...]:
    named = cast("list[str] | None", config.get("UserKnownHostsFile"))
    return USER_KNOWN_HOSTS if named is None else tuple(named)


def _accept_into(config: SSHClientConfig, tokens: dict[str, str]) -> Path | None:
    """The user's first known_hosts file, unless nothing would stay in it, or keys are to be put there by hand."""
    first = next(iter(_user_known_hosts(config)), "/dev/null")
    if first == "/dev/null" or config.get("StrictHostKeyChecking") is True:
        return None
    return Path(_expand(first, tokens)).expanduser()


def _expand(name: str, tokens: dict[str, str]) -> str:
    return re.sub(r"%(.)", lambda token: tokens.get(token[1], token[0]), name)


def _identities(config: SSHClientConfig) -> tuple[Path, ...]:
    """Files of keys to offer. One that is not there is passed over, as ssh does.

    Under IdentitiesOnly a public half alone is of use too: it picks the agent's key.
    """
    named = cast("list[str] | None", config.get("IdentityFile"))
    paths = [Path(name).expanduser() for name in named or [f"~/.ssh/{name}" for name in DEFAULT_KEYS]]
    found = []
    for path in paths:
        public = path.with_name(path.name + ".pub")
        if path.is_file():
            found.append(path)
        elif config.get("IdentitiesOnly") and public.is_file():
            found.append(public)
    return tuple(found)


def public_half(path: Path) -> Path:
    """The public key file beside a private one; the file itself where there is none."""
    public = path.with_name(path.name + ".pub")
    return public if path.suffix != ".pub" and public.is_file() else path


def _agent(config: SSHClientConfig) -> str:
    """The agent's socket; empty where there is none."""
    named = config.get("IdentityAgent", "SSH_AUTH_SOCK")
    if named == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK", "")
    text = str(named or "")
    if text.startswith("$"):
        return os.environ.get(text.strip("${}"), "")
    return str(Path(text).expanduser()) if text else ""


def _jumps(config: SSHClientConfig, host: str, port: int) -> tuple[Destination, ...]:
    """ProxyJump, without a jump over the host itself, which `Host *` gives the jump host too."""
    text = cast("str | None", config.get("ProxyJump"))
    jumps = tuple(Destination.parse(part.removeprefix("ssh://")) for part in (text or "").split(",") if part)
    return tuple(jump for jump in jumps if (jump.host, jump.port or port) != (host, port))
