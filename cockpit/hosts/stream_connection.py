"""A TCP connection made by a host, over asyncio or SSH streams."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cockpit.model.errors import HostError

if TYPE_CHECKING:
    import asyncssh


class StreamConnection:
    """A pair of streams from the host `name` to `address`; `failures` are the exceptions that the streams raise."""

    def __init__(
        self,
        name: str,
        address: str,
        reader: asyncio.StreamReader | asyncssh.SSHReader[bytes],
        writer: asyncio.StreamWriter | asyncssh.SSHWriter[bytes],
        failures: tuple[type[Exception], ...],
    ) -> None:
        self._name = name
        self._address = address
        self._reader = reader
        self._writer = writer
        self._failures = failures

    async def read(self, size: int) -> bytes:
        try:
            return await self._reader.read(size)
        except self._failures as error:
            raise HostError(f"{self._address}: {error}", subject=self._name) from None

    async def write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except self._failures as error:
            raise HostError(f"{self._address}: {error}", subject=self._name) from None

    def close(self) -> None:
        self._writer.close()
