"""Workers run without garbage collection: dropped connections and parsers leak no memory, for any server."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any

import pytest

from cockpit.load.poller import best_poller
from cockpit.load.protocol import Assignment, assignments
from cockpit.load.request import destination
from cockpit.load.worker import engine_for
from cockpit.model.load import ThinkTime
from tests.commands import FORKS
from tests.load.hostile.cases import SHORT, HostileCase
from tests.load.hostile.registry import CASES
from tests.load.pairs import Pairs
from tests.load.servers import plan
from tests.waiting import DEADLINE

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
CONNECTIONS = 6000
# Blocks by which lists and dictionaries may grow; a leak of an object per response or connection is larger.
SLACK = 500


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_memory_is_constant_over_cut_connections(no_collector: None) -> None:
    pairs = Pairs(plan("http://127.0.0.1/x", requests=1))

    def cut(times: int) -> int:
        for number in range(times):
            pairs.begin()
            pairs.deliver(CUTS[number % len(CUTS)])
            if not pairs.over:
                pairs.end()
        pairs.tally.close_interval()
        return sys.getallocatedblocks()

    before = cut(1000)
    after = cut(CONNECTIONS)
    pairs.close()
    assert after - before < SLACK
    assert sum(pairs.tally.per_request[0].errors.values()) == CONNECTIONS + 1000


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
DROPS = """
short body, closed|short body, held|short body, RST|endless headers|NULs, closed|chunk size in words
chunk cut short, closed|chunk cut short, held|chunk cut short, RST|more after the last chunk|refused|resets in a body
closes at once|closes on the second|resets on the second|close that does not close|garbage before the request
TLS, untrusted|TLS, garbage|TLS, closed|TLS, RST|TLS, held|TLS, RST in a body|TLS, broken record|TLS, cut short
TLS, until cut
"""
USER_DROPS = ("endless headers", "chunk cut short, RST", "closes on the second")
USER = {"cookies": True, "requests_per_connection": 2, "think_time": ThinkTime(seconds=0.001)}


async def _garbage(case: HostileCase, **values: Any) -> list[str]:
    async with case.serve() as server:
        load_plan = plan(server.url, requests=6, timeout=SHORT, tls=case.tls(), **case.plan, **values)
        [assignment] = assignments(load_plan, 1, destination(load_plan))
        garbage, sender = FORKS.Pipe(duplex=False)
        process = FORKS.Process(target=_run_engine, args=(assignment, sender))
        process.start()
        sender.close()
        async with asyncio.timeout(DEADLINE):
            found: list[str] = await asyncio.to_thread(garbage.recv)
        garbage.close()
        await asyncio.to_thread(process.join)
        return found


async def test_dropped_connections_leave_no_garbage() -> None:
    parallel = asyncio.Semaphore(3)

    async def garbage(name: str, **values: Any) -> tuple[str, list[str]]:
        async with parallel:
            return name, await _garbage(CASES[name], **values)

    drops = [garbage(name) for name in DROPS.strip().replace("\n", "|").split("|")]
    drops += [garbage(name, **USER) for name in USER_DROPS]
    assert [(name, found) for name, found in await asyncio.gather(*drops) if found] == []
