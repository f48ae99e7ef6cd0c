"""Requests a page on the host itself: HTTP by httpcore over a connection made by the host."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpcore
from anyio import BrokenResourceError, EndOfStream
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

from cockpit.hosts.shell import HostConnection, Shell
from cockpit.model.errors import HostError
from cockpit.model.text import sanitize
from cockpit.servers.status import PAGE_BYTES

CHUNK = 65536


class HttpPage(NamedTuple):
    """A response; `location` is the target of a redirect, "" if none."""

    status: int
    location: str
    body: bytes


async def fetch(
    shell: Shell,
    url: str,
    auth: str,
    timeout: float,  # noqa: ASYNC109
    tls: ssl.SSLContext | None = None,
) -> HttpPage:
    """Send one request over a new connection, so that no worker of the server stays busy. Redirects are not followed.

    Certificates are verified, by `tls` if given. Raises HostError with the reason; neither it nor the response contains
    `auth` (user:password).
    """
    headers = [("Accept-Encoding", "identity"), ("Connection", "close"), ("User-Agent", "cockpit")]
    if auth:
        headers.append(("Authorization", f"Basic {base64.b64encode(auth.encode()).decode()}"))
    pool = httpcore.AsyncConnectionPool(network_backend=_Backend(shell), max_keepalive_connections=0, ssl_context=tls)
    try:
        async with asyncio.timeout(timeout), pool, pool.stream("GET", _url(url), headers=headers) as response:
            body = bytearray()
            async for data in response.aiter_stream():
                body += data
                if len(body) > PAGE_BYTES:
                    raise HostError(f"longer than {PAGE_BYTES // 1024} KiB; not a status page")
            location = next((value for name, value in response.headers if name.lower() == b"location"), b"")
            return HttpPage(response.status, location.decode("latin-1"), bytes(body))
    except TimeoutError:
        raise HostError(f"no response within {timeout:g} s") from None
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", "") or error.reason or str(error)
        raise HostError(f"TLS: {sanitize(why, 200)}") from None
    except (BrokenResourceError, EndOfStream, httpcore.ProtocolError, OSError) as error:
        why = sanitize(str(error), 200) or "the connection was closed"
        raise HostError(f"no HTTP response: {why}") from None
    except (httpcore.UnsupportedProtocol, TypeError, ValueError) as error:
        raise HostError(f"cannot be requested: {sanitize(str(error), 200)}") from None


def _url(url: str) -> httpcore.URL:
    """Split a URL and keep its whole path, from which httpcore itself drops `;csv`."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return httpcore.URL(scheme=parts.scheme, host=parts.hostname or "", port=parts.port, target=target)


class _Backend(httpcore.AsyncNetworkBackend):
    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        return _Stream(_WireStream(await self._shell.open_stream(host, port)))


class _WireStream(ByteStream):
    """A connection of the host as a stream of anyio, which adds TLS."""

    def __init__(self, wire: HostConnection) -> None:
        self._wire = wire

    async def receive(self, max_bytes: int = CHUNK) -> bytes:
        data = await self._wire.read(max_bytes)
        if not data:
            raise EndOfStream
        return data

    async def send(self, item: bytes) -> None:
        await self._wire.write(item)

    async def send_eof(self) -> None:
        self._wire.close()

    async def aclose(self) -> None:
        self._wire.close()


class _Stream(httpcore.AsyncNetworkStream):
    """A stream of anyio as a stream of httpcore. Timeouts are ignored, since `fetch` has one for the whole request."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        try:
            return await self._stream.receive(max_bytes)
        except EndOfStream:
            return b""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._stream.send(buffer)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        try:
            wrapped = await TLSStream.wrap(
                self._stream, hostname=server_hostname, ssl_context=ssl_context, standard_compatible=False
            )
        except BaseException:
            await self.aclose()
            raise
        return _Stream(wrapped)

    def get_extra_info(self, info: str) -> Any:
        return None
