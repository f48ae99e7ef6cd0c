"""Requests a page on the host itself: HTTP by httpx over a connection made by the host."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from cockpit.hosts.shell import CHUNK, HostConnection, Shell
from cockpit.model.errors import HostError
from cockpit.model.text import sanitize
from cockpit.servers.status import PAGE_BYTES

_HEADERS = {"Accept-Encoding": "identity", "Connection": "close", "User-Agent": "cockpit"}


class HttpPage(NamedTuple):
    """A response; `location` is the target of a redirect, "" if none."""

    status: int
    location: str
    body: bytes


def verifying_context() -> ssl.SSLContext:
    """Return the default TLS context of `fetch`; making one takes 20 ms."""
    import httpx

    return httpx.create_ssl_context(trust_env=False)


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
    # Slow to import, and not needed without status pages.
    import httpx

    try:
        async with asyncio.timeout(timeout):
            address = httpx.URL(url)
            port = address.port or (443 if address.scheme == "https" else 80)
            user, _, password = auth.partition(":")
            wire = await shell.open_stream(address.raw_host.decode("ascii"), port)
            async with (
                _bridge(wire) as path,
                httpx.AsyncHTTPTransport(
                    verify=tls or address.scheme == "https", trust_env=False, uds=path
                ) as transport,
                httpx.AsyncClient(transport=transport, headers=_HEADERS, timeout=None, trust_env=False) as client,
                client.stream("GET", address, auth=(user, password) if auth else None) as response,
            ):
                body = bytearray()
                async for data in response.aiter_raw():
                    body += data
                    if len(body) > PAGE_BYTES:
                        raise HostError(f"longer than {PAGE_BYTES // 1024} KiB; not a status page")
                return HttpPage(response.status_code, response.headers.get("location", ""), bytes(body))
    except TimeoutError:
        raise HostError(f"no response within {timeout:g} s") from None
    except (httpx.UnsupportedProtocol, httpx.InvalidURL, TypeError, ValueError) as error:
        raise HostError(f"cannot be requested: {sanitize(str(error), 200)}") from None
    except (httpx.TransportError, OSError) as error:
        raise HostError(_reason(error)) from None


def _reason(error: BaseException) -> str:
    """Return the reason of a failed request: that of TLS, or of the connection."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return f"TLS: {sanitize(getattr(cause, 'verify_message', '') or cause.reason or str(cause), 200)}"
        cause = cause.__cause__ or cause.__context__
    return f"no HTTP response: {sanitize(str(error), 200) or 'the connection was closed'}"


@asynccontextmanager
async def _bridge(wire: HostConnection) -> AsyncIterator[str]:
    """Connect a Unix socket to `wire`, since httpx opens its connections itself; yields its path. Closes `wire`.

    Raises the HostError of a lost connection.
    """
    # A folder that only this user can enter.
    with closing(wire), TemporaryDirectory(prefix="cockpit-") as folder, socket.socket(socket.AF_UNIX) as listener:
        path = str(Path(folder) / "http")
        listener.bind(path)
        listener.listen(1)
        listener.setblocking(False)
        pump = asyncio.create_task(_pump(listener, wire))
        try:
            yield path
        finally:
            pump.cancel()
            (outcome,) = await asyncio.gather(pump, return_exceptions=True)
            if isinstance(outcome, HostError):
                raise outcome


async def _pump(listener: socket.socket, wire: HostConnection) -> None:
    """Copy between `wire` and the first connection until the host closes it."""
    loop, connecting = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(listener, connecting.set)
    try:
        await connecting.wait()
    finally:
        loop.remove_reader(listener)
    # Without an await in between, so that a cancellation leaves no open connection.
    with listener.accept()[0] as near:
        near.setblocking(False)
        sending = asyncio.create_task(_send(near, wire))
        try:
            while data := await wire.read(CHUNK):
                await loop.sock_sendall(near, data)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


async def _send(near: socket.socket, wire: HostConnection) -> None:
    while data := await asyncio.get_running_loop().sock_recv(near, CHUNK):
        await wire.write(data)
