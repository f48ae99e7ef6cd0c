"""What one row of the registry is, and the few moves that hostile behaviours are made of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from cockpit.model.load import Tls
from tests.load.servers import Behaviour, Conversation, serving

# A run whose requests are to time out does not wait longer than this for each (s).
SHORT = 0.3
# One whose requests are not to time out waits so long that a busy machine does not make them (s).
LONG = 60.0

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
# More than a client may be asked to take for a head.
GIANT = 300_000

Serve = Callable[[], AbstractAsyncContextManager[Any]]


@dataclass(frozen=True)
class Row:
    """A behaviour by name. What it `does`, and what each request to it `ends` as: a status (the reply was whole)
    or a kind of error. More than one of these only where the order of packets decides and not the client.

    `serve` opens the server and yields something
    with a `url`. `plan` holds what the load plan needs to provoke it.
    """

    name: str
    does: str
    ends: tuple[int | str, ...]
    serve: Serve
    plan: dict[str, Any] = field(default_factory=dict)
    tls: Callable[[], Tls] = Tls
    behave: Behaviour | None = None

    @property
    def timeout(self) -> float:
        """Seconds a request is given: few where the row is about time-outs."""
        return SHORT if {"timeout", "connect_timeout"} & set(self.ends) else LONG


def row(name: str, does: str, behave: Behaviour, *ends: int | str, **more: Any) -> Row:
    """A row whose behaviour is a conversation."""
    return Row(name, does, ends, lambda: serving(behave), behave=behave, **more)


async def until_gone(talk: Conversation) -> None:
    """Say nothing more; wait for the client to go."""
    while await talk.reader.read(1 << 16):
        pass


def says(*pieces: bytes) -> Behaviour:
    """Answers one request with these bytes, each a segment of its own, and closes."""

    async def behave(talk: Conversation) -> None:
        await talk.request()
        await talk.send(*pieces)

    return behave


def repeats(*pieces: bytes) -> Behaviour:
    """Answers every request on the connection so."""

    async def behave(talk: Conversation) -> None:
        while True:
            await talk.request()
            await talk.send(*pieces)

    return behave


def says_and_holds(*pieces: bytes) -> Behaviour:
    """Answers one request with these bytes and then neither speaks nor closes."""

    async def behave(talk: Conversation) -> None:
        await talk.request()
        await talk.send(*pieces)
        await until_gone(talk)

    return behave


def says_and_resets(*pieces: bytes) -> Behaviour:
    """Answers one request with these bytes and breaks off with RST."""

    async def behave(talk: Conversation) -> None:
        await talk.request()
        await talk.send(*pieces)
        talk.reset()

    return behave


def says_without_end(beginning: bytes, again: bytes) -> Behaviour:
    """Answers with `beginning` and then `again` for as long as the client stays."""

    async def behave(talk: Conversation) -> None:
        await talk.request()
        await talk.send(beginning)
        while True:
            await talk.send(again)

    return behave


def drips(reply: bytes, every: float) -> Behaviour:
    """Answers every request byte by byte, `every` seconds one."""

    async def behave(talk: Conversation) -> None:
        while True:
            await talk.request()
            for at in range(len(reply)):
                await talk.send(reply[at : at + 1])
                await asyncio.sleep(every)

    return behave
