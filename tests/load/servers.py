"""Servers whose responses a test controls, and the events of runs against them."""

from __future__ import annotations

import asyncio
import selectors
import socket
import ssl
import struct
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from msgspec.structs import replace

from cockpit.load.engine import Hooks
from cockpit.load.http.protocol import Assignment, assignments
from cockpit.load.http.request import target_of
from cockpit.load.log_reader import read_log
from cockpit.load.poller import Poller, SelectorPoller, best_poller
from cockpit.load.pool import LoadRun, launch
from cockpit.load.worker import engine_for
from cockpit.model.clock import Clock
from cockpit.model.counts import Group
from cockpit.model.events import AnyEvent, LoadAdjusted, RunEnded, RunStarted
from cockpit.model.generators import WorkerLost
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import LoadPlan
from cockpit.model.tick import Tick
from tests.waiting import DEADLINE

SMALL = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@dataclass
class ClientConnection:
    """A connection on the server's side. `requests` counts requests; each of them sets `request_arrived`."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    request_arrived: asyncio.Event
    requests: int = 0

    async def request(self) -> bytes:
        """Return the next request with its body. Raises EOFError if the client closes first."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        self.requests += 1
        self.request_arrived.set()
        return head + await self.reader.readexactly(length)

    async def send(self, *pieces: bytes) -> None:
        """Send each piece with a separate write."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)

    def reset(self) -> None:
        """Abort the connection with RST instead of FIN."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Behaviour = Callable[[ClientConnection], Awaitable[None]]


@dataclass
class Server:
    """A listening server with its connections and its number of requests."""

    port: int
    scheme: str = "http"
    connections: list[ClientConnection] = field(default_factory=list)
    request_arrived: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/x"

    @property
    def requests(self) -> int:
        return sum(client.requests for client in self.connections)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for the condition, which is checked after each request."""
        async with asyncio.timeout(DEADLINE):
            while not condition():
                self.request_arrived.clear()
                await self.request_arrived.wait()


async def stop_listening(listener: asyncio.Server) -> None:
    """Close a listener after connections just accepted have reached their handlers, which close them."""
    for sock in listener.sockets:
        asyncio.get_running_loop().remove_reader(sock.fileno())
    for _ in range(10):
        await asyncio.sleep(0)
    # After this, asyncio drops accepted connections without closing them.
    listener.close()


@asynccontextmanager
async def serving(
    behave: Behaviour, secure: ssl.SSLContext | None = None, *, address: str = "127.0.0.1", path: str | None = None
) -> AsyncIterator[Server]:
    """Run a server that handles each connection with `behave` and then closes it.

    With TLS if `secure`; on a Unix socket if there is a `path`.
    """
    running: set[asyncio.Task[Any]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        client = ClientConnection(reader, writer, server.request_arrived)
        server.connections.append(client)
        try:
            with suppress(EOFError, OSError, asyncio.CancelledError):
                await behave(client)
        finally:
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()
            running.discard(task)

    if path:
        listener, port = await asyncio.start_unix_server(handle, path, backlog=1024), 0
    else:
        listener = await asyncio.start_server(handle, address, 0, backlog=1024, ssl=secure)
        port = listener.sockets[0].getsockname()[1]
    server = Server(port, "https" if secure else "http")
    try:
        yield server
    finally:
        await stop_listening(listener)
        for client in server.connections:
            # A close would wait for a client that reads nothing.
            # Python before 3.11.5 cannot abort TLS that is already closed.
            with suppress(AttributeError):
                client.writer.transport.abort()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await listener.wait_closed()


def always(*pieces: bytes) -> Behaviour:
    """Respond to every request with these bytes, and keep the connection."""

    async def behave(client: ClientConnection) -> None:
        while True:
            await client.request()
            await client.send(*pieces)

    return behave


def closing_after(requests: int) -> Behaviour:
    """Respond to this number of requests, and close the connection."""

    async def behave(client: ClientConnection) -> None:
        for _ in range(requests):
            await client.request()
            await client.send(SMALL)

    return behave


def once(*pieces: bytes, hold: bool = False, reset: bool = False) -> Behaviour:
    """Respond to a single request with these bytes; then close the connection, reset it, or neither send nor close."""

    async def behave(client: ClientConnection) -> None:
        await client.request()
        await client.send(*pieces)
        if reset:
            client.reset()
        elif hold:
            await client.reader.read()

    return behave


def plan(url: str, **values: Any) -> LoadPlan:
    """Return a plan whose requests time out only if they are never answered."""
    concurrency = min(4, values.get("requests") or 4)
    return LoadPlan(**{"url": url, "concurrency": concurrency, "timeout": DEADLINE / 2, **values})


class Outcome:
    """The events of a run, and sums over its ticks."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        self.changed = asyncio.Event()

    def emit(self, event: AnyEvent) -> None:
        self.events.append(event)
        self.changed.set()

    async def until(self, condition: Callable[[Outcome], bool]) -> None:
        """Wait for events until the condition holds."""
        async with asyncio.timeout(DEADLINE):
            while not condition(self):
                self.changed.clear()
                await self.changed.wait()

    @property
    def ticks(self) -> list[Tick]:
        return [event for event in self.events if isinstance(event, Tick)]

    @property
    def started(self) -> RunStarted:
        return next(event for event in self.events if isinstance(event, RunStarted))

    @property
    def ended(self) -> RunEnded:
        return next(event for event in self.events if isinstance(event, RunEnded))

    @property
    def lost(self) -> list[WorkerLost]:
        return [event for event in self.events if isinstance(event, WorkerLost)]

    @property
    def adjusted(self) -> list[LoadAdjusted]:
        return [event for event in self.events if isinstance(event, LoadAdjusted)]

    @property
    def groups(self) -> dict[str, list[Group]]:
        """The groups of all ticks by name of the request."""
        found: dict[str, list[Group]] = {}
        for tick in self.ticks:
            for name, group in tick.groups.items():
                found.setdefault(name, []).append(group)
        return found

    def total(self, name: str) -> int:
        """Return the sum of a counter over all ticks."""
        return sum(getattr(tick, name) for tick in self.ticks)

    def counts_of(self, name: str) -> dict[Any, int]:
        """Return the sum of a counter by kind over all ticks."""
        return dict(sum((Counter(getattr(tick, name)) for tick in self.ticks), Counter[Any]()))

    @property
    def errors(self) -> dict[str, int]:
        return self.counts_of("errors")

    @property
    def unexpected(self) -> dict[str, int]:
        return self.counts_of("unexpected")

    @property
    def statuses(self) -> dict[int, int]:
        return self.counts_of("statuses")

    def merged(self, name: str) -> Histogram:
        """Return a histogram merged over all ticks."""
        return Histogram.merged(getattr(tick, name) for tick in self.ticks)


