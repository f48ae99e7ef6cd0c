"""Servers with faults in TLS or in responses over TLS."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from cockpit.model.load.plan import Tls
from tests.load.certificates import Pair, certificate, server_context, trusting
from tests.load.hostile.cases import OK, HostileCase, until_closed
from tests.load.servers import Behaviour, ClientConnection, always, once, serving

_ALERT = bytes.fromhex("15 03 03 00 02 02 28")


def _case(
    name: str,
    behave: Behaviour,
    *expected: int | str,
    tls: Callable[[], Tls] = trusting,
    pair: Callable[[], Pair] | None = certificate,
    scheme: str = "https",
) -> HostileCase:
    """Make a case of a server with TLS and this certificate; without one, the behaviour receives the bytes of the
    handshake."""

    @asynccontextmanager
    async def serve() -> AsyncIterator[SimpleNamespace]:
        async with serving(behave, server_context(pair()) if pair else None) as server:
            yield SimpleNamespace(url=f"{scheme}://127.0.0.1:{server.port}/x")

    return HostileCase(name, expected, serve, tls=tls)


def _handshake(name: str, behave: Behaviour, *expected: int | str) -> HostileCase:
    return _case(name, behave, *expected, pair=None)


def _hello_then(*pieces: bytes, hold: bool = False, reset: bool = False) -> Behaviour:
    """Respond to the client's first message of the handshake with these bytes."""

    async def behave(client: ClientConnection) -> None:
        await client.reader.read(1 << 16)
        await client.send(*pieces)
        if reset:
            client.reset()
        elif hold:
            await until_closed(client)

    return behave


def _shuts_down(*pieces: bytes, gone: bool = False) -> Behaviour:
    """Respond over TLS, then shut down sending on the socket without close_notify; `gone`: in both directions."""

    async def behave(client: ClientConnection) -> None:
        await client.request()
        await client.send(*pieces)
        # The descriptor stays open for asyncio; after shutdown in both directions the socket answers data with a reset.
        _raw_socket(client).shutdown(2 if gone else 1)
        if not gone:
            await until_closed(client)

    return behave


def _raw_socket(client: ClientConnection) -> Any:
    """Return the socket below TLS."""
    return client.writer.get_extra_info("socket")


async def _breaks_a_record(client: ClientConnection) -> None:
    await client.request()
    await client.send(OK[:-2])
    os.write(_raw_socket(client).fileno(), b"\x17\x03\x03\x00\x20" + b"x" * 32)
    await until_closed(client)


def _expired() -> Pair:
    return certificate("expired", days=-1)


def _elsewhere() -> Pair:
    return certificate("elsewhere", "192.0.2.1")


_PLAIN = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
_UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\nhello"

TLS_CASES: tuple[HostileCase, ...] = (
    _case("TLS, good", always(OK), 200),
    _case("TLS, unverified", always(OK), 200, tls=lambda: Tls(verify=False)),
    _case("TLS, untrusted", always(OK), "tls", tls=Tls),
    _case("TLS, expired", always(OK), "tls", pair=_expired),
    _case("TLS, another's", always(OK), "tls", pair=_elsewhere),
    _handshake("TLS, plain response", _hello_then(_PLAIN), "tls"),
    _handshake("TLS, garbage", _hello_then(b"\xff" * 64), "tls"),
    _handshake("TLS, alert", _hello_then(_ALERT), "tls"),
    _handshake("TLS, alert, held", _hello_then(_ALERT, hold=True), "tls"),
    _handshake("TLS, closed", _hello_then(), "tls"),
    _handshake("TLS, RST", _hello_then(reset=True), "reset", "tls"),
    _handshake("TLS, held", _hello_then(hold=True), "timeout"),
    _case("TLS, no response", once(hold=True), "timeout"),
    _case("TLS, garbage after", once(b"\x00\x01\r\n\r\n"), "not_http"),
    _case("TLS, closed after", once(), "closed_before_response"),
    _case("TLS, RST in a body", once(OK[:-2], reset=True), "reset"),
    _case("TLS, broken record", _breaks_a_record, "tls"),
    _case("TLS, cut short", _shuts_down(OK[:-2]), "closed_early"),
    _case("TLS, complete, no close_notify", _shuts_down(OK), 200),
    _case("TLS, until cut", _shuts_down(_UNTIL_CLOSE), "tls_truncated"),
    _case("TLS, cut short, gone", _shuts_down(OK[:-2], gone=True), "closed_early"),
    _case("TLS, no response, gone", _shuts_down(gone=True), "closed_before_response"),
    _case("TLS, complete, gone", _shuts_down(OK, gone=True), 200),
    _case("TLS, until gone", _shuts_down(_UNTIL_CLOSE, gone=True), "tls_truncated"),
    _case("TLS, until closed", once(_UNTIL_CLOSE), 200),
    _case("plain, TLS server", always(OK), "not_http", "closed_before_response", "reset", tls=Tls, scheme="http"),
)
