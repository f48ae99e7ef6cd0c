"""TLS against real servers: verification, error messages, and complete responses."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from cockpit.load.preflight import preflight
from cockpit.model.errors import TargetError, UsageError
from cockpit.model.load import LoadPlan, Tls
from tests.load.certificates import authority, certificate, server_context, trusting
from tests.load.servers import (
    POLLERS,
    SMALL,
    Behaviour,
    ClientConnection,
    Server,
    always,
    engine_load,
    plan,
    serving,
)

BIG = b"HTTP/1.1 200 OK\r\nContent-Length: 700000\r\n\r\n" + b"x" * 700_000
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"


def secured(behave: Behaviour, client_ca: Path | None = None) -> AbstractAsyncContextManager[Server]:
    """Run a server with TLS."""
    return serving(behave, server_context(certificate(), client_ca))


def tls_plan(server: Server, **values: Any) -> LoadPlan:
    url = f"https://127.0.0.1:{server.port}/x"
    return plan(url, **{"tls": trusting(), "requests": 25, **values})


@pytest.mark.parametrize(("keepalive", "poller"), [(True, "best"), (False, "level-triggered")])
@pytest.mark.parametrize(
    ("reply", "body"),
    [((SMALL,), 5), ((SMALL[:20], SMALL[20:39], SMALL[39:]), 5), ((BIG,), 700_000), ((CHUNKED,), 5)],
)
async def test_responses_over_tls(reply: tuple[bytes, ...], body: int, keepalive: bool, poller: str) -> None:
    async with secured(always(*reply)) as server:
        outcome = await engine_load(tls_plan(server, keepalive=keepalive), poller)
        made = len(server.connections)
    assert outcome.errors == {}
    assert outcome.statuses == {200: 25}
    assert outcome.total("body_bytes") == 25 * body
    assert outcome.total("bytes_received") == 25 * sum(map(len, reply))
    assert outcome.merged("tls").count == outcome.merged("connect").count == made == (4 if keepalive else 25)


async def test_body_larger_than_buffers_is_sent_completely() -> None:
    async with secured(always(SMALL)) as server:
        large = tls_plan(server, method="POST", body="y" * 3_000_000, requests=4, timeout=20.0)
        outcome = await engine_load(large)
    assert outcome.statuses == {200: 4}
    assert outcome.total("bytes_sent") > 12_000_000


async def test_preflight_reports_certificate_errors() -> None:
    async with secured(always(SMALL)) as server:
        assert (await preflight(tls_plan(server))).status == 200
        for tls, message in (
            (Tls(), "certificate is not trusted: unable to get local issuer"),
            (Tls(ca=str(authority().cert), sni="other.example"), "certificate is not trusted: .*other.example"),
        ):
            with pytest.raises(TargetError, match=message) as caught:
                await preflight(tls_plan(server, tls=tls))
            assert "\n" not in str(caught.value)
            assert caught.value.exit_code == 3
        for tls in (Tls(verify=False), Tls(ca=str(authority().cert), sni="web1.example")):
            assert (await preflight(tls_plan(server, tls=tls))).status == 200
            assert (await engine_load(tls_plan(server, tls=tls))).statuses == {200: 25}


async def test_server_without_tls_is_refused() -> None:
    async def behave(client: Any) -> None:
        await client.reader.read(1)
        await client.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with serving(behave) as server:
        with pytest.raises(TargetError, match="TLS handshake") as caught:
            await preflight(tls_plan(server))
        assert "\n" not in str(caught.value)


async def test_client_certificate_is_sent() -> None:
    own = authority().issue("client.example")
    with_certificate = Tls(ca=str(authority().cert), cert=str(own.cert), key=str(own.key))
    async with secured(always(SMALL), client_ca=authority().cert) as server:
        assert (await engine_load(tls_plan(server, tls=with_certificate))).statuses == {200: 25}
        outcome = await engine_load(tls_plan(server))
    assert set(outcome.errors) <= {"tls", "reset", "closed_before_response"}
    assert sum(outcome.errors.values()) == 25


async def test_unusable_certificate_files_are_refused(tmp_path: Path) -> None:
    none, junk = tmp_path / "none.pem", tmp_path / "junk.pem"
    junk.write_text("no certificate")
    for tls, message in (
        (Tls(ca=str(none)), "none.pem: no such file"),
        (Tls(ca=str(junk)), "junk.pem: contains no PEM certificates"),
        (Tls(cert=str(certificate().cert), key=str(junk)), "not a PEM certificate with its key"),
        (Tls(key=str(certificate().key)), "requires cert"),
    ):
        with pytest.raises(UsageError, match=message) as caught:
            await preflight(plan("https://127.0.0.1:9/", tls=tls))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("poller", POLLERS)
async def test_users_keep_secure_cookies(poller: str) -> None:
    received: list[bytes] = []

    async def behave(client: ClientConnection) -> None:
        while True:
            received.append(await client.request())
            await client.send(b"HTTP/1.1 200 OK\r\nSet-Cookie: s=1; Secure; Path=/\r\nContent-Length: 5\r\n\r\nhello")

    async with secured(behave) as server:
        outcome = await engine_load(tls_plan(server, concurrency=2, cookies=True), poller)
    assert outcome.total("completed") == 25 and outcome.errors == {}
    assert sum(b"\r\nCookie: s=1\r\n" in request for request in received) == 23
