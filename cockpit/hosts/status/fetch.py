"""Fetches a page as the host itself sees it: httpx over a connection that the host makes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpcore
import httpx
from anyio import BrokenResourceError, EndOfStream
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

from cockpit.hosts.shell import Shell, Wire
from cockpit.model.errors import HostError
from cockpit.model.text import neutral

# Bytes of a page that are read; a longer one is none of a server's status.
MOST_BYTES = 1024 * 1024
CHUNK = 65536


class HttpPage:
    """What a server answered: its status, where it redirects to ("" where it does not), and the page."""

    def __init__(self, status: int, location: str, body: bytes) -> None:
        self.status = status
        self.location = location
        self.body = body


async def fetch(
    shell: Shell,
    url: str,
    auth: str,
    timeout: float,  # noqa: ASYNC109
    tls: ssl.SSLContext | None = None,
) -> HttpPage:
    """Asks once, over a connection of its own, so that no worker of the server is kept. Redirects are not followed.

    Certificates are verified, by `tls` where it is given. Raises HostError saying why there is no answer; neither it
    nor the answer holds `auth` (user:password).
    """
    user, _, password = auth.partition(":")
    client = httpx.AsyncClient(
        transport=_Transport(shell, tls),
        auth=httpx.BasicAuth(user, password) if auth else None,
        headers={"Accept-Encoding": "identity", "Connection": "close", "User-Agent": "cockpit"},
        follow_redirects=False,
        trust_env=False,
    )
    try:
        async with asyncio.timeout(timeout), client, client.stream("GET", url) as response:
            body = bytearray()
            async for data in response.aiter_raw():
                body += data
                if len(body) > MOST_BYTES:
                    raise HostError(f"longer than {MOST_BYTES // 1024} KiB: no status page")
            return HttpPage(response.status_code, response.headers.get("Location", ""), bytes(body))
    except TimeoutError:
        raise HostError(f"no answer within {timeout:g} s") from None
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", "") or error.reason or str(error)
        raise HostError(f"TLS: {neutral(why, 200)}") from None
    except (BrokenResourceError, EndOfStream, httpcore.ProtocolError, OSError) as error:
        said = neutral(str(error), 200) or "the connection was closed"
        raise HostError(f"no answer that is HTTP: {said}") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise HostError(f"cannot be asked: {neutral(str(error), 200)}") from None


class _Transport(httpx.AsyncBaseTransport):
    """Requests of httpx over connections that the host makes."""

    def __init__(self, shell: Shell, tls: ssl.SSLContext | None) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            network_backend=_Backend(shell), max_keepalive_connections=0, ssl_context=tls
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await self._pool.handle_async_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
            )
        )
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer.stream))

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


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
    """A connection of the host as anyio has streams, for its TLS."""

    def __init__(self, wire: Wire) -> None:
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
    """The same as httpcore has streams. Time is limited from outside, for all of a fetch together."""

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
