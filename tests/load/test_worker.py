"""The worker process alone: its pipes, and a slow or missing peer."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from time import monotonic
from typing import Any

import pytest

from cockpit.load.protocol import MESSAGE_START, Assignment, Done, Start, Stop, assignments, decode_message, encode
from cockpit.model.events import decode
from cockpit.model.tick import Tick
from tests.lab.cpus import generator_cpu
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
