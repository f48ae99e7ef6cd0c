"""A program of a cluster: `python -m cockpit.cluster.program scheduler|generator`. It ends with its standard input, or
with the next line there."""

from __future__ import annotations

import asyncio
import platform
import sys
from importlib.metadata import version
from typing import Any

import distributed
import msgspec

from cockpit import __version__
from cockpit.cluster.programs import GeneratorOrder, Offer, SchedulerOrder, Started

# Seconds without its scheduler after which a generator ends, and timeout of the join.
_DEATH = 15.0
_JOIN = 20.0


async def _scheduler(lines: asyncio.StreamReader) -> None:
    order = msgspec.json.decode(await lines.readline(), type=SchedulerOrder)
    async with distributed.Scheduler(
        host="127.0.0.1", port=0, protocol="tls", dashboard=False, security=order.certificate.security()
    ) as scheduler:
        _say(Started(_port_of(scheduler.listen_address)))
        await lines.readline()


async def _generator(lines: asyncio.StreamReader) -> None:
    _say(Offer(version=__version__, python=platform.python_version(), dask=version("distributed")))
    order = msgspec.json.decode(await lines.readline(), type=GeneratorOrder)
    worker = distributed.Worker(
        order.scheduler,
        name=order.name,
        host="127.0.0.1",
        port=0,
        protocol="tls",
        contact_address=order.contact,
        security=order.certificate.security(),
        nthreads=1,
        death_timeout=_DEATH,
        dashboard=False,
        memory_limit=None,
    )
    try:
        async with asyncio.timeout(_JOIN):
            await worker
        _say(Started(_port_of(worker.listen_address)))
        await lines.readline()
    finally:
        await worker.close(timeout=1, reason="the cockpit ended it")


def _port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def _say(message: Any) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


def _words(error: BaseException) -> str:
    """An error in one line, with its cause: Dask's own words are only that something did not start."""
    words = (str(error) or type(error).__name__).splitlines()[0]
    return f"{words} ({_words(error.__cause__)})" if error.__cause__ else words


async def _main(role: str) -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    try:
        await (_scheduler if role == "scheduler" else _generator)(lines)
    except (OSError, TimeoutError, RuntimeError, ValueError, msgspec.MsgspecError) as error:
        _say(Started(problem=_words(error)))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
