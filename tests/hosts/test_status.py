"""Status pages: parsing, requests through the host, errors with a fix."""

import asyncio
import gc
import json
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cockpit.hosts.feed import HostFeed
from cockpit.hosts.local import LocalShell
from cockpit.hosts.shell import Shell
from cockpit.hosts.status import feed as status_feed
from cockpit.hosts.status.feed import PageFeed, read_page
from cockpit.hosts.status.fetch import fetch
from cockpit.hosts.transport import open_shell
from cockpit.model.clock import Clock
from cockpit.model.errors import HostError
from cockpit.model.events import AnyEvent, StatusRead, encode
from cockpit.model.host.samples import HostConfig, StatusKind, StatusPage
from cockpit.servers.registry import STATUS_PAGES
from cockpit.servers.status import PAGE_BYTES, NotThePageError
from tests.hosts.pages import PAGES
from tests.hosts.sshd import Sshd
from tests.load.certificates import Authority, server_context
from tests.load.servers import Behaviour, ClientConnection, serving
from tests.waiting import until


@pytest.fixture(autouse=True)
def long_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow a busy machine more time to respond."""
    monkeypatch.setattr(status_feed, "TIMEOUT", 60.0)


@pytest.mark.parametrize("kind", STATUS_PAGES)
def test_other_page_is_refused_with_hint(kind: str) -> None:
    for text in (
        "",
        "<html><body>It works!</body></html>",
        '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><status>&c;</status>',
    ):
        with pytest.raises(NotThePageError, match=r"the URL must|stub_status;"):
            STATUS_PAGES[kind].parse(text)


def answering(*responses: bytes, heads: list[bytes] | None = None) -> Behaviour:
    """Respond to one request per connection: in this order, then always as the last; `heads` are the requests."""
    left = list(responses)

    async def behave(client: ClientConnection) -> None:
        head = await client.request()
        if heads is not None:
            heads.append(head)
        await client.send(left.pop(0) if len(left) > 1 else left[0])

    return behave


def response(body: str, status: str = "200 OK", *headers: str) -> bytes:
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body.encode())}", *headers])
    return f"{head}\r\n\r\n{body}".encode()


@pytest.fixture
async def shell() -> AsyncIterator[Shell]:
    local = await open_shell(HostConfig(name="web1"))
    yield local
    await local.close()


@pytest.mark.parametrize("way", ["ssh", "local", "via"])
async def test_page_is_requested_through_host(way: str, sshd: Sshd) -> None:
    """By HTTP and HTTPS, whose certificate is verified; a closed port is unreachable."""
    config = {"ssh": HostConfig(name="web1", ssh="web"), "via": HostConfig(name="web1", via="env")}
    shell = await open_shell(config.get(way, HostConfig(name="web1")), sshd.ssh_config)
    heads: list[bytes] = []
    async with serving(answering(response(PAGES["apache"]), heads=heads)) as server:
        page = StatusPage(kind="apache", url=f"http://127.0.0.1:{server.port}/status;csv?auto", auth="me:sesame")
        assert (await read_page(shell, page)).values["BusyWorkers"] == 1
    assert heads[0].startswith(b"GET /status;csv?auto HTTP/1.1\r\n")
    assert b"connection: close" in heads[0].lower()
    assert b"authorization: basic bwu6c2vzyw1l" in heads[0].lower()
    with pytest.raises(HostError, match=f"web1: 127.0.0.1:{server.port}: unreachable"):
        await read_page(shell, page)
    authority = Authority(sshd.directory)
    pair = authority.issue("web1.example", "127.0.0.1")
    client_context = ssl.create_default_context(cafile=authority.cert)
    async with serving(answering(response(PAGES["nginx"])), server_context(pair)) as server:
        page = StatusPage(kind="nginx", url=f"https://127.0.0.1:{server.port}/")
        assert (await read_page(shell, page, client_context)).values["requests"] == 31070465
        with pytest.raises(HostError, match="TLS: unable to get local issuer certificate"):
            await read_page(shell, page)
    await shell.close()


REFUSALS: list[tuple[StatusKind, bytes, str]] = [
    ("apache", response("", "404 Not Found"), "404: is mod_status enabled? a2enmod status"),
    (
        "squid",
        response("", "403 Forbidden"),
        "403: does squid.conf allow this host? http_access allow localhost manager",
    ),
    ("tomcat", response("", "401 Unauthorized"), '401: login required; set auth = "user:password"'),
    ("nginx", response("", "302 Found", "Location: /login"), "302: redirected to /login; redirects are not followed"),
    ("nginx", response("", "500 Oops"), "500 instead of the page"),
    ("nginx", response("It works!"), "no requests on the page: the location of this URL needs `stub_status;`"),
    ("nginx", b"", "no HTTP response"),
    ("nginx", b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "no HTTP response"),
    ("apache", response("BusyWorkers: 1\n" + "x" * PAGE_BYTES), "longer than 1024 KiB; not a status page"),
]


@pytest.mark.parametrize(("kind", "answer", "message"), REFUSALS, ids=[message for *_, message in REFUSALS])
async def test_failed_request_names_cause_and_fix(shell: Shell, kind: StatusKind, answer: bytes, message: str) -> None:
    async with serving(answering(answer)) as server:
        with pytest.raises(HostError) as caught:
            await read_page(shell, StatusPage(kind=kind, url=f"http://127.0.0.1:{server.port}/"))
    assert message in str(caught.value)


async def test_rejected_password_and_silent_server(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(answering(response("", "401 Unauthorized"))) as server:
        page = StatusPage(kind="nginx", url=f"http://127.0.0.1:{server.port}/", auth="me:sesame")
        with pytest.raises(HostError, match=r"^401: wrong user or password; correct auth$"):
            await read_page(shell, page)
    monkeypatch.setattr(status_feed, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(HostError, match=r"no response within 0\.2 s"):
            await read_page(shell, StatusPage(kind="nginx", url=url))


async def test_feed_retries_and_never_records_password(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_feed, "PACE", 0.05)
    async with serving(answering(response("", "404 Not Found"), response(PAGES["nginx"]))) as server:
        page = StatusPage(kind="nginx", url=f"http://localhost:{server.port}/", auth="me:sesame")
        events: list[AnyEvent] = []
        config = HostConfig(name="web1", ssh="web", interval=0.1, status=(page,))
        host = HostFeed(config, Clock(), events.append, ssh_config=sshd.ssh_config)
        feed = PageFeed(host, 0, Clock(), events.append)
        tasks = [asyncio.ensure_future(host.run()), asyncio.ensure_future(feed.run())]

        def read() -> list[StatusRead]:
            return [event for event in events if isinstance(event, StatusRead)]

        try:
            await until(lambda: len(read()) >= 3)
            await sshd.stop()
            await sshd.start()
            before = len(read())
            await until(lambda: any(not event.detail for event in read()[before + 1 :]))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
    first, second = read()[:2]
    assert first.detail.startswith("404: the location")
    assert (first.values, second.detail, second.values["Waiting"]) == ({}, "", 106)
    assert not any(b"sesame" in encode(event) or b"bWU6c2VzYW1l" in encode(event) for event in events)
    assert json.loads(encode(second))["event"] == "status_read"


async def test_haproxy_stats_socket_is_read(shell: Shell, tmp_path: Path) -> None:
    """Opened with any program of this machine that can. socat would run the words behind `!!EXEC:`."""
    path, written = tmp_path / "admin.sock", tmp_path / "written"
    page = StatusPage(kind="haproxy", url=f"unix:{path}")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readline() == b"show stat\n"
        writer.write(PAGES["haproxy"].encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(serve, path):
        assert await read_page(shell, page) == STATUS_PAGES["haproxy"].parse(PAGES["haproxy"])
        with pytest.raises(HostError):
            await read_page(shell, StatusPage(kind="haproxy", url=f"unix:{path}!!EXEC:tee {written}"))
    path.unlink()
    with pytest.raises(HostError, match=f"^{path}: .*No such file"):
        await read_page(shell, page)
    assert not written.exists()


async def test_request_cancelled_at_any_step_leaves_no_open_connection() -> None:
    """pytest reports sockets and transports that are collected while they are open."""
    async with serving(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + bytes(300_000))) as server:
        shell = LocalShell()
        for steps in range(60):
            request = asyncio.create_task(fetch(shell, server.url, "", 60))
            for _ in range(steps):
                await asyncio.sleep(0)
            request.cancel()
            await asyncio.wait([request])
        await shell.close()
    gc.collect()
