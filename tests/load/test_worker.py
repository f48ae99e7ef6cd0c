"""The worker process on its own: its pipes, and what it does when the other end is slow or gone."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from time import monotonic
from typing import Any

from cockpit.load.protocol import SAYING, Assignment, Done, Start, Stop, assignments, decode_saying, encode
from cockpit.model.events import Tick, decode
from tests.lab.cpus import generator_cpu
from tests.load.servers import DEADLINE, SMALL, Conversation, Outcome, always, begin, plan, serving

COMMAND = (sys.executable, "-P", "-m", "cockpit.load.worker")


@asynccontextmanager
async def worker(assignment: Assignment, *command: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker that is ready."""
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


def tell(process: asyncio.subprocess.Process, message: Start | Stop) -> None:
    assert process.stdin
    process.stdin.write(encode(message) + b"\n")


@contextmanager
def hog(cpu: int) -> Iterator[None]:
    """Somebody else who wants all of a CPU, for as long as this lasts and a minute at most."""
    with subprocess.Popen(["timeout", "60", "taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]) as process:
        try:
            yield
        finally:
            process.terminate()


async def rest(process: asyncio.subprocess.Process) -> tuple[list[Tick], list[Any]]:
    """Everything it still says."""
    ticks: list[Tick] = []
    sayings: list[Any] = []
    assert process.stdout
    async for line in process.stdout:
        if line.startswith(SAYING):
            sayings.append(decode_saying.decode(line))
        else:
            event = decode(line)
            assert isinstance(event, Tick)
            ticks.append(event)
    return ticks, sayings


async def tick_with_errors(process: asyncio.subprocess.Process) -> Tick:
    """Return the first tick that counts a failed request."""
    assert process.stdout
    while line := await process.stdout.readline():
        event = decode(line)
        assert isinstance(event, Tick)
        if event.errors:
            return event
    raise AssertionError("the worker ended before a request failed")


def assignment_for(url: str, port: int, **values: Any) -> Assignment:
    [assignment] = assignments(plan(url, **values), 3, ("127.0.0.1", port))
    return assignment


async def test_load_goes_on_when_nobody_reads_the_ticks() -> None:
    tick = 0.001
    async with serving(always(SMALL)) as server:
        assignment = assignment_for(server.url, server.port, duration=600.0, tick=tick)
        async with worker(assignment) as process:
            assert process.stdout
            # Take away the reader's own buffering: what it does not read stays in the pipe.
            process._transport.get_pipe_transport(1).pause_reading()  # type: ignore[attr-defined]
            at = monotonic()
            tell(process, Start(at))
            # Far more ticks than a pipe has room for.
            await server.until(lambda: monotonic() > at + 1.0 and server.requests > 1000)
            before = server.requests
            await server.until(lambda: server.requests > before + 200)
            process._transport.get_pipe_transport(1).resume_reading()  # type: ignore[attr-defined]
            tell(process, Stop())
            ticks, sayings = await rest(process)
    assert sayings == [Done("stopped")]
    assert all(first.t == second.start for first, second in pairwise(ticks))
    assert max(one.t - one.start for one in ticks) > 10 * tick
    completed = sum(one.completed for one in ticks)
    assert sum(one.sent for one in ticks) == completed + sum(one.abandoned for one in ticks)
    assert sum(one.service.count for one in ticks) == completed
    assert completed <= server.requests <= completed + 4


async def test_the_end_of_stdin_ends_the_load() -> None:
    async with (
        serving(always(SMALL)) as server,
        worker(assignment_for(server.url, server.port, duration=600.0)) as process,
    ):
        assert process.stdin and process.stdout
        tell(process, Start(monotonic()))
        await process.stdout.readline()
        process.stdin.close()
        _, sayings = await rest(process)
        assert sayings == [Done("stopped")]
        assert await process.wait() == 0


async def test_without_a_start_it_ends_with_stdin() -> None:
    async with (
        serving(always(SMALL)) as server,
        worker(assignment_for(server.url, server.port, requests=5)) as process,
    ):
        assert process.stdin
        process.stdin.close()
        assert await rest(process) == ([], [])
    assert server.requests == 0


async def test_ticks_carry_run_and_worker_and_the_monotonic_clock() -> None:
    async with (
        serving(always(SMALL)) as server,
        worker(assignment_for(server.url, server.port, requests=50)) as process,
    ):
        at = monotonic()
        tell(process, Start(at))
        ticks, sayings = await rest(process)
    assert sayings == [Done("completed")]
    assert {(tick.run, tick.worker) for tick in ticks} == {(3, 0)}
    assert ticks[0].start == at
    assert at < ticks[-1].t < monotonic()


async def test_running_out_of_file_descriptors_is_counted_as_that() -> None:
    limited = ("sh", "-c", 'ulimit -n 50 && exec "$@"', "sh", *COMMAND)

    async def behave(talk: Conversation) -> None:
        await talk.request()
        await talk.reader.read()

    async with serving(behave) as server:
        assignment = assignment_for(server.url, server.port, duration=600.0, concurrency=80)
        async with worker(assignment, *limited) as process:
            tell(process, Start(monotonic()))
            await server.until(lambda: server.requests >= 20)
            ticks = [await tick_with_errors(process)]
            tell(process, Stop())
            ticks += (await rest(process))[0]
    errors = {kind for tick in ticks for kind in tick.errors}
    assert errors == {"no_file_descriptors"}
    assert sum(tick.abandoned for tick in ticks) > 0


async def test_an_engine_imports_no_screen_and_no_http_client() -> None:
    script = (
        "import cockpit.load.worker, sys;"
        "print([name for name in ('textual', 'rich', 'httpx', 'asyncssh', 'asyncio', 'ssl') if name in sys.modules])"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert out.strip() == b"[]"


async def test_the_time_it_waits_for_a_cpu_is_told() -> None:
    """Two that want all of one CPU: each waits about as long as the other runs, and the ticks say so."""
    outcome, cpu = Outcome(), generator_cpu()
    async with serving(always(SMALL)) as server:
        with hog(cpu):
            run = await begin(plan(server.url, duration=600.0, cpus=(cpu,)), outcome)
            await outcome.until(lambda seen: seen.total("cpu_wait") >= 0.1)
            run.stop()
            await run.wait()
    # It cannot have waited longer than there was load, by whichever of the kernel's clocks.
    assert outcome.total("cpu_wait") <= 1.01 * (outcome.ended.t - outcome.started.t)
