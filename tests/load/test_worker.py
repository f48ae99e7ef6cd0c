"""The worker process alone: its pipes, a slow or missing peer, no memory leaks without garbage collection."""

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from itertools import pairwise
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any

import pytest

from cockpit.load.engine import Hooks
from cockpit.load.http.protocol import MESSAGE_START, Assignment, Done, Start, Stop, assignments, decode_message, encode
from cockpit.load.http.request import destination
from cockpit.load.poller import best_poller
from cockpit.load.worker import engine_for
from cockpit.model.events import decode
from cockpit.model.load.plan import ThinkTime
from cockpit.model.tick import Tick
from tests.commands import FORKS
from tests.lab.cpus import generator_cpu
from tests.load.hostile.cases import SHORT
from tests.load.hostile.registry import CASES
from tests.load.pairs import Pairs
from tests.load.servers import SMALL, Outcome, always, begin, once, plan, serving
from tests.waiting import DEADLINE

COMMAND = (sys.executable, "-P", "-m", "cockpit.load.worker")


@asynccontextmanager
async def worker(assignment: Assignment, *command: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a worker, and wait until it is ready."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*(command or COMMAND), stdin=pipe, stdout=pipe, limit=1 << 25)
    assert process.stdin and process.stdout
    try:
        process.stdin.write(encode(assignment) + b"\n")
        async with asyncio.timeout(DEADLINE):
            assert await process.stdout.readline() == b'{"say":"ready"}\n'
            yield process
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        process.stdin.close()


def send(process: asyncio.subprocess.Process, message: Start | Stop) -> None:
    assert process.stdin
    process.stdin.write(encode(message) + b"\n")


@contextmanager
def busy_loop(cpu: int) -> Iterator[None]:
    """Run a busy loop on a CPU for the duration of the block, at most a minute."""
    with subprocess.Popen(["sh", "-c", "ulimit -t 60; while :; do :; done"]) as process:
        os.sched_setaffinity(process.pid, {cpu})
        try:
            yield
        finally:
            process.terminate()


async def remaining(process: asyncio.subprocess.Process) -> tuple[list[Tick], list[Any]]:
    """Return the remaining ticks and messages of the worker."""
    ticks: list[Tick] = []
    messages: list[Any] = []
    assert process.stdout
    async for line in process.stdout:
        if line.startswith(MESSAGE_START):
            messages.append(decode_message.decode(line))
        else:
            event = decode(line)
            assert isinstance(event, Tick)
            ticks.append(event)
    return ticks, messages


def assignment_for(url: str, port: int, **values: Any) -> Assignment:
    [assignment] = assignments(plan(url, **values), 3, ("127.0.0.1", port))
    return assignment


async def test_load_continues_while_ticks_are_not_read() -> None:
    interval = 0.001
    async with serving(always(SMALL)) as server:
        assignment = assignment_for(server.url, server.port, duration=600.0, tick=interval)
        async with worker(assignment) as process:
            assert process.stdout
            # Disable the reader's own buffering, so that unread ticks stay in the pipe.
            process._transport.get_pipe_transport(1).pause_reading()  # type: ignore[attr-defined]
            at = monotonic()
            send(process, Start(at))
            # Far more ticks than fit into a pipe.
            await server.until(lambda: monotonic() > at + 0.6 and server.requests > 500)
            before = server.requests
            await server.until(lambda: server.requests > before + 200)
            process._transport.get_pipe_transport(1).resume_reading()  # type: ignore[attr-defined]
            send(process, Stop())
            ticks, messages = await remaining(process)
    assert messages == [Done("stopped")]
    assert all(first.t == second.start for first, second in pairwise(ticks))
    assert max(tick.t - tick.start for tick in ticks) > 10 * interval
    completed = sum(tick.completed for tick in ticks)
    assert sum(tick.sent for tick in ticks) == completed + sum(tick.abandoned for tick in ticks)
    assert sum(tick.service.count for tick in ticks) == completed
    assert completed <= server.requests <= completed + 4


@pytest.mark.parametrize("started", [True, False])
async def test_end_of_stdin_ends_worker(started: bool) -> None:
    async with (
        serving(always(SMALL)) as server,
        worker(assignment_for(server.url, server.port, duration=600.0)) as process,
    ):
        assert process.stdin and process.stdout
        at = monotonic()
        if started:
            send(process, Start(at))
            tick = decode(await process.stdout.readline())
            assert isinstance(tick, Tick) and (tick.run, tick.worker, tick.start) == (3, 0, at)
        process.stdin.close()
        ticks, messages = await remaining(process)
        assert messages == ([Done("stopped")] if started else [])
        assert await process.wait() == 0
    assert bool(ticks) == bool(server.requests) == started


async def test_missing_file_descriptors_have_own_kind_of_error() -> None:
    limited = ("sh", "-c", 'ulimit -n 50 && exec "$@"', "sh", *COMMAND)

    async with serving(once(hold=True)) as server:
        assignment = assignment_for(server.url, server.port, duration=600.0, concurrency=80)
        async with worker(assignment, *limited) as process:
            send(process, Start(monotonic()))
            await server.until(lambda: server.requests >= 20)
            assert process.stdout
            ticks: list[Tick] = []
            while not ticks or not ticks[-1].errors:
                tick = decode(await process.stdout.readline())
                assert isinstance(tick, Tick)
                ticks.append(tick)
            send(process, Stop())
            ticks += (await remaining(process))[0]
    errors = {kind for tick in ticks for kind in tick.errors}
    assert errors == {"no_file_descriptors"}
    assert sum(tick.abandoned for tick in ticks) > 0


async def test_engine_imports_no_screen_and_no_http_client() -> None:
    script = (
        "import cockpit.load.worker, sys;"
        "print([name for name in ('textual', 'rich', 'httpx', 'asyncssh', 'asyncio', 'ssl') if name in sys.modules])"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert out.strip() == b"[]"


@pytest.mark.usefixtures("real_workers")
async def test_ticks_have_time_waiting_for_cpu() -> None:
    """Two processes compete for a CPU: each waits about as long as the other runs, and the ticks record the wait."""
    outcome, cpu = Outcome(), generator_cpu()
    async with serving(always(SMALL)) as server:
        with busy_loop(cpu):
            run = await begin(plan(server.url, duration=600.0, cpus=(cpu,)), outcome)
            await outcome.until(lambda seen: seen.total("cpu_wait") >= 0.1)
            run.stop()
            await run.wait()
    # The wait cannot exceed the duration of the load, by any of the kernel's clocks.
    assert outcome.total("cpu_wait") <= 1.01 * (outcome.ended.t - outcome.started.t)


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
CONNECTIONS = 3000
# Blocks by which lists and dictionaries may grow; a leak of an object per response or connection is larger.
SLACK = 250


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


def _run_engines(work: list[Assignment], garbage: Connection) -> None:
    """Run assignments without the collector; send the names of the objects of each that only the collector can free."""
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    engines: list[Any] = []
    for assignment in work:
        gc.freeze()
        hooks = Hooks(*[lambda: engines[-1].make_tick(0.0, monotonic())] * 2)
        engines.append(engine_for(assignment, best_poller(), hooks))
        engines[-1].run(monotonic())
        gc.collect()
        garbage.send([type(leaked).__name__ for leaked in gc.garbage])
        gc.garbage.clear()


# A case for each way in which a connection, a parser or a handshake is dropped.
DROPS = """
short body, closed|short body, held|short body, RST|endless headers|NULs, closed|chunk size in words
chunk cut short, closed|chunk cut short, held|chunk cut short, RST|more after the last chunk|refused|resets in a body
closes at once|closes on the second|resets on the second|close that does not close|garbage before the request
TLS, untrusted|TLS, garbage|TLS, closed|TLS, RST|TLS, held|TLS, RST in a body|TLS, broken record|TLS, cut short
TLS, until cut
"""
USER_DROPS = ("endless headers", "chunk cut short, RST", "closes on the second")
USER: dict[str, Any] = {"cookies": True, "requests_per_connection": 2, "think_time": ThinkTime(seconds=0.001)}


async def test_dropped_connections_leave_no_garbage() -> None:
    drops: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in DROPS.strip().replace("\n", "|").split("|")]
    drops += [(name, USER) for name in USER_DROPS]
    async with AsyncExitStack() as servers:
        work: list[Assignment] = []
        for name, values in drops:
            case = CASES[name]
            server = await servers.enter_async_context(case.serve())
            load_plan = plan(server.url, requests=6, timeout=SHORT, tls=case.tls(), **case.plan, **values)
            work += assignments(load_plan, 1, destination(load_plan))
        garbage, sender = FORKS.Pipe(duplex=False)
        process = FORKS.Process(target=_run_engines, args=(work, sender))
        process.start()
        sender.close()
        found = [await asyncio.to_thread(garbage.recv) for _ in drops]
        await asyncio.to_thread(process.join)
        garbage.close()
    assert [(name, leaked) for (name, _), leaked in zip(drops, found, strict=True) if leaked] == []
