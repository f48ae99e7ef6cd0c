"""Servers that treat the connection itself badly, or the order of talk on it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

from tests.load.hostile.rows import OK, Row, repeats, row, says_and_holds, until_gone
from tests.load.servers import Conversation

_CLOSING = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
_LARGE = {"method": "POST", "body": "y" * 8_000_000}


async def _never_reads(talk: Conversation) -> None:
    talk.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.Event().wait()


async def _closes_at_once(talk: Conversation) -> None:
    return


async def _resets_at_once(talk: Conversation) -> None:
    talk.reset()


async def _keeps_and_closes(talk: Conversation) -> None:
    await talk.request()
    await talk.send(OK)


async def _closes_on_the_second(talk: Conversation) -> None:
    await talk.request()
    await talk.send(OK)
    await talk.request()


async def _resets_on_the_second(talk: Conversation) -> None:
    await talk.request()
    await talk.send(OK)
    await talk.request()
    talk.reset()


async def _resets_after(talk: Conversation) -> None:
    await talk.request()
    await talk.send(OK)
    talk.reset()


async def _half_closes(talk: Conversation) -> None:
    await talk.request()
    await talk.send(OK)
    talk.writer.write_eof()
    await until_gone(talk)


async def _replies_unasked(talk: Conversation) -> None:
    await talk.send(b"HTTP/1.1 408 Too Slow\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    await talk.request()


async def _garbage_unasked(talk: Conversation) -> None:
    await talk.send(b"\x00\x01\x02\r\n\r\n")
    await talk.request()


async def _greets(talk: Conversation) -> None:
    await talk.send(b"220 mail.example ESMTP\r\n")
    await until_gone(talk)


async def _refuses_a_body(talk: Conversation) -> None:
    """Closing with the body unread makes the kernel send RST, which may overtake the reply."""
    await talk.reader.readuntil(b"\r\n\r\n")
    await talk.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


async def _refuses_a_body_and_drains(talk: Conversation) -> None:
    await talk.reader.readuntil(b"\r\n\r\n")
    await talk.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    await until_gone(talk)


async def _resets_in_a_body(talk: Conversation) -> None:
    await talk.reader.readuntil(b"\r\n\r\n")
    talk.reset()


@asynccontextmanager
async def _refused() -> AsyncIterator[SimpleNamespace]:
    """A port that nobody listens on, kept from others."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield SimpleNamespace(url=f"http://127.0.0.1:{held.getsockname()[1]}/x")


@asynccontextmanager
async def _deaf() -> AsyncIterator[SimpleNamespace]:
    """A backlog that is full: the kernel drops every further connect."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        fillers = [socket.socket() for _ in range(3)]
        try:
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(deaf.getsockname())
            yield SimpleNamespace(url=f"http://127.0.0.1:{deaf.getsockname()[1]}/x")
        finally:
            for filler in fillers:
                filler.close()


CONNECTIONS: tuple[Row, ...] = (
    Row("refused", "nobody listens", ("refused",), _refused),
    Row("full backlog", "connects are not answered", ("connect_timeout",), _deaf),
    row("never reads", "accepts and reads nothing", _never_reads, "timeout"),
    row("never reads a body", "the same with 8 MB to send", _never_reads, "timeout", plan=_LARGE),
    row("resets in a body", "resets while the client sends 8 MB", _resets_in_a_body, "reset", plan=_LARGE),
    row("refuses a body", "413 and closes, the body unread", _refuses_a_body, 413, "reset", plan=_LARGE),
    row("refuses a body, drains", "413, and reads the rest", _refuses_a_body_and_drains, 413, plan=_LARGE),
    row("closes at once", "closes right after accept", _closes_at_once, "closed_before_response", "reset"),
    row("resets at once", "resets right after accept", _resets_at_once, "reset"),
    row("keep-alive that does not keep", "closes after a reply that keeps", _keeps_and_closes, 200),
    row("closes on the second", "takes a second request and closes", _closes_on_the_second, 200),
    row("resets on the second", "takes a second request and resets", _resets_on_the_second, 200),
    row("resets between requests", "resets after each reply", _resets_after, 200),
    row("half closes", "sends no more, but reads on", _half_closes, 200),
    row("close that does not close", "says close and stays open", says_and_holds(_CLOSING), 200),
    row("close under keep-alive", "Connection: close with every reply", repeats(_CLOSING), 200),
    row("two replies at once", "two replies for one request", repeats(OK + OK), 200),
    row("two replies in turn", "a second reply, a segment later", repeats(OK, OK), 200),
    row("reply before the request", "408 as soon as it accepts", _replies_unasked, 408),
    row("garbage before the request", "garbage as soon as it accepts", _garbage_unasked, "malformed"),
    row("greets first", "greets as a mail server does", _greets, "malformed"),
)
