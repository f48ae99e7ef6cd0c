"""The type of hostile cases, and the building blocks of hostile behaviours."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from cockpit.model.load.plan import Tls
from tests.load.servers import Behaviour, ClientConnection, serving

# Request timeout (s) of cases in which requests are expected to time out.
SHORT = 0.2
# Request timeout (s) of all other cases, long enough for a busy machine.
LONG = 60.0

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
# Bytes; more than the client's limit for a head.
GIANT = 300_000

Serve = Callable[[], AbstractAsyncContextManager[Any]]


@dataclass(frozen=True)
class HostileCase:
    """A hostile server by name.

    `expected` is the result of each request: a status (of a complete response) or a kind of error; several of them
    only if the order of packets decides. `serve` opens the server and yields an object with a `url`. `plan` has the
    fields of the load plan that provoke the behaviour.
    """

    name: str
    expected: tuple[int | str, ...]
    serve: Serve
    plan: dict[str, Any] = field(default_factory=dict)
    tls: Callable[[], Tls] = Tls

    @property
    def timeout(self) -> float:
        """Request timeout (s), short if the case expects a time-out."""
        return SHORT if {"timeout", "connect_timeout"} & set(self.expected) else LONG


def case(name: str, behave: Behaviour, *expected: int | str, **more: Any) -> HostileCase:
    """Make a case of a server that handles each connection with `behave`."""
    return HostileCase(name, expected, lambda: serving(behave), **more)


async def until_closed(client: ClientConnection) -> None:
    """Send nothing; wait for the client to close the connection."""
    while await client.reader.read(1 << 16):
        pass


def sends_endlessly(beginning: bytes, again: bytes) -> Behaviour:
    """Respond with `beginning`, then repeat `again` until the client closes."""

    async def behave(client: ClientConnection) -> None:
        await client.request()
        await client.send(beginning)
        while True:
            await client.send(again)

    return behave


def drips(reply: bytes, every: float) -> Behaviour:
    """Respond to each request byte by byte, with `every` seconds between bytes."""

    async def behave(client: ClientConnection) -> None:
        while True:
            await client.request()
            for at in range(len(reply)):
                await client.send(reply[at : at + 1])
                await asyncio.sleep(every)

    return behave