async def begin(load: LoadPlan, outcome: Outcome) -> LoadRun:
    """Launch without a preflight, so that the target receives only load."""
    return await launch(load, 1, Clock(), outcome.emit)


POLLERS: dict[str, Callable[[], Poller]] = {
    "best": best_poller,
    "level-triggered": lambda: SelectorPoller(selectors.PollSelector()),
}


async def engine_load(load_plan: LoadPlan, poller: str = "best", address: tuple[str, int] | None = None) -> Outcome:
    """Run a plan in an engine alone, in a thread of this process."""
    [assignment] = assignments(load_plan, 1, address or ("127.0.0.1", target_of(load_plan.url).port))
    if load_plan.replay is not None:
        assignment = replace(assignment, log=read_log(load_plan).share(0, 1))
    return await run_engine(assignment, poller)


async def run_engine(assignment: Assignment, poller: str = "best") -> Outcome:
    """Run an assignment in an engine alone, in a thread of this process."""
    outcome = Outcome()
    since = monotonic()

    def tick() -> None:
        nonlocal since
        now = monotonic()
        outcome.emit(engine.make_tick(since, now))
        since = now

    engine = engine_for(assignment, POLLERS[poller](), Hooks(tick, tick))
    async with asyncio.timeout(DEADLINE):
        await asyncio.to_thread(engine.run, since)
    tick()
    return outcome


async def engine_run(behave: Behaviour, poller: str = "best", **values: Any) -> tuple[Outcome, Server]:
    """Run a plan of these values in an engine alone, against a server with this behaviour."""
    async with serving(behave) as server:
        return await engine_load(plan(server.url, **values), poller), server


async def load_until(
    make_plan: Callable[[float], LoadPlan],
    condition: Callable[[Outcome], bool],
    run: Callable[[LoadPlan], Awaitable[Outcome]] | None = None,
) -> Outcome:
    """Run increasingly long plans (made from a factor) with `run` (default: `load`) until the condition holds; return
    the last outcome.

    For effects that need a fraction of a second on an idle machine, and longer runs on a busy machine.
    """
    for factor in (1.0, 4.0, 16.0, 64.0):
        outcome = await (run or load)(make_plan(factor))
        if condition(outcome):
            break
    return outcome


async def load(load_plan: LoadPlan) -> Outcome:
    """Run a plan with its worker processes."""
    outcome = Outcome()
    run = await begin(load_plan, outcome)
    await run.wait()
    return outcome
