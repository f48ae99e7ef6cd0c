"""Servers that mistreat the connection, or the order of messages on it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

from tests.load.hostile.cases import OK, HostileCase, case, until_closed
from tests.load.servers import Behaviour, ClientConnection, always, once

_CLOSING = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
_TOO_LARGE = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_UNASKED = b"HTTP/1.1 408 Too Slow\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_LARGE = {"method": "POST", "body": "y" * 8_000_000}


async def _never_reads(client: ClientConnection) -> None:
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.Event().wait()


async def _closes_at_once(client: ClientConnection) -> None:
    return


async def _resets_at_once(client: ClientConnection) -> None:
    client.reset()


def _ends_on_the_second(*, reset: bool) -> Behaviour:
    """Respond to a request, read a second one, and close or reset."""

    async def behave(client: ClientConnection) -> None:
        await client.request()
        await client.send(OK)
        await once(reset=reset)(client)

    return behave


async def _half_closes(client: ClientConnection) -> None:
    await client.request()
    await client.send(OK)
    client.writer.write_eof()
    await until_closed(client)


def _sends_unasked(data: bytes) -> Behaviour:
    async def behave(client: ClientConnection) -> None:
        await client.send(data)
        await client.request()

    return behave


async def _refuses_a_body(client: ClientConnection) -> None:
    await client.reader.readuntil(b"\r\n\r\n")
    await client.send(_TOO_LARGE)
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
    HostileCase("refused", ("refused",), _refused),
    HostileCase("full backlog", ("connect_timeout",), _full_backlog),
    case("never reads", _never_reads, "timeout"),
    case("never reads a body", _never_reads, "timeout", plan=_LARGE),
    case("resets in a body", _resets_in_a_body, "reset", plan=_LARGE),
    case("refuses a body", _refuses_a_body, 413, plan=_LARGE),
    case("closes at once", _closes_at_once, "closed_before_response", "reset"),
    case("resets at once", _resets_at_once, "reset"),
    case("closes on the second", _ends_on_the_second(reset=False), 200),
    case("resets on the second", _ends_on_the_second(reset=True), 200),
    case("resets between requests", once(OK, reset=True), 200),
    case("half closes", _half_closes, 200),
    case("close that does not close", once(_CLOSING, hold=True), 200),
    case("close under keep-alive", always(_CLOSING), 200),
    case("two responses at once", always(OK + OK), 200),
    case("two responses in turn", always(OK, OK), 200),
    case("response before the request", _sends_unasked(_UNASKED), 408),
    case("garbage before the request", _sends_unasked(b"\x00\x01\x02\r\n\r\n"), "not_http"),
)
