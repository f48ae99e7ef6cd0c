"""Checks of the target before load starts."""

from __future__ import annotations

import socket

import pytest

from cockpit.load.preflight import preflight
from cockpit.model.errors import TargetError
from cockpit.model.load import Expect
from tests.load.servers import SMALL, always, once, plan, serving


async def test_responding_target_is_accepted() -> None:
    async with serving(always(b"HTTP/1.1 100 Continue\r\n\r\n" + SMALL)) as server:
        found = await preflight(plan(server.url.replace("127.0.0.1", "localhost")))
    assert found.address[:2] == ("127.0.0.1", server.port)
    assert found.addresses[0] == "127.0.0.1"
    assert found.status == 200
    assert found.warnings == ()
    assert server.requests == 1


async def test_failed_status_has_warning() -> None:
    async with serving(always(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")) as server:
        found = await preflight(plan(server.url.replace("//", "//me:secret@")))
    assert found.status == 404
    [warning] = found.warnings
    assert "404" in warning
    assert "secret" not in warning


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
        (once(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 60_000), "does not speak HTTP"),
        (once(hold=True), "no response within 0.3 s"),
    ],
)
async def test_target_without_valid_response_is_refused(behaviour: object, message: str) -> None:
    async with serving(behaviour) as server:  # type: ignore[arg-type]
        with pytest.raises(TargetError, match=message) as caught:
            await preflight(plan(server.url, timeout=0.3))
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
