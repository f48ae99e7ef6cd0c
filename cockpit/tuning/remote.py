"""Connections of changes to a host, on which programs run in sh."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from cockpit.hosts.shell import SH, Completed, Shell
from cockpit.model.errors import ChangeRefused
from cockpit.model.host.samples import HostConfig
from cockpit.tuning.reason import useful_line

_SUDO = "sudo -n --"


class Remote(Protocol):
    """Runs programs in sh on a host, as every Shell does. Raises HostError if the host cannot be reached."""

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        """Run a program in sh to its end (see Shell.run)."""


class ReconnectingRemote:
    """A Remote that always uses the host's current connection, so that a change can be rolled back after a reconnect.

    `shell` returns that connection, and raises HostError without one.
    """

    def __init__(self, shell: Callable[[], Awaitable[Shell]]) -> None:
        self._shell = shell

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        return await (await self._shell()).run(program, input=input, timeout=timeout, interpreter=interpreter)


class SudoRemote:
    """A Remote that runs commands with `sudo -n`. Raises ChangeRefused if sudo needs a password or refuses."""

    def __init__(self, host: str, remote: Remote) -> None:
        self._host = host
        self._remote = remote
        self._tried = False

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        if not self._tried:
            tried = await self._remote.run(f"{_SUDO} {SH}")
            if tried.exit_status != 0:
                raise ChangeRefused(
                    "sudo is not possible without a password "
                    f"({useful_line(tried.stderr, tried.stdout)}); allow it there (NOPASSWD), or log in as root",
                    subject=self._host,
                )
            self._tried = True
        return await self._remote.run(program, input=input, timeout=timeout, interpreter=f"{_SUDO} {interpreter}")


def privileged(config: HostConfig, remote: Remote) -> Remote:
    """Return the Remote for changes of this host, with `sudo -n` if the profile requests it."""
    return SudoRemote(config.name, remote) if config.sudo else remote
