"""Users of a site, whose requests come in waves: each asks at random times and waits for its response."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import monotonic

_REQUEST = "GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
# Seconds of a wave of the rate, and its height as a share of the mean.
_WAVE, _HEIGHT = 40.0, 0.33


@asynccontextmanager
async def users(port: int, rate: float, paths: Sequence[str] = ("/",), number: int = 20) -> AsyncIterator[None]:
    """Send `rate` requests/s on average to a server on this machine until the end of the block."""
    browsing = [asyncio.create_task(_browse(port, number / rate, paths, seed)) for seed in range(number)]
    try:
        yield
    finally:
        for user in browsing:
            user.cancel()
        await asyncio.gather(*browsing, return_exceptions=True)


async def _browse(port: int, pause: float, paths: Sequence[str], seed: int) -> None:
    chance = random.Random(seed)
    due = monotonic()
    while True:
        due += chance.expovariate(1 + _HEIGHT * math.sin(2 * math.pi * due / _WAVE)) * pause
        await asyncio.sleep(max(0.0, due - monotonic()))
        # A server that is just replaced refuses or ends a connection; users try again later.
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await _request(port, chance.choice(paths))


async def _request(port: int, path: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.closing(writer):
        writer.write(_REQUEST.format(path).encode())
        await reader.read()
