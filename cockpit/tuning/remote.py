"""What tuning needs of a host: commands, each run to its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from cockpit.hosts.shell import Completed, Shell


class Remote(Protocol):
    """Runs commands on a host; every Shell is one. Raises HostError when the host cannot be talked to."""

    async def run(self, command: str, *, input: bytes = b"", timeout: float = 30) -> Completed: ...  # noqa: ASYNC109


class Following:
    """A Remote over whatever connection the host has at the moment, as `shell` gives it (it raises HostError while
    there is none). A change that loses its connection can put itself back over the next one."""

    def __init__(self, shell: Callable[[], Awaitable[Shell]]) -> None:
        self._shell = shell

    async def run(self, command: str, *, input: bytes = b"", timeout: float = 30) -> Completed:  # noqa: ASYNC109
        return await (await self._shell()).run(command, input=input, timeout=timeout)
