"""Status pages: parsing, requests through the host, errors with a fix."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.hosts.feed import HostFeed
from cockpit.hosts.shell import Shell
from cockpit.hosts.status import feed as status_feed
from cockpit.hosts.status.feed import PageFeed, read_page
from cockpit.hosts.transport import open_shell
from cockpit.model.clock import Clock
from cockpit.model.errors import HostError
from cockpit.model.events import AnyEvent, StatusRead, encode
from cockpit.model.hosts import HostConfig, StatusKind, StatusPage
from cockpit.servers.registry import STATUS_PAGES
from cockpit.servers.status import PAGE_BYTES, NotThePageError
from tests.hosts import pages
from tests.hosts.sshd import Sshd
from tests.load.certificates import Authority
from tests.waiting import until


@pytest.fixture(autouse=True)
def long_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow a busy machine more time to respond."""
    monkeypatch.setattr(status_feed, "TIMEOUT", 60.0)


def test_apache_page_is_parsed() -> None:
    values, text = STATUS_PAGES["apache"].parse(pages.APACHE)
    assert (values["BusyWorkers"], values["IdleWorkers"], values["Total Accesses"]) == (1, 49, 1234)
    assert (values["CPUUser"], values["ReqPerSec"], values["ConnsTotal"], values["Uptime"]) == (0.11, 20.2295, 1, 61)
    assert text["Scoreboard"] == "W" + 49 * "_" + 4 * "."
    assert text["ServerMPM"] == "event"


def test_nginx_page_is_parsed() -> None:
    values, text = STATUS_PAGES["nginx"].parse(pages.NGINX)
    assert list(values.values()) == [291, 16630948, 16630947, 31070465, 6, 179, 106]
    assert text == {}


def test_squid_pages_are_parsed() -> None:
    values, _ = STATUS_PAGES["squid"].parse(pages.SQUID_COUNTERS)
    assert (values["client_http.requests"], values["client_http.hits"], values["cpu_time"]) == (120, 100, 0.5)
    assert values["sample_time"] == 1795273200.123456
    values, text = STATUS_PAGES["squid-info"].parse(pages.SQUID_INFO)
    assert text == {"Squid Object Cache": "Version 5.7"}
    assert (values["Number of HTTP requests received"], values["UP Time"], values["StoreEntries"]) == (
        120,
        3600.123,
        52,
    )
    assert values["Hits as % of all requests 5min"] == 80.0
    assert values["Hits as % of bytes sent 60min"] == 70.1
    assert values["HTTP Requests (All) 60min"] == 0.00091
    assert (values["Storage Swap size"], values["CPU Usage"]) == (1024, 0.01)
    assert values["Number of file desc currently in use"] == 10


def test_tomcat_page_is_parsed() -> None:
    values, _ = STATUS_PAGES["tomcat"].parse(pages.TOMCAT)
    assert (values["memory.free"], values["memory.max"]) == (60_000_000, 256_000_000)
    assert (values["currentThreadsBusy"], values["currentThreadCount"], values["maxThreads"]) == (3, 15, 400)
    assert (values["requestCount"], values["errorCount"], values["bytesSent"], values["maxTime"]) == (20, 1, 3048, 40)
    assert values["ajp-nio-8009 requestCount"] == 8


@given(st.text(max_size=200))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for page in STATUS_PAGES.values():
        with suppress(NotThePageError):
            page.parse(text)


@pytest.mark.parametrize("kind", STATUS_PAGES)
def test_other_page_is_refused_with_hint(kind: str) -> None:
    for text in (
        "",
        "<html><body>It works!</body></html>",
        '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><status>&c;</status>',
    ):
        with pytest.raises(NotThePageError, match=r"the URL must|stub_status;"):
            STATUS_PAGES[kind].parse(text)


class Server:
    """Sends `responses` in order, repeating the last; records the request heads."""

    def __init__(self, responses: list[bytes]) -> None:
        self.responses = responses
        self.heads: list[bytes] = []
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(self.responses.pop(0) if len(self.responses) > 1 else self.responses[0])
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(*responses: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(list(responses))
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server


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
    async with serving(response(pages.APACHE)) as server:
        page = StatusPage(kind="apache", url=f"http://127.0.0.1:{server.port}/status;csv?auto", auth="me:sesame")
        assert (await read_page(shell, page)).values["BusyWorkers"] == 1
    assert server.heads[0].startswith(b"GET /status;csv?auto HTTP/1.1\r\n")
    assert b"connection: close" in server.heads[0].lower()
    assert b"authorization: basic bwu6c2vzyw1l" in server.heads[0].lower()
    with pytest.raises(HostError, match=f"web1: 127.0.0.1:{server.port}: unreachable"):
        await read_page(shell, page)
    authority = Authority(sshd.directory)
    pair = authority.issue("web1.example", "127.0.0.1")
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_context.load_cert_chain(pair.cert, pair.key)
    client_context = ssl.create_default_context(cafile=authority.cert)
    async with serving(response(pages.NGINX), tls=server_context) as server:
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
    ("nginx", response("It works!"), "not a stub_status page: the location of this URL needs `stub_status;`"),
    ("nginx", b"", "no HTTP response"),
    ("nginx", b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "no HTTP response"),
    ("apache", response("BusyWorkers: 1\n" + "x" * PAGE_BYTES), "longer than 1024 KiB; not a status page"),
]


@pytest.mark.parametrize(("kind", "answer", "message"), REFUSALS, ids=[message for *_, message in REFUSALS])
async def test_failed_request_names_cause_and_fix(shell: Shell, kind: StatusKind, answer: bytes, message: str) -> None:
    async with serving(answer) as server:
        with pytest.raises(HostError) as caught:
            await read_page(shell, StatusPage(kind=kind, url=f"http://127.0.0.1:{server.port}/"))
    assert message in str(caught.value)


async def test_rejected_password_and_silent_server(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(response("", "401 Unauthorized")) as server:
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
    async with serving(response("", "404 Not Found"), response(pages.NGINX)) as server:
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
    assert first.detail.startswith("404: is there a location")
    assert (first.values, second.detail, second.values["Waiting"]) == ({}, "", 106)
    assert not any(b"sesame" in encode(event) or b"bWU6c2VzYW1l" in encode(event) for event in events)
    assert json.loads(encode(second))["event"] == "status_read"


async def test_haproxy_stats_socket_is_read(shell: Shell, tmp_path: Path) -> None:
    """Opened with any program of this machine that can. socat would run the words behind `!!EXEC:`."""
    path, written = tmp_path / "admin.sock", tmp_path / "written"
    page = StatusPage(kind="haproxy", url=f"unix:{path}")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readline() == b"show stat\n"
        writer.write(pages.HAPROXY.encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(serve, path):
        assert await read_page(shell, page) == STATUS_PAGES["haproxy"].parse(pages.HAPROXY)
        with pytest.raises(HostError):
            await read_page(shell, StatusPage(kind="haproxy", url=f"unix:{path}!!EXEC:tee {written}"))
    path.unlink()
    with pytest.raises(HostError, match=f"^{path}: .*No such file"):
        await read_page(shell, page)
    assert not written.exists()
