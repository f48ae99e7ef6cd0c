"""Checks of the target before load starts, and TLS: verification, error messages, complete responses."""

import socket
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from cockpit.load.preflight import preflight
from cockpit.model.errors import TargetError, UsageError
from cockpit.model.load.plan import Expect, LoadPlan, Tls
from tests.load.certificates import authority, certificate, server_context, trusting
from tests.load.servers import (
    POLLERS,
    SMALL,
    Behaviour,
    ClientConnection,
    Server,
    always,
    engine_load,
    load,
    once,
    plan,
    serving,
)
from tests.waiting import DEADLINE

LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"


async def test_responding_target_is_accepted() -> None:
    async with serving(always(b"HTTP/1.1 100 Continue\r\n\r\n" + SMALL)) as server:
        found = await preflight(plan(server.url.replace("127.0.0.1", "localhost")))
    assert found.address[:2] == ("127.0.0.1", server.port)
    assert found.shown == ("127.0.0.1",)
    assert found.status == 200
    assert found.warnings == ()
    assert server.requests == 1


async def test_one_of_several_addresses_is_loaded_and_the_others_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(host: str, port: int, *_: object, **__: object) -> list[Any]:
        if host != "many.example":
            return resolve(host, port, type=socket.SOCK_STREAM)
        found = ["127.0.0.1", "127.0.0.2", *(f"192.0.2.{n}" for n in range(4))]
        return [*((socket.AF_INET, 1, 6, "", (one, port)) for one in found), (10, 1, 6, "", ("::1", port, 0, 0))]

    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    async with serving(always(SMALL)) as server:
        load_plan = plan(server.url.replace("127.0.0.1", "many.example"), requests=3)
        found = await preflight(load_plan)
        outcome = await load(load_plan)
    assert outcome.started.addresses == found.shown == ("127.0.0.1",)
    others = "127.0.0.2, 192.0.2.0, 192.0.2.1, 192.0.2.2 and 1 more"
    warning = f"many.example: only 127.0.0.1 is loaded, not {others}; choose an address with --connect-to"
    assert found.warnings == (warning,) and warning in outcome.started.warnings


async def test_failed_status_has_warning() -> None:
    async with serving(always(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")) as server:
        found = await preflight(plan(server.url.replace("//", "//me:secret@")))
    assert found.status == 404
    [warning] = found.warnings
    assert "404" in warning
    assert "secret" not in warning and "--sni" not in warning
    async with serving(always(b"HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n")) as server:
        [warning] = (await preflight(plan(server.url))).warnings
    assert "set it with --sni, or its address with --connect-to" in warning


@pytest.mark.parametrize(
    ("location", "target"),
    [
        (b"/new", "http://127.0.0.1:{port}/new"),
        (b"https://example.org/", "https://example.org/"),
        (b"//me:secret@example.org/", "http://example.org/"),
        (b"http://[broken/", "http://[broken/"),
    ],
)
async def test_redirect_has_warning_with_url_to_load(location: bytes, target: str) -> None:
    response = b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n"
    async with serving(always(response)) as server:
        found = await preflight(plan(server.url.replace("//", "//me:secret@")))
        expected = await preflight(plan(server.url, expect=Expect(statuses=(302,))))
    [warning] = found.warnings
    assert f"302: redirects are not followed; load {target.format(port=server.port)} instead" in warning
    assert "secret" not in warning
    assert expected.warnings == ()


async def test_post_is_not_sent() -> None:
    async with serving(always(SMALL)) as server:
        found = await preflight(plan(server.url, method="POST", body="x"))
    assert found.status is None
    assert server.requests == 0


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        (once(), "closed the connection without a response"),
        (once(b"SSH-2.0-x\r\n"), "does not speak HTTP"),
        (once(b"SSH-2.0-x\r\n\r\n"), "does not speak HTTP"),
        (once(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 60_000), "head of the response is larger than 128 KiB"),
        (once(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300_000 + b"\r\n\r\n"), "head of the response is larger than 128 KiB"),
        (once(b"HTTP/1.1 200 OK\r\nX: y\r\n"), "closed the connection within the head"),
        (
            once(LENGTH + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            "Transfer-Encoding can't be present with Content-Len",
        ),
        (once(LENGTH + b"Content-Length: 6\r\n\r\nhello"), "different values of Content-Length: 5 and 6"),
        (once(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), r"\(101\)"),
        (once(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"), r"another protocol \(101\) without a request"),
        (once(hold=True), "no response within 1 s"),
    ],
)
async def test_target_without_valid_response_is_refused(behaviour: object, message: str) -> None:
    async with serving(behaviour) as server:  # type: ignore[arg-type]
        with pytest.raises(TargetError, match=message) as caught:
            await preflight(plan(server.url, timeout=1.0 if "1 s" in message else DEADLINE))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("127.0.0.1", "port {port} is unreachable: 127.0.0.1: connection refused"),
        ("no-such-host.invalid", r"no-such-host\.invalid: no such host"),
    ],
)
async def test_unreachable_target_is_refused(host: str, message: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(TargetError, match=message.format(port=port)) as caught:
            await preflight(plan(f"http://{host}:{port}/"))
    assert "\n" not in str(caught.value) and caught.value.exit_code == 3


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
    ("reply", "body"), [((SMALL,), 5), ((SMALL[:20], SMALL[20:39], SMALL[39:]), 5), ((BIG,), 700_000), ((CHUNKED,), 5)]
)
async def test_responses_over_tls(reply: tuple[bytes, ...], body: int, keepalive: bool, poller: str) -> None:
    async with secured(always(*reply)) as server:
        outcome = await engine_load(tls_plan(server, keepalive=keepalive), poller)
        made = len(server.connections)
    assert outcome.errors == {}
    assert outcome.statuses == {200: 25}
    assert outcome.total("body_bytes") == 25 * body
    assert outcome.total("bytes_received") == 25 * sum(map(len, reply))
    handshakes = outcome.merged("tls").count + outcome.merged("tls_resumed").count
    assert handshakes == outcome.merged("connect").count == made == (4 if keepalive else 25)


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
            (Tls(), "certificate is not trusted: unable to get local issuer .*--cacert.*--insecure"),
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


async def test_unusable_tls_settings_are_refused(tmp_path: Path) -> None:
    none, junk = tmp_path / "none.pem", tmp_path / "junk.pem"
    junk.write_text("no certificate")
    for tls, message in (
        (Tls(ca=str(none)), "none.pem: no such file"),
        (Tls(ca=str(junk)), "junk.pem: contains no PEM certificates"),
        (Tls(cert=str(certificate().cert), key=str(junk)), "not a PEM certificate with its key"),
        (Tls(key=str(certificate().key)), "requires cert"),
        (Tls(sni="a..b"), "--sni, tls.sni: invalid host name 'a..b'"),
        (Tls(sni="ä..b"), "--sni, tls.sni: invalid host name ä..b"),
        (Tls(sni="a\0b"), "--sni, tls.sni: invalid host name "),
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
