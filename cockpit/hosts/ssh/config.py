"""The ssh_config of a destination, resolved by `ssh -G`, or by asyncssh on a machine without OpenSSH's client."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROGRAM = "ssh"
# Timeout (s) of `ssh -G`, including commands of Match exec and name lookups.
TIMEOUT = 30.0
# Options whose value is the rest of the line.
_REST_OF_LINE = frozenset({"proxycommand", "remotecommand"})
# Options to read with asyncssh's parser.
_ASYNCSSH = (
    *("Hostname", "Port", "User", "HostKeyAlias", "UserKnownHostsFile", "GlobalKnownHostsFile", "CertificateFile"),
    *("IdentityFile", "IdentitiesOnly", "IdentityAgent", "ProxyCommand", "ProxyJump", "BindAddress", "Compression"),
    *("HostKeyAlgorithms", "Ciphers", "KexAlgorithms", "MACs"),
)


@dataclass(frozen=True)
class Options:
    """The options that differ from OpenSSH's defaults: values by option name in lower case. `by_client`: resolved by
    OpenSSH's client."""

    values: Mapping[str, Sequence[str]]
    by_client: bool = True

    def value(self, name: str) -> str | None:
        """Return the first value; None if the option is not set, or set to none."""
        value = next(iter(self.values.get(name, ())), "none")
        return None if value.lower() == "none" else value

    def is_on(self, name: str) -> bool:
        return self.value(name) in ("yes", "true")

    @property
    def text(self) -> str:
        """The options as an ssh_config for asyncssh, without conditions."""
        lines = []
        for name, values in self.values.items():
            if name == "rekeylimit":
                lines.append(f"{name} {re.sub('^0 ', 'default ', values[0])}")
            elif name == "hostname":
                lines.append(f"{name} {shlex.quote(values[0].replace('%', '%%'))}")
            elif name in _REST_OF_LINE:
                lines.append(f"{name} {values[0]}")
            elif name in ("sendenv", "setenv"):
                lines.append(f"{name} {shlex.join(values)}")
            elif name != "host" and not name.startswith("canonical"):
                lines += [f"{name} {shlex.quote(value)}" for value in values]
        return "".join(f"{line}\n" for line in lines)


def resolve(host: str, user: str | None, port: int | None, files: Sequence[Path], explicit: Path | None) -> Options:
    """Resolve the options of a host from `explicit`, else from `files`. Raises OSError or ValueError."""
    given = [*(("-l", user) if user else ()), *(("-p", str(port)) if port else ())]
    included = "".join(f'Include "{file}"\n' for file in files)
    try:
        resolved = _run_ssh(("-F", str(explicit or "/dev/stdin"), *given, "--", host), included)
    except (FileNotFoundError, PermissionError):
        # PermissionError: it is missing, and PATH has a directory that this user cannot read.
        return _by_asyncssh(host, user, port, [explicit] if explicit else files)
    defaults = _defaults()
    always = ("hostname", "user", "port")
    return Options(
        {name: values for name, values in resolved.items() if name in always or values != defaults.get(name)}
    )


@cache
def _defaults() -> dict[str, list[str]]:
    return _run_ssh(("-F", "none", "localhost"), "")


def _run_ssh(arguments: Sequence[str], config: str) -> dict[str, list[str]]:
    """Run `ssh -G`. Raises ValueError with the problems that it reports."""
    command = [PROGRAM, "-G", "-T", *arguments]
    try:
        done = subprocess.run(command, input=config, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise ValueError(f"`{shlex.join(command)}` took longer than {TIMEOUT:g} s") from None
    if done.returncode:
        problems = [line for line in done.stderr.splitlines() if ": terminating, " not in line]
        raise ValueError("; ".join(problems) or f"ssh -G: exit status {done.returncode}")
    options = defaultdict(list)
    for line in done.stdout.splitlines():
        name, _, value = line.partition(" ")
        options[name.lower()].append(value)
    return dict(options)


def _by_asyncssh(host: str, user: str | None, port: int | None, files: Sequence[Path]) -> Options:
    import asyncssh

    config = asyncssh.SSHClientConnectionOptions(
        config=[str(file) for file in files],
        host=host,
        username=user or (),
        port=port or (),
        client_keys=None,
        known_hosts=None,
        agent_path=None,
    ).config
    options: dict[str, list[str]] = {}
    for name in _ASYNCSSH:
        value = config.get(name)
        if isinstance(value, list):
            options[name.lower()] = (
                value if name in ("IdentityFile", "CertificateFile") else [" ".join(value) or "none"]
            )
        elif value is not None:
            options[name.lower()] = [str(value).lower() if isinstance(value, bool) else str(value)]
    return Options(options, by_client=False)
