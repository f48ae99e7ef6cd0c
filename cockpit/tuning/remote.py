"""Runs programs in sh on a host, to their end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from cockpit.hosts.shell import SH, Completed, Shell
from cockpit.model.errors import ChangeRefused
from cockpit.model.hosts import HostConfig
from cockpit.tuning.reason import useful_line

_SUDO = "sudo -n --"


class Remote(Protocol):
    """Runs programs in sh on a host; every Shell is one. Raises HostError if the host cannot be reached."""

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        """Run a program in sh to its end (see Shell.run)."""


class Following:
    """A Remote over the current connection of the host, from `shell` (which raises HostError without one), so that a
    change that loses its connection can be rolled back over the next."""

    def __init__(self, shell: Callable[[], Awaitable[Shell]]) -> None:
        self._shell = shell

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        return await (await self._shell()).run(program, input=input, timeout=timeout, interpreter=interpreter)


class AsRoot:
    """A Remote whose commands run by `sudo -n`. Raises ChangeRefused if sudo asks for a password or refuses."""

    def __init__(self, host: str, remote: Remote) -> None:
        self._host = host
        self._remote = remote
        self._tried = False

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        if not self._tried:
            tried = await self._remote.run(f"{_SUDO} {SH}")
            if tried.exit_status != 0:
                raise ChangeRefused(
                    "sudo does not let this user in without a password "
                    f"({useful_line(tried.stderr, tried.stdout)}); allow it there (NOPASSWD), or log in as root",
                    subject=self._host,
                )
            self._tried = True
        return await self._remote.run(program, input=input, timeout=timeout, interpreter=f"{_SUDO} {interpreter}")


def privileged(config: HostConfig, remote: Remote) -> Remote:
    """The Remote for changes of this host: with `sudo -n` if the profile requests it."""
    return AsRoot(config.name, remote) if config.sudo else remote
