"""A client that is killed during a change."""

from __future__ import annotations

import asyncio

from cockpit.hosts.shell import SH, Completed, Shell
from cockpit.model.errors import HostError


class KilledClient:
    """A shell whose client is killed during command number `at`; later commands fail."""

    def __init__(self, shell: Shell, at: int) -> None:
        self.shell = shell
        self.left = at

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        if self.left == 0:
            raise HostError("web1: unreachable")
        self.left -= 1
        running = asyncio.ensure_future(self.shell.run(program, input=input, timeout=timeout, interpreter=interpreter))
        if self.left:
            return await running
        await asyncio.wait([running], timeout=0.05)
        running.cancel()
        await asyncio.wait([running])
        raise HostError("web1: the connection is lost")
