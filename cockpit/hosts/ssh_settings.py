"""What the user's ssh_config says of a host, read as OpenSSH reads it where asyncssh alone would not."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cockpit.hosts.ssh_config import Evaluation, Options, expanded
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
class SshSettings:
    """A destination with all that ssh_config adds to it.

    `host` and `port` are where to connect to, `known_as` the name under which known_hosts holds its key.
    `accept_into` is the file that an unknown key may be added to; None: to none, it has to be known.
    `identities` are the key files, named in ssh_config or ssh's own, that are there. `agent` is a socket's path.
    `jumps` lead to the host, nearest first.
    """

    destination: Destination
    options: Options
    explicit_config: Path | None
    host: str
    port: int
    user: str
    known_as: str
    known_hosts: tuple[Path, ...]
    accept_into: Path | None
    revoked_host_keys: tuple[Path, ...]
    identities: tuple[Path, ...]
    agent: str
    jumps: tuple[Destination, ...]

    @property
    def where(self) -> str:
        """Host and port as errors name them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == 22 else f"{host}:{self.port}"

    @property
    def not_followed(self) -> tuple[tuple[str, str], ...]:
        """Options that ssh(1) follows and cockpit does not, each with its value, and what to do instead."""
        found = [(name, self.options.value(name.lower()), todo) for name, todo in _NOT_FOLLOWED.items()]
        return tuple((f"{name} {value}", todo) for name, value, todo in found if value)


def read_settings(destination: Destination, explicit: Path | None) -> SshSettings:
    """Reads ssh_config: the file given, or the user's own and after it the system's, where the first value wins.

    Commands of `Match exec` are run. Raises UsageError where it does not read.
    """
    own = [Path(name).expanduser() for name in (USER_CONFIG, SYSTEM_CONFIG)]
    files = (explicit,) if explicit else tuple(path for path in own if path.is_file())
    evaluation = Evaluation(destination.host, destination.user or "", destination.port or 0, getpass.getuser())
    try:
        options = evaluation.options(files)
        tokens = evaluation.tokens
        port = int(tokens["p"])
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"ssh_config {explicit or ', '.join(map(str, files))}: {reason}") from None
    host = tokens["h"]
    return SshSettings(
        destination=destination,
        options=options,
        explicit_config=explicit,
        host=host,
        port=port,
        user=tokens["r"],
        known_as=tokens["k"].lower(),
        known_hosts=_paths((*_user_known_hosts(options), *_global_known_hosts(options)), tokens),
        accept_into=_accept_into(options, tokens),
        revoked_host_keys=_paths(_given(options, "revokedhostkeys") or (), tokens),
        identities=_identities(options, tokens),
        agent=_agent(options, tokens),
        jumps=_jumps(options, host, port),
    )


def _given(options: Options, name: str) -> tuple[str, ...] | None:
    """The values of an option that takes several, none of them for `none`; None: it is not set."""
    found = options.values(name)
    return () if found is not None and found[0].lower() == "none" else found


def _global_known_hosts(options: Options) -> tuple[str, ...]:
    named = _given(options, "globalknownhostsfile")
    return GLOBAL_KNOWN_HOSTS if named is None else named


def _user_known_hosts(options: Options) -> tuple[str, ...]:
    """The files in which the host's key may be. `none` is none: that never means that any key will do."""
    named = _given(options, "userknownhostsfile")
    return USER_KNOWN_HOSTS if named is None else named


def _accept_into(options: Options, tokens: dict[str, str]) -> Path | None:
    """The user's first known_hosts file, unless nothing would stay in it, or keys are to be put there by hand."""
    first = next(iter(_user_known_hosts(options)), "/dev/null")
    if first == "/dev/null" or options.is_on("stricthostkeychecking"):
        return None
    return _paths((first,), tokens)[0]


def _paths(names: Iterable[str], tokens: dict[str, str]) -> tuple[Path, ...]:
    return tuple(Path(expanded(name, tokens)).expanduser() for name in names)


def _identities(options: Options, tokens: dict[str, str]) -> tuple[Path, ...]:
    """Files of keys to offer. One that is not there is passed over, as ssh does.

    Under IdentitiesOnly a public half alone is of use too: it picks the agent's key.
    """
    named = options.each("identityfile") or [f"~/.ssh/{name}" for name in DEFAULT_KEYS]
    found = []
    for path in _paths(named, tokens):
        public = path.with_name(path.name + ".pub")
        if path.is_file():
            found.append(path)
        elif options.is_on("identitiesonly") and public.is_file():
            found.append(public)
    return tuple(found)


def public_half(path: Path) -> Path:
    """The public key file beside a private one; the file itself where there is none."""
    public = path.with_name(path.name + ".pub")
    return public if path.suffix != ".pub" and public.is_file() else path


def _agent(options: Options, tokens: dict[str, str]) -> str:
    """The agent's socket; empty where there is none."""
    named = (options.values("identityagent") or ("SSH_AUTH_SOCK",))[0]
    if named == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK", "")
    if named.lower() == "none":
        return ""
    if named.startswith("$"):
        return os.environ.get(named.strip("${}"), "")
    return str(_paths((named,), tokens)[0])


def _jumps(options: Options, host: str, port: int) -> tuple[Destination, ...]:
    """ProxyJump, without a jump over the host itself, which `Host *` gives the jump host too."""
    text = options.value("proxyjump") or ""
    jumps = tuple(Destination.parse(part.removeprefix("ssh://")) for part in text.split(",") if part)
    return tuple(jump for jump in jumps if (jump.host, jump.port or port) != (host, port))
