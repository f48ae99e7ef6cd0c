"""The programs of a cluster: `python -m cockpit.cluster.program scheduler|generator`.

A program reads its order as one line on standard input, and ends at the next line or the end of its input.
"""

from __future__ import annotations

import asyncio
import platform
import sys
import tempfile
from importlib.metadata import version
from typing import Any

import distributed
import msgspec

from cockpit import __version__
from cockpit.cluster.programs import GeneratorOrder, GeneratorVersions, SchedulerOrder, Started

# Time (s) without a scheduler after which a generator ends, and timeout (s) of the join.
_DEATH = 15.0
_JOIN = 20.0


async def _scheduler(lines: asyncio.StreamReader, private: str) -> None:
    order = msgspec.json.decode(await lines.readline(), type=SchedulerOrder)
    async with distributed.Scheduler(
        host="127.0.0.1",
        port=0,
        protocol="tls",
        dashboard=False,
        security=order.certificate.security(),
        local_directory=private,
    ) as scheduler:
        # Dask serves HTTP without the certificate, even without its dashboard.
        scheduler.http_server.stop()
        _print(Started(_port_of(scheduler.listen_address)))
        await lines.readline()


async def _generator(lines: asyncio.StreamReader, private: str) -> None:
    _print(GeneratorVersions(version=__version__, python=platform.python_version(), dask=version("distributed")))
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
        local_directory=private,
    )
    try:
        async with asyncio.timeout(_JOIN):
            await worker
        worker.http_server.stop()
        _print(Started(_port_of(worker.listen_address)))
        await lines.readline()
    finally:
        await worker.close(timeout=1, reason="the cockpit ended it")


def _port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def _print(message: Any) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


def _one_line(error: BaseException) -> str:
    """Return an error as one line with its cause, since Dask's message may only be that something did not start."""
    line = (str(error) or type(error).__name__).splitlines()[0]
    return f"{line} ({_one_line(error.__cause__)})" if error.__cause__ else line


async def _main(role: str) -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    try:
        # Dask imports modules from this directory. Its default is shared with all users.
        with tempfile.TemporaryDirectory(prefix="cockpit-") as private:
            await (_scheduler if role == "scheduler" else _generator)(lines, private)
    except (OSError, TimeoutError, RuntimeError, ValueError, msgspec.MsgspecError) as error:
        _print(Started(problem=_one_line(error)))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
