"""Status pages, tails and restarts of real servers, as the session sees them through a real sshd."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cockpit.hosts.feed import HostFeed
from cockpit.hosts.tails import pane_feeds
from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent, SessionStarted
from cockpit.model.fold import fold_all
from cockpit.model.host_state import HostState, StatusPane
from cockpit.model.hosts import HostConfig, StatusKind, StatusPage
from cockpit.model.state import State
from tests.lab.app1 import STATUS_LOGIN, STATUS_PATH
from tests.lab.lab import Host, Lab

DEADLINE = 60.0
APACHE = StatusPage(kind="apache", url="http://localhost/server-status?auto")


class Session:
    """A host's feed with its tails and pages, and what fold makes of their events."""

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        self.events: list[AnyEvent] = [SessionStarted(t=0, wall=0, version="", name="", hosts=(config,))]

    @property
    def state(self) -> State:
        return fold_all(self.events)

    @property
    def host(self) -> HostState:
        return self.state.hosts[self.config.name]

    @property
    def page(self) -> StatusPane:
        return self.host.pages[0]

    async def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < deadline, (self.host.condition, self.host.detail, self.host.pages)
            await asyncio.sleep(0.05)


@asynccontextmanager
async def watching(config: HostConfig, ssh_config: Path | None) -> AsyncIterator[Session]:
    session, clock = Session(config), Clock()
    feed = HostFeed(config, clock, session.events.append, ssh_config=ssh_config)
    tasks = [asyncio.ensure_future(work) for work in (feed.run(), *pane_feeds(feed, clock, session.events.append))]
    try:
        yield session
        assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def host(name: str, *pages: StatusPage, processes: tuple[str, ...] = (), tail: tuple[str, ...] = ()) -> HostConfig:
    return HostConfig(name=name, ssh=name, interval=0.5, processes=processes, status=pages, tail=tail)


async def test_apache_counts_what_it_was_asked(lab: Lab, fresh_web1: Host) -> None:
    async with watching(host("web1", APACHE), lab.ssh_config) as session:
        await session.until(lambda: session.page.t is not None)
        before = session.page.values["Total Accesses"]
        await asyncio.to_thread(fresh_web1.run, "ab -q -n 200 -c 2 http://localhost/hello.html")
        await session.until(lambda: session.page.values["Total Accesses"] >= before + 200)
        assert session.page.rates["Total Accesses"] > 0
        # A child that is just started is `_` on the board before its parent has noted its pid, and no idle worker yet.
        await session.until(lambda: session.page.text["Scoreboard"].count("_") == session.page.values["IdleWorkers"])
        page = session.page
    assert page.values["BusyWorkers"] >= 1
    assert page.text["ServerMPM"] == "prefork"


async def test_without_mod_status_the_way_out_is_said(lab: Lab, fresh_web1: Host) -> None:
    fresh_web1.run("a2dismod -q status && apachectl graceful")
    try:
        async with watching(host("web1", APACHE), lab.ssh_config) as session:
            await session.until(lambda: session.page.detail == "404: is mod_status enabled? a2enmod status")
            await asyncio.to_thread(fresh_web1.run, "a2enmod -q status && apachectl graceful")
            await session.until(lambda: session.page.t is not None and not session.page.detail)
    finally:
        fresh_web1.run("a2enmod -q status")


async def test_restarts_are_marked(lab: Lab, fresh_web1: Host) -> None:
    def marks() -> list[str]:
        return [marker.text for marker in session.state.markers if marker.kind == "restart"]

    async with watching(host("web1", APACHE, processes=("apache2",)), lab.ssh_config) as session:
        await session.until(lambda: session.host.parents and session.page.t is not None)
        first = session.host.parents[0].pid
        await asyncio.to_thread(fresh_web1.run, "apachectl graceful")
        await session.until(marks)
        await asyncio.to_thread(fresh_web1.restart, "apache2")
        await session.until(lambda: len(marks()) == 2)
        second = session.host.parents[-1].pid
    assert marks()[0].startswith("web1 apache: reloaded, generation ")
    assert marks()[1] == f"web1 apache2 restarted: pid {first} → {second}"


async def test_sar_and_a_log_are_followed_and_nothing_is_left(lab: Lab, fresh_web1: Host) -> None:
    tails = ("sar -b 1", "vmstat 1", "tail -n 0 -F /var/log/apache2/error.log")
    async with watching(host("web1", tail=tails), lab.ssh_config) as session:

        def lines(tail: int) -> list[str]:
            return [line.text for line in session.host.tails[tail].lines]

        await session.until(lambda: len(lines(0)) >= 5 and len(lines(1)) >= 4)
        await session.until(lambda: session.host.tails[2].condition == "running")
        # tail itself must have begun to look before the log grows.
        await session.until(lambda: fresh_web1.processes("tail"))
        await asyncio.to_thread(fresh_web1.run, "echo '[core:error] a line' >>/var/log/apache2/error.log")
        await session.until(lambda: lines(2) == ["[core:error] a line"])
    assert [word for line in lines(0) for word in line.split()[1:2]].count("tps") >= 1
    assert any("buff" in line for line in lines(1))
    await session.until(lambda: not {*fresh_web1.processes("sar"), *fresh_web1.processes("tail")})


