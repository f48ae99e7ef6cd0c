"""Workers run without garbage collection: dropped connections and parsers leak no memory, for any server."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from cockpit.load.failures import Malformed
from cockpit.load.poller import best_poller
from cockpit.load.protocol import Assignment, assignments
from cockpit.load.request import destination
from cockpit.load.responses import HeadCache, ResponseReader
from cockpit.load.worker import engine_for
from cockpit.model.load import ThinkTime
from tests.commands import FORKS
from tests.load.hostile.cases import SHORT, HostileCase
from tests.load.hostile.registry import CASES
from tests.load.pairs import Pairs
from tests.load.servers import DEADLINE, ClientConnection, Outcome, begin, plan, serving

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CUTS = (
    CHUNKED + b"5\r\nhel",
    CHUNKED + b"zz\r\nhello\r\n",
    CHUNKED + b"5\r\nhello\r\n0\r\n",
    CHUNKED,
    b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nContent-",
    b"",
)
BULK = 500_000
CONNECTIONS = 20_000
# Blocks by which lists and dictionaries may grow; a leak of an object per response or connection is far larger.
SLACK = 5000


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_memory_is_constant_over_half_a_million_cut_responses(no_collector: None) -> None:
    response = ResponseReader(HeadCache(bodiless=False, keepalive=True))

    def cut(times: int) -> int:
        for number in range(times):
            with suppress(Malformed):
                assert not response.feed(CUTS[number % len(CUTS)])
            response.reset()
        return sys.getallocatedblocks()

    before = cut(1000)
    after = cut(BULK)
    assert after - before < SLACK


def test_memory_is_constant_over_cut_connections(no_collector: None) -> None:
    pairs = Pairs(plan("http://127.0.0.1/x", requests=1))

    def cut(times: int) -> int:
        for number in range(times):
            pairs.begin()
            pairs.deliver(CUTS[number % len(CUTS)])
            if not pairs.over:
                pairs.end()
            if number % 10_000 == 0:
                pairs.tally.close_interval()
        pairs.tally.close_interval()
        return sys.getallocatedblocks()

    before = cut(1000)
    after = cut(CONNECTIONS)
    pairs.close()
    assert after - before < SLACK
    assert sum(pairs.tally.per_request[0].errors.values()) == CONNECTIONS + 1000


def resident(pid: int) -> int:
    """Return the resident memory of a process (bytes)."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_memory_of_worker_is_constant_over_cut_responses() -> None:
    cuts = 0

    async def behave(client: ClientConnection) -> None:
        nonlocal cuts
        await client.request()
        cuts += 1
        client.writer.write(CUTS[cuts % len(CUTS)])

    async with serving(behave) as server:
        outcome = Outcome()
        run = await begin(plan(server.url, requests=12_000, method="POST", concurrency=8), outcome)
        async with asyncio.timeout(6 * DEADLINE):
            await outcome.until(lambda seen: seen.total("sent") > 1000)
            before = after = resident(run.pids[0])
            while run.running:
                seen = len(outcome.events)
                await outcome.until(lambda now, seen=seen: len(now.events) > seen)  # type: ignore[misc]
                if run.running and outcome.total("sent") < 12_000:
                    after = resident(run.pids[0])
            await run.wait()
    assert sum(outcome.errors.values()) == outcome.total("sent") == 12_000
    # 9,000 chunked responses that leave 850 bytes each are 7 MiB.
    assert after - before < 4 * 1024 * 1024


def _run_engine(assignment: Assignment, garbage: Connection) -> None:
    """Run an assignment without the collector, then send the names of the objects that only the collector can free."""

    def tick() -> None:
        engine.take(0.0, monotonic())

    gc.disable()
    gc.freeze()
    engine = engine_for(assignment, best_poller(), tick)
    engine.run(monotonic())
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    garbage.send([type(leaked).__name__ for leaked in gc.garbage])


# A case for each way in which a connection, a parser or a handshake is dropped.
DROPS = (
    "short body, closed",
    "short body, held",
    "short body, RST",
    "endless headers",
    "NULs, closed",
    "chunk size in words",
    "chunk cut short, closed",
    "chunk cut short, held",
    "chunk cut short, RST",
    "more after the last chunk",
    "refused",
    "resets in a body",
    "closes at once",
    "closes on the second",
    "resets on the second",
    "close that does not close",
    "garbage before the request",
    "TLS, untrusted",
    "TLS, garbage",
    "TLS, closed",
    "TLS, RST",
    "TLS, held",
    "TLS, RST in a body",
    "TLS, broken record",
    "TLS, cut short",
    "TLS, until cut",
)


async def _garbage(case: HostileCase, **values: Any) -> list[str]:
    async with case.serve() as server:
        load_plan = plan(server.url, requests=6, timeout=SHORT, tls=case.tls(), **case.plan, **values)
        [assignment] = assignments(load_plan, 1, destination(load_plan))
        garbage, sender = FORKS.Pipe(duplex=False)
        process = FORKS.Process(target=_run_engine, args=(assignment, sender))
        process.start()
        sender.close()
        async with asyncio.timeout(6 * DEADLINE):
            found: list[str] = await asyncio.to_thread(garbage.recv)
        garbage.close()
        await asyncio.to_thread(process.join)
        return found


async def test_dropped_connections_leave_no_garbage() -> None:
    parallel = asyncio.Semaphore(3)

    async def garbage(name: str) -> list[str]:
        async with parallel:
            return await _garbage(CASES[name])

    assert await asyncio.gather(*map(garbage, DROPS)) == [[]] * len(DROPS)


@pytest.mark.parametrize("name", ["endless headers", "chunk cut short, RST", "closes on the second"])
async def test_dropped_connections_of_users_leave_no_garbage(name: str) -> None:
    assert (
        await _garbage(CASES[name], cookies=True, requests_per_connection=2, think_time=ThinkTime(seconds=0.001)) == []
    )
