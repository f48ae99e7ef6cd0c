"""Servers that mistreat the connection, or the order of messages on it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

from tests.load.hostile.cases import OK, HostileCase, case, repeats, sends_and_holds, until_closed
from tests.load.servers import ClientConnection

_CLOSING = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
_LARGE = {"method": "POST", "body": "y" * 8_000_000}


async def _never_reads(client: ClientConnection) -> None:
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.Event().wait()


async def _closes_at_once(client: ClientConnection) -> None:
    return


async def _resets_at_once(client: ClientConnection) -> None:
    client.reset()


async def _keeps_and_closes(client: ClientConnection) -> None:
    await client.request()
    await client.send(OK)


async def _closes_on_the_second(client: ClientConnection) -> None:
    await client.request()
    await client.send(OK)
    await client.request()


async def _resets_on_the_second(client: ClientConnection) -> None:
    await client.request()
    await client.send(OK)
    await client.request()
    client.reset()


async def _resets_after(client: ClientConnection) -> None:
    await client.request()
    await client.send(OK)
    client.reset()


async def _half_closes(client: ClientConnection) -> None:
    await client.request()
    await client.send(OK)
    client.writer.write_eof()
    await until_closed(client)


async def _responds_unasked(client: ClientConnection) -> None:
    await client.send(b"HTTP/1.1 408 Too Slow\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    await client.request()


async def _garbage_unasked(client: ClientConnection) -> None:
    await client.send(b"\x00\x01\x02\r\n\r\n")
    await client.request()


async def _greets(client: ClientConnection) -> None:
    await client.send(b"220 mail.example ESMTP\r\n")
    await until_closed(client)


async def _refuses_a_body(client: ClientConnection) -> None:
    """A close with an unread body makes the kernel send RST, which may overtake the response."""
    await client.reader.readuntil(b"\r\n\r\n")
    await client.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


async def _refuses_a_body_and_drains(client: ClientConnection) -> None:
    await client.reader.readuntil(b"\r\n\r\n")
    await client.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    await until_closed(client)


async def _resets_in_a_body(client: ClientConnection) -> None:
    await client.reader.readuntil(b"\r\n\r\n")
    client.reset()


@asynccontextmanager
async def _refused() -> AsyncIterator[SimpleNamespace]:
    """Reserve a port without listening on it."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield SimpleNamespace(url=f"http://127.0.0.1:{reserved.getsockname()[1]}/x")


@asynccontextmanager
async def _full_backlog() -> AsyncIterator[SimpleNamespace]:
    """Listen with a full backlog: the kernel drops further connects."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(3)]
        try:
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
            yield SimpleNamespace(url=f"http://127.0.0.1:{listener.getsockname()[1]}/x")
        finally:
            for filler in fillers:
                filler.close()


CONNECTIONS: tuple[HostileCase, ...] = (
    HostileCase("refused", "no listener", ("refused",), _refused),
    HostileCase("full backlog", "connects are not answered", ("connect_timeout",), _full_backlog),
    case("never reads", "accepts and reads nothing", _never_reads, "timeout"),
    case("never reads a body", "the same with 8 MB to send", _never_reads, "timeout", plan=_LARGE),
    case("resets in a body", "resets while the client sends 8 MB", _resets_in_a_body, "reset", plan=_LARGE),
    case("refuses a body", "413 and closes, the body unread", _refuses_a_body, 413, "reset", plan=_LARGE),
    case("refuses a body, drains", "413, and reads the rest", _refuses_a_body_and_drains, 413, plan=_LARGE),
    case("closes at once", "closes right after accept", _closes_at_once, "closed_before_response", "reset"),
    case("resets at once", "resets right after accept", _resets_at_once, "reset"),
    case("keep-alive that does not keep", "closes after a keep-alive response", _keeps_and_closes, 200),
    case("closes on the second", "takes a second request and closes", _closes_on_the_second, 200),
    case("resets on the second", "takes a second request and resets", _resets_on_the_second, 200),
    case("resets between requests", "resets after each response", _resets_after, 200),
    case("half closes", "shuts down sending, but reads on", _half_closes, 200),
    case("close that does not close", "announces close and stays open", sends_and_holds(_CLOSING), 200),
    case("close under keep-alive", "Connection: close with every response", repeats(_CLOSING), 200),
    case("two responses at once", "two responses to a request", repeats(OK + OK), 200),
    case("two responses in turn", "a second response, a segment later", repeats(OK, OK), 200),
    case("response before the request", "408 as soon as it accepts", _responds_unasked, 408),
    case("garbage before the request", "garbage as soon as it accepts", _garbage_unasked, "malformed"),
    case("greets first", "sends the greeting of a mail server", _greets, "malformed"),
)
