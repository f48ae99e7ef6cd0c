"""Servers that are bad at TLS, or bad over it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cockpit.model.load import Tls
from tests.load.hostile.certificates import certificate, good, server_context
from tests.load.hostile.rows import OK, Row, repeats, says, until_gone
from tests.load.servers import Behaviour, Conversation, serving, stop_listening

_Serve = Callable[[], AbstractAsyncContextManager[Any]]
_ALERT = bytes.fromhex("15 03 03 00 02 02 28")


def _behind(behave: Behaviour) -> _Serve:
    """A plain server whose URL says https: the behaviour sees the handshake's bytes."""

    @asynccontextmanager
    async def serve() -> AsyncIterator[SimpleNamespace]:
        async with serving(behave) as server:
            yield SimpleNamespace(url=server.url.replace("http:", "https:"))

    return serve


def _over(behave: Behaviour, pem: Callable[[], Path] = good, scheme: str = "https") -> _Serve:
    """A server that speaks TLS with this certificate."""

    @asynccontextmanager
    async def serve() -> AsyncIterator[SimpleNamespace]:
        running: set[asyncio.Task[Any]] = set()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            running.add(task)
            try:
                with suppress(EOFError, OSError, asyncio.CancelledError):
                    await behave(Conversation(reader, writer, asyncio.Event()))
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
    """Takes the client's first message of the handshake and answers it so."""

    async def behave(talk: Conversation) -> None:
        await talk.reader.read(1 << 16)
        await talk.send(*pieces)
        if reset:
            talk.reset()
        elif hold:
            await until_gone(talk)

    return behave


def _without_farewell(*pieces: bytes) -> Behaviour:
    """Answers over TLS and then ends the connection below it, without TLS's own end."""

    async def behave(talk: Conversation) -> None:
        await talk.request()
        await talk.send(*pieces)
        _below(talk).shutdown(1)
        await until_gone(talk)

    return behave


def _gone(*pieces: bytes) -> Behaviour:
    """Answers over TLS and closes the socket below it, without close_notify, and reads no more."""

    async def behave(talk: Conversation) -> None:
        await talk.request()
        await talk.send(*pieces)
        # Its own descriptor stays for asyncio; a socket that is shut for both ways answers what comes with a reset.
        _below(talk).shutdown(2)

    return behave


def _below(talk: Conversation) -> Any:
    """The socket that carries the TLS."""
    return talk.writer.get_extra_info("socket")


async def _breaks_a_record(talk: Conversation) -> None:
    await talk.request()
    await talk.send(OK[:-2])
    os.write(_below(talk).fileno(), b"\x17\x03\x03\x00\x20" + b"x" * 32)
    await until_gone(talk)


async def _resets(talk: Conversation) -> None:
    await talk.request()
    await talk.send(OK[:-2])
    talk.reset()


async def _holds(talk: Conversation) -> None:
    await talk.request()
    await until_gone(talk)


def _expired() -> Path:
    return certificate("expired", days=-1)


def _elsewhere() -> Path:
    return certificate("elsewhere", address="192.0.2.1")


def _trusting() -> Tls:
    return Tls(ca=str(good()))


def _row(name: str, does: str, serve: _Serve, *ends: int | str, tls: Callable[[], Tls] | None = None) -> Row:
    return Row(name, does, ends, serve, tls=tls or _trusting)


_PLAIN = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
_UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\nhello"

SECURE: tuple[Row, ...] = (
    _row("TLS, good", "a good reply over TLS", _over(repeats(OK)), 200),
    _row("TLS, unverified", "a certificate nobody vouches for", _over(repeats(OK)), 200, tls=lambda: Tls(verify=False)),
    _row("TLS, untrusted", "a certificate nobody vouches for", _over(repeats(OK)), "tls", tls=Tls),
    _row(
        "TLS, expired",
        "a certificate of the past",
        _over(repeats(OK), _expired),
        "tls",
        tls=lambda: Tls(ca=str(_expired())),
    ),
    _row(
        "TLS, another's",
        "a certificate for another address",
        _over(repeats(OK), _elsewhere),
        "tls",
        tls=lambda: Tls(ca=str(_elsewhere())),
    ),
    _row("TLS, plain reply", "answers the handshake in plain HTTP", _behind(_hello_then(_PLAIN)), "tls"),
    _row("TLS, garbage", "answers the handshake with garbage", _behind(_hello_then(b"\xff" * 64)), "tls"),
    _row("TLS, alert", "answers the handshake with an alert", _behind(_hello_then(_ALERT)), "tls"),
    _row("TLS, alert, held", "the same, and stays", _behind(_hello_then(_ALERT, hold=True)), "tls"),
    _row("TLS, closed", "closes within the handshake", _behind(_hello_then()), "tls"),
    _row("TLS, RST", "resets within the handshake", _behind(_hello_then(reset=True)), "reset", "tls"),
    _row("TLS, held", "says nothing to the handshake", _behind(_hello_then(hold=True)), "timeout"),
    _row("TLS, no reply", "a handshake and nothing after it", _over(_holds), "timeout"),
    _row("TLS, garbage after", "garbage where a reply belongs", _over(says(b"\x00\x01\r\n\r\n")), "malformed"),
    _row("TLS, closed after", "a handshake, then closes", _over(says()), "closed_before_response"),
    _row("TLS, RST in a body", "resets within a body", _over(_resets), "reset"),
    _row("TLS, broken record", "a record that does not decrypt", _over(_breaks_a_record), "tls"),
    _row("TLS, cut short", "ends below TLS within a body", _over(_without_farewell(OK[:-2])), "closed_early"),
    _row("TLS, whole, no farewell", "ends below TLS after a body", _over(_without_farewell(OK)), 200),
    _row(
        "TLS, until cut",
        "a body to the end of the connection, whose end TLS does not vouch for",
        _over(_without_farewell(_UNTIL_CLOSE)),
        "tls_truncated",
    ),
    _row("TLS, cut short, gone", "closes below TLS within a body", _over(_gone(OK[:-2])), "closed_early"),
    _row("TLS, no reply, gone", "closes below TLS before a byte", _over(_gone()), "closed_before_response"),
    _row("TLS, whole, gone", "closes below TLS after a body", _over(_gone(OK)), 200),
    _row("TLS, until gone", "the same, the body to the end", _over(_gone(_UNTIL_CLOSE)), "tls_truncated"),
    _row("TLS, until closed", "a body to the end of the connection", _over(says(_UNTIL_CLOSE)), 200),
    Row(
        "plain, TLS server",
        "wants a handshake and gets a request",
        ("malformed", "closed_before_response", "reset"),
        _over(repeats(OK), scheme="http"),
    ),
)
