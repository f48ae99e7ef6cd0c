"""`python -m tests.statistics.capacity_sockets [N]`: capacity searches against a server with real sockets, 3 min each.

Response times are those of an M/M/c queue in absolute time, so that the server's own delays do not add up: each request
is answered at the instant at which a slot would have served it.
"""

import asyncio
import heapq
import sys
from typing import NamedTuple

import numpy as np

from cockpit.analysis.capacity.result import capacity_result
from cockpit.analysis.words.capacity import capacity_words
from cockpit.model.load.plan import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.session.live_session import LiveSession
from tests.statistics.capacity import Case

CASE = Case(16, 50, 0.1, 95)
_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Found(NamedTuple):
    """The error of a found capacity (share), whether its interval has the true one, and the conclusion."""

    error: float
    covered: bool
    words: str


class QueueServer(asyncio.Protocol):
    """A connection to the queue; `free`: the times at which its slots are free, shared by all connections."""

    def __init__(self, free: list[float], random: np.random.Generator) -> None:
        self._free, self._random, self._received = free, random, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._received.endswith(b"\r\n\r\n"):
            self._received = b""
            loop = asyncio.get_running_loop()
            end = max(loop.time(), self._free[0]) + self._random.exponential(1 / CASE.rate)
            heapq.heapreplace(self._free, end)
            loop.call_at(end, self._transport.write, _RESPONSE)


async def searched(seed: int) -> Found:
    random, free = np.random.default_rng(seed), [0.0] * CASE.slots
    server = await asyncio.get_running_loop().create_server(lambda: QueueServer(free, random), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    plan = LoadPlan(url=f"http://127.0.0.1:{port}/", rate=50.0, arrivals="poisson", seed=seed)
    async with server, LiveSession(Profile(name="x", plan=plan)) as live:
        await live.source.capacity.run(f"p{CASE.percent:g} < {1000 * CASE.limit:g}ms, errors < 1%")
        result = capacity_result(live.state, live.state.capacities[-1])
    found = result.estimate
    if found is None:
        return Found(1.0, False, capacity_words(result))
    return Found(found.rate / CASE.truth - 1, found.low <= CASE.truth <= found.high, capacity_words(result))


def main(number: int) -> None:
    print(CASE.name)
    for seed in range(number):
        found = asyncio.run(searched(seed))
        print(f"{100 * found.error:+.1f}%, {'' if found.covered else 'not '}covered: {found.words}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
