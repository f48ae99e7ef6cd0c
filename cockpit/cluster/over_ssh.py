"""A Dask cluster for one session over SSH: the scheduler on this machine, a worker on each generator.

All their connections go through SSH and are also encrypted with the session's certificate; no port is open to the
network.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cockpit import DISTRIBUTION, __version__
from cockpit.cluster.certificates import Certificate, session_certificate
from cockpit.cluster.programs import GeneratorOrder, GeneratorVersions, SchedulerOrder, Started
from cockpit.hosts.shell import Channel, HostConnection, Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import CockpitError, HostError, NotInstalled
from cockpit.model.host.samples import GeneratorConfig, HostConfig
from cockpit.model.text import sanitize

if TYPE_CHECKING:
    from distributed.security import Security

_PROGRAM = "cockpit.cluster.program"
# sh: the profile's interpreter, else that of the virtual environment made by cockpit, else the system's.
_LAUNCH = f"""
python=@PYTHON@
own=${{XDG_STATE_HOME:-$HOME/.local/state}}/{DISTRIBUTION}/venv/bin/python
[ "$python" ] || python=$own
[ -x "$python" ] || [ "$python" != "$own" ] || python=python3
exec "$python" -P -m {_PROGRAM} generator
"""
# Timeout (s) for a program to answer: importing Dask takes seconds on a slow machine.
_STARTING = 30.0
# Timeout (s) for a program to end.
_ENDING = 3.0
_CHUNK = 65536
_Answer = TypeVar("_Answer")


@asynccontextmanager
async def cluster_over_ssh(
    generators: Sequence[GeneratorConfig], ssh_config: Path | None
) -> AsyncIterator[tuple[str, Security]]:
    """Yield the scheduler's address and Dask's options to connect. All programs end with the block. Raises
    HostError."""
    certificate = session_certificate()
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(_local_scheduler(certificate))
        starting = (stack.enter_async_context(_generator(each, certificate, port, ssh_config)) for each in generators)
        for problem in await asyncio.gather(*starting, return_exceptions=True):
            if isinstance(problem, BaseException):
                raise problem
        yield f"tls://127.0.0.1:{port}", certificate.security()


@asynccontextmanager
async def _local_scheduler(certificate: Certificate) -> AsyncIterator[int]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", _PROGRAM, "scheduler"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(msgspec.json.encode(SchedulerOrder(certificate)) + b"\n")
        line = await _within(process.stdout.readline(), "the scheduler")
        yield _started(line, "the scheduler")
    finally:
        process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENDING):
                await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def load_program(config: GeneratorConfig, ssh_config: Path | None) -> AsyncIterator[tuple[Shell, Channel]]:
    """Yield the connection to a generator and its load program, which has the versions of this machine. Raises
    HostError, UsageError."""
    shell = await open_shell(HostConfig.of_generator(config), ssh_config)
    try:
        python = config.python or (sys.executable if config.ssh == "." else "")
        channel = await shell.open(_LAUNCH.replace("@PYTHON@", quote(python)))
        try:
            offer = _decoded(await _within(channel.readline(), config.name), GeneratorVersions, config, channel)
            _check(offer, config)
            yield shell, channel
        finally:
            await _end(channel)
    finally:
        await shell.close()


@asynccontextmanager
async def _generator(
    config: GeneratorConfig, certificate: Certificate, scheduler: int, ssh_config: Path | None
) -> AsyncIterator[None]:
    async with load_program(config, ssh_config) as (shell, channel):
        back = await shell.forward_back(scheduler)
        listening: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        async with _forwarded(shell, listening) as contact:
            order = GeneratorOrder(
                name=config.name,
                certificate=certificate,
                scheduler=f"tls://127.0.0.1:{back}",
                contact=f"tls://127.0.0.1:{contact}",
            )
            await channel.write(msgspec.json.encode(order) + b"\n")
            listening.set_result(_started(await _within(channel.readline(), config.name), config.name))
            yield


async def _end(channel: Channel) -> None:
    """Tell the program to end and wait for its end, if the host can still be reached."""
    with suppress(HostError, TimeoutError):
        async with asyncio.timeout(_ENDING):
            await channel.write(b"end\n")
            while await channel.readline():
                pass
    channel.close()


@asynccontextmanager
async def _forwarded(shell: Shell, port: asyncio.Future[int]) -> AsyncIterator[int]:
    """Yield a local port on 127.0.0.1 whose connections are forwarded to `port` on the host's 127.0.0.1, when that is
    known."""
    tasks: set[asyncio.Task[None]] = set()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            wire = await shell.open_stream("127.0.0.1", await port)
            try:
                await asyncio.gather(_to_wire(reader, wire), _from_wire(wire, writer))
            finally:
                wire.close()
        except (HostError, OSError):
            pass  # both ends see a closed connection
        finally:
            writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(forward(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _to_wire(reader: asyncio.StreamReader, wire: HostConnection) -> None:
    while data := await reader.read(_CHUNK):
        await wire.write(data)
    wire.close()


async def _from_wire(wire: HostConnection, writer: asyncio.StreamWriter) -> None:
    while data := await wire.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    writer.close()


async def _within(reading: Awaitable[bytes], name: str) -> bytes:
    try:
        async with asyncio.timeout(_STARTING):
            return await reading
    except TimeoutError:
        raise HostError(f"the load program did not start within {_STARTING:.0f} s", subject=name) from None


def _decoded(line: bytes, answer: type[_Answer], config: GeneratorConfig, channel: Channel) -> _Answer:
    try:
        return msgspec.json.decode(line, type=answer)
    except msgspec.MsgspecError:
        words = channel.stderr.decode(errors="replace").strip().splitlines()
        reason = sanitize(words[-1], 200) if words else "no output"
        way_out = f"install cockpit {__version__} with the extra 'cluster' there"
        raise NotInstalled(f"the load program does not start ({reason}); {way_out}", subject=config.name) from None


def _check(offer: GeneratorVersions, config: GeneratorConfig) -> None:
    """Raises NotInstalled for versions that cannot work together, HostError for another Python."""
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    there = sanitize(".".join(offer.python.split(".")[:2]), 40)
    if here != there:
        problem = (
            f"Python {there} there, {here} here; name a Python {here} with cockpit by `python` of its [[generator]]"
        )
        raise HostError(problem, subject=config.name)
    dask = version("distributed")
    for name, mine, other in (("cockpit", __version__, offer.version), ("Dask", dask, offer.dask)):
        if mine != other:
            theirs = sanitize(other, 40)
            raise NotInstalled(f"{name} {theirs} there, {mine} here; install the same version", subject=config.name)


def _started(line: bytes, name: str) -> int:
    try:
        started = msgspec.json.decode(line, type=Started)
    except msgspec.MsgspecError:
        raise CockpitError(f"{name} did not start") from None
    if started.problem:
        raise HostError(sanitize(started.problem, 200), subject=name)
    return started.port
