"""Servers with faults in TLS or in responses over TLS."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cockpit.model.load import Tls
from tests.load.hostile.cases import OK, HostileCase, repeats, sends, until_closed
from tests.load.hostile.certificates import certificate, good, server_context
from tests.load.servers import Behaviour, ClientConnection, serving, stop_listening

_Serve = Callable[[], AbstractAsyncContextManager[Any]]
_ALERT = bytes.fromhex("15 03 03 00 02 02 28")


def _plain(behave: Behaviour) -> _Serve:
    """Make a plain server with an https URL: the behaviour receives the bytes of the handshake."""

    @asynccontextmanager
    async def serve() -> AsyncIterator[SimpleNamespace]:
        async with serving(behave) as server:
            yield SimpleNamespace(url=server.url.replace("http:", "https:"))

    return serve


def _tls(behave: Behaviour, pem: Callable[[], Path] = good, scheme: str = "https") -> _Serve:
    """Make a server with TLS and this certificate."""

    @asynccontextmanager
    async def serve() -> AsyncIterator[SimpleNamespace]:
        running: set[asyncio.Task[Any]] = set()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            running.add(task)
            try:
                with suppress(EOFError, OSError, asyncio.CancelledError):
                    await behave(ClientConnection(reader, writer, asyncio.Event()))
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
                running.discard(task)

        listener = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=server_context(pem()))
        try:
            yield SimpleNamespace(url=f"{scheme}://127.0.0.1:{listener.sockets[0].getsockname()[1]}/x")
        finally:
            await stop_listening(listener)
            for task in list(running):
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await listener.wait_closed()

    return serve


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


def _without_close_notify(*pieces: bytes) -> Behaviour:
    """Respond over TLS, then shut down sending on the socket without close_notify."""

    async def behave(client: ClientConnection) -> None:
        await client.request()
        await client.send(*pieces)
        _raw_socket(client).shutdown(1)
        await until_closed(client)

    return behave


def _shut_down(*pieces: bytes) -> Behaviour:
    """Respond over TLS, then shut down the socket in both directions without close_notify."""

    async def behave(client: ClientConnection) -> None:
        await client.request()
        await client.send(*pieces)
        # The descriptor stays open for asyncio; after shutdown in both directions the socket answers data with a reset.
        _raw_socket(client).shutdown(2)

    return behave


def _raw_socket(client: ClientConnection) -> Any:
    """Return the socket below TLS."""
    return client.writer.get_extra_info("socket")


async def _breaks_a_record(client: ClientConnection) -> None:
    await client.request()
    await client.send(OK[:-2])
    os.write(_raw_socket(client).fileno(), b"\x17\x03\x03\x00\x20" + b"x" * 32)
    await until_closed(client)


async def _resets(client: ClientConnection) -> None:
    await client.request()
    await client.send(OK[:-2])
    client.reset()


async def _holds(client: ClientConnection) -> None:
    await client.request()
    await until_closed(client)


def _expired() -> Path:
    return certificate("expired", days=-1)


def _elsewhere() -> Path:
    return certificate("elsewhere", address="192.0.2.1")


def _trusting() -> Tls:
    return Tls(ca=str(good()))


def _tls_case(
    name: str, description: str, serve: _Serve, *expected: int | str, tls: Callable[[], Tls] | None = None
) -> HostileCase:
    return HostileCase(name, description, expected, serve, tls=tls or _trusting)


_PLAIN = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
_UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\nhello"

TLS_CASES: tuple[HostileCase, ...] = (
    _tls_case("TLS, good", "a good response over TLS", _tls(repeats(OK)), 200),
    _tls_case("TLS, unverified", "an untrusted certificate", _tls(repeats(OK)), 200, tls=lambda: Tls(verify=False)),
    _tls_case("TLS, untrusted", "an untrusted certificate", _tls(repeats(OK)), "tls", tls=Tls),
    _tls_case(
        "TLS, expired",
        "an expired certificate",
        _tls(repeats(OK), _expired),
        "tls",
        tls=lambda: Tls(ca=str(_expired())),
    ),
    _tls_case(
        "TLS, another's",
        "a certificate for another address",
        _tls(repeats(OK), _elsewhere),
        "tls",
        tls=lambda: Tls(ca=str(_elsewhere())),
    ),
    _tls_case("TLS, plain response", "answers the handshake with plain HTTP", _plain(_hello_then(_PLAIN)), "tls"),
    _tls_case("TLS, garbage", "answers the handshake with garbage", _plain(_hello_then(b"\xff" * 64)), "tls"),
    _tls_case("TLS, alert", "answers the handshake with an alert", _plain(_hello_then(_ALERT)), "tls"),
    _tls_case("TLS, alert, held", "the same, kept open", _plain(_hello_then(_ALERT, hold=True)), "tls"),
    _tls_case("TLS, closed", "closes within the handshake", _plain(_hello_then()), "tls"),
    _tls_case("TLS, RST", "resets within the handshake", _plain(_hello_then(reset=True)), "reset", "tls"),
    _tls_case("TLS, held", "does not answer the handshake", _plain(_hello_then(hold=True)), "timeout"),
    _tls_case("TLS, no response", "a handshake, then nothing", _tls(_holds), "timeout"),
    _tls_case("TLS, garbage after", "garbage instead of a response", _tls(sends(b"\x00\x01\r\n\r\n")), "malformed"),
    _tls_case("TLS, closed after", "a handshake, then closes", _tls(sends()), "closed_before_response"),
    _tls_case("TLS, RST in a body", "resets within a body", _tls(_resets), "reset"),
    _tls_case("TLS, broken record", "a record that does not decrypt", _tls(_breaks_a_record), "tls"),
    _tls_case(
        "TLS, cut short",
        "ends without close_notify within a body",
        _tls(_without_close_notify(OK[:-2])),
        "closed_early",
    ),
    _tls_case(
        "TLS, complete, no close_notify", "ends without close_notify after a body", _tls(_without_close_notify(OK)), 200
    ),
    _tls_case(
        "TLS, until cut",
        "a body delimited by close, without close_notify",
        _tls(_without_close_notify(_UNTIL_CLOSE)),
        "tls_truncated",
    ),
    _tls_case(
        "TLS, cut short, gone", "closes without close_notify within a body", _tls(_shut_down(OK[:-2])), "closed_early"
    ),
    _tls_case(
        "TLS, no response, gone",
        "closes without close_notify before a byte",
        _tls(_shut_down()),
        "closed_before_response",
    ),
    _tls_case("TLS, complete, gone", "closes without close_notify after a body", _tls(_shut_down(OK)), 200),
    _tls_case(
        "TLS, until gone", "the same, the body delimited by close", _tls(_shut_down(_UNTIL_CLOSE)), "tls_truncated"
    ),
    _tls_case("TLS, until closed", "a body delimited by close", _tls(sends(_UNTIL_CLOSE)), 200),
    HostileCase(
        "plain, TLS server",
        "expects a handshake and receives a request",
        ("malformed", "closed_before_response", "reset"),
        _tls(repeats(OK), scheme="http"),
    ),
)
