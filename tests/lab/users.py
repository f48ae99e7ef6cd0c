"""Users of a site: their rate comes in waves and bursts, and the mix of their pages drifts."""

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
# Bursts: the factor of the rate, the shortest and the longest one (s), and the mean time between two (s).
_BURST, _SHORTEST, _LONGEST, _BETWEEN = 1.8, 5.0, 20.0, 60.0
# Deviation of the random walk of the mix (log scale, per square root of a second).
_WALK = 0.02


class _Crowd:
    """The rate of the users and their mix of pages at each time."""

    def __init__(self, rate: float, paths: Sequence[str], seed: int) -> None:
        self.chance = random.Random(seed)
        self.paths = paths
        self._rate = rate
        self._weights = [0.0] * len(paths)
        self._at = monotonic()
        self._burst = (0.0, 0.0)

    def rate(self) -> float:
        """Return the requests/s now."""
        now = monotonic()
        if now > self._burst[1] + self.chance.expovariate(1 / _BETWEEN):
            self._burst = (now, now + self.chance.uniform(_SHORTEST, _LONGEST))
        wave = 1 + _HEIGHT * math.sin(2 * math.pi * now / _WAVE)
        return self._rate * wave * (_BURST if self._burst[0] <= now < self._burst[1] else 1.0)

    def path(self) -> str:
        now = monotonic()
        step = _WALK * math.sqrt(now - self._at)
        self._at = now
        self._weights = [weight + self.chance.gauss(0, step) for weight in self._weights]
        return self.chance.choices(self.paths, [math.exp(weight) for weight in self._weights])[0]


@asynccontextmanager
async def users(port: int, rate: float, paths: Sequence[str] = ("/",), seed: int = 1) -> AsyncIterator[None]:
    """Send `rate` requests/s on average to a server on this machine until the end of the block, at random times; a
    slow response delays no other request."""
    asking = asyncio.create_task(_ask(port, _Crowd(rate, paths, seed)))
    try:
        yield
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def _ask(port: int, crowd: _Crowd) -> None:
    requests: set[asyncio.Task[None]] = set()
    due = monotonic()
    try:
        while True:
            due += crowd.chance.expovariate(crowd.rate())
            await asyncio.sleep(max(0.0, due - monotonic()))
            request = asyncio.create_task(_request(port, crowd.path()))
            requests.add(request)
            request.add_done_callback(requests.discard)
    finally:
        for request in requests:
            request.cancel()
        await asyncio.gather(*requests, return_exceptions=True)


async def _request(port: int, path: str) -> None:
    # A server that is just replaced refuses or ends a connection.
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.closing(writer):
            writer.write(_REQUEST.format(path).encode())
            await reader.read()