async def test_nothing_is_left_after_the_network_was_cut(
    lab: Lab, fresh_web1: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cockpit.hosts.tails.ALIVE", 1)
    config = host("web1", tail=("tail -n 0 -F /var/log/apache2/error.log",))
    async with watching(config, lab.ssh_config) as session:
        await session.until(lambda: fresh_web1.processes("tail"))
        first = set(fresh_web1.processes("tail"))
        with fresh_web1.unplugged():
            await session.until(lambda: session.host.condition == "lost")
        await session.until(lambda: not first & set(fresh_web1.processes("tail")))
        await session.until(lambda: fresh_web1.processes("tail"))
    await session.until(lambda: not fresh_web1.processes("tail"))


@pytest.mark.parametrize("kind", ["squid", "squid-info"])
async def test_squid(whole_lab: Lab, kind: StatusKind) -> None:
    page = StatusPage(
        kind=kind, url=f"http://localhost:3128/squid-internal-mgr/{'info' if '-' in kind else 'counters'}"
    )
    counter = "client_http.requests" if kind == "squid" else "Number of HTTP requests received"
    async with watching(host("proxy1", page), whole_lab.ssh_config) as session:
        await session.until(lambda: session.page.t is not None)
        before = session.page.values[counter]
        proxy = whole_lab.proxy1
        await asyncio.to_thread(proxy.run, "ab -q -n 50 http://localhost/img/00001.jpg")
        await session.until(lambda: session.page.values[counter] >= before + 50)
        assert session.page.rates[counter] > 0
        assert len(session.page.values) > 25


async def test_tomcat(whole_lab: Lab) -> None:
    login = ":".join(STATUS_LOGIN)
    page = StatusPage(kind="tomcat", url=f"http://localhost:8080{STATUS_PATH}?XML=true", auth=login)
    async with watching(host("app1", page), whole_lab.ssh_config) as session:
        await session.until(lambda: session.page.t is not None)
        before = session.page.values["requestCount"]
        await asyncio.to_thread(whole_lab.app1.run, "ab -q -n 50 http://localhost:8080/hello.html")
        await session.until(lambda: session.page.values["requestCount"] >= before + 50)
        values = session.page.values
    assert values["maxThreads"] >= values["currentThreadCount"] >= values["currentThreadsBusy"] >= 1
    assert 0 < values["memory.free"] < values["memory.total"] <= values["memory.max"]


NGINX = """\
daemon off; worker_processes 1; pid {0}/pid; error_log {0}/error.log;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {0}/b; proxy_temp_path {0}/p; fastcgi_temp_path {0}/f;
  uwsgi_temp_path {0}/u; scgi_temp_path {0}/s;
  server {{ listen {1}; location = /status {{ stub_status; }} location / {{ return 200 "it works"; }} }} }}
"""


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[str]:
    """Where a real nginx of this machine listens."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if program is None:
        pytest.skip("nginx is not installed")
    # An address of this test run's own, so that no other has the port.
    address = f"127.77.{os.getpid() >> 8 & 255}.{os.getpid() & 255}:8077"
    config = tmp_path / "nginx.conf"
    config.write_text(NGINX.format(tmp_path, address))
    running = subprocess.Popen([program, "-p", tmp_path, "-c", config, "-e", tmp_path / "error.log"])
    try:
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                socket.create_connection(address.split(":"), timeout=1).close()
                break
            except OSError:
                assert running.poll() is None and time.monotonic() < deadline, (tmp_path / "error.log").read_text()
                time.sleep(0.02)
        yield address
    finally:
        running.terminate()
        running.wait(DEADLINE)


async def test_nginx(nginx: str) -> None:
    page = StatusPage(kind="nginx", url=f"http://{nginx}/status")
    config = HostConfig(name="here", interval=0.5, status=(page,))
    async with watching(config, None) as session:
        await session.until(lambda: session.page.rates)
    assert session.page.rates["requests"] > 0
    assert session.page.values["Active connections"] >= session.page.values["Writing"] >= 1


async def test_more_tails_than_the_server_has_channels_for(lab: Lab) -> None:
    """sshd lets in 10 a connection, of which the probe has one."""
    async with watching(host("web1", tail=("sleep 1000",) * 10), lab.ssh_config) as session:

        def conditions() -> list[str]:
            return sorted(tail.condition for tail in session.host.tails)

        await session.until(lambda: conditions() == ["ended"] + 9 * ["running"])
        (refused,) = (tail for tail in session.host.tails if tail.condition == "ended")
    assert refused.detail.endswith("use fewer tails or raise MaxSessions")
