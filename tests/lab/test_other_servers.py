"""lighttpd and HAProxy of Debian: discovered, their knobs changed and undone, their status pages read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from msgspec.structs import replace

from cockpit.hosts.ssh import SshShell, connect
from cockpit.model.errors import ChangeRefused, ChangeUndone
from cockpit.model.hosts import HostConfig, StatusPage
from cockpit.model.knobs import Knob
from cockpit.model.load import LoadPlan
from cockpit.tuning.applied import Applied
from cockpit.tuning.probing import probe_of
from cockpit.tuning.server_discovery import DiscoveredHost, discover
from cockpit.tuning.tuner import Tuner
from tests.lab import haproxy, lighttpd
from tests.lab.inside import wait_until_it_answers
from tests.lab.lab import Host, Lab
from tests.lab.services import Service
from tests.lab.test_status_pages import host as watched
from tests.lab.test_status_pages import watching


@contextmanager
def running(host: Host, service: Service) -> Iterator[Host]:
    host.run(f"{{ {' && '.join((*service.prepare, service.start))}; }} >/tmp/{service.name}.out 2>&1")
    try:
        wait_until_it_answers(host.address, service.port)
        yield host
    finally:
        host.run(service.stop)


@pytest.fixture
def with_lighttpd(lab: Lab) -> Iterator[Host]:
    with running(lab.web1, lighttpd.LIGHTTPD) as host:
        yield host


@pytest.fixture
def with_haproxy(lab: Lab) -> Iterator[Host]:
    with running(lab.web1, haproxy.HAPROXY) as host:
        yield host


@asynccontextmanager
async def shell_of(host: Host) -> AsyncIterator[SshShell]:
    shell = await connect(HostConfig(name="web1", ssh="web1"), host.ssh_config)
    try:
        yield shell
    finally:
        await shell.close()


async def found_on(host: Host, port: int) -> DiscoveredHost:
    async with shell_of(host) as shell:
        return await discover(shell, "web1", port)


@asynccontextmanager
async def applied(host: Host, port: int, *assignments: tuple[Knob, str]) -> AsyncIterator[Applied]:
    async with shell_of(host) as shell:
        tuner = Tuner(probe_of(LoadPlan(url=f"http://{host.address}:{port}/")))
        done = await tuner.apply(shell, "web1", assignments)
        try:
            yield done
        finally:
            await tuner.undo(shell, done)


def offered(found: DiscoveredHost, name: str) -> Knob:
    return next(one.knob for one in found.offered if one.knob.name == name)


async def test_lighttpd_is_found_with_its_knobs_and_its_log(with_lighttpd: Host) -> None:
    found = await found_on(with_lighttpd, lighttpd.PORT)
    assert found.serving is not None and found.serving.title == "lighttpd"
    assert found.serving.ports == (lighttpd.PORT,)
    assert found.serving.tail == ("tail -n 3 -F /var/log/lighttpd/error.log",)
    assert offered(found, "server.max-connections").test.startswith("lighttpd -tt")


async def test_a_knob_of_lighttpd_is_changed_and_undone(with_lighttpd: Host) -> None:
    found = await found_on(with_lighttpd, lighttpd.PORT)
    before = with_lighttpd.run(f"sha256sum {lighttpd.CONFIG}").stdout
    status = f"curl -sS --fail 'http://localhost:{lighttpd.PORT}/server-status?auto'"
    async with applied(with_lighttpd, lighttpd.PORT, (offered(found, "server.max-connections"), "77")):
        page = dict(line.split(": ") for line in with_lighttpd.run(status).stdout.splitlines())
        assert int(page["BusyServers"]) + int(page["IdleServers"]) == 77
    assert with_lighttpd.run(f"sha256sum {lighttpd.CONFIG}").stdout == before


async def test_lighttpd_refuses_a_value(with_lighttpd: Host) -> None:
    found = await found_on(with_lighttpd, lighttpd.PORT)
    with pytest.raises(ChangeRefused, match=r"^server\.max-connections takes a whole number .*, not 'many'$"):
        async with applied(with_lighttpd, lighttpd.PORT, (offered(found, "server.max-connections"), "many")):
            pass
    unchecked = replace(offered(found, "server.max-connections"), directive="server.max-write-idle")
    with pytest.raises(ChangeUndone, match="got a string but expected a short"):
        async with applied(with_lighttpd, lighttpd.PORT, (unchecked, "many")):
            pass


async def test_the_status_page_of_lighttpd(lab: Lab, with_lighttpd: Host) -> None:
    page = StatusPage(kind="lighttpd", url=f"http://localhost:{lighttpd.PORT}/server-status?auto")
    async with watching(watched("web1", page), lab.ssh_config) as session:
        await session.until(lambda: session.page.t is not None)
        before = session.page.values["Total Accesses"]
        await asyncio.to_thread(with_lighttpd.run, f"ab -q -n 50 http://localhost:{lighttpd.PORT}/hello.html")
        await session.until(lambda: session.page.values["Total Accesses"] >= before + 50)
        assert session.page.rates["Total Accesses"] > 0 and session.page.text["Scoreboard"]


async def test_haproxy_is_found_with_its_knobs(with_haproxy: Host) -> None:
    found = await found_on(with_haproxy, haproxy.PORT)
    assert found.serving is not None and found.serving.title == "HAProxy"
    assert {"maxconn", "nbthread", "timeout-client", "timeout-server"} <= {one.knob.name for one in found.offered}
    assert [one.value for one in found.offered if one.knob.name == "timeout-client"] == ["50000"]


async def test_knobs_of_haproxy_are_changed_and_undone(with_haproxy: Host) -> None:
    found = await found_on(with_haproxy, haproxy.PORT)
    before = with_haproxy.run(f"sha256sum {haproxy.CONFIG}").stdout
    processes = set(with_haproxy.processes("haproxy"))
    changes = ((offered(found, "maxconn"), "77"), (offered(found, "timeout-client"), "9s"))
    async with applied(with_haproxy, haproxy.PORT, *changes):
        page = with_haproxy.run(f"curl -sS --fail http://localhost:{haproxy.STATS_PORT}/stats").stdout
        assert "maxconn = </b> 77" in page
        assert set(with_haproxy.processes("haproxy")) - processes
        assert "timeout client  9s" in with_haproxy.run(f"cat {haproxy.CONFIG}").stdout
    assert with_haproxy.run(f"sha256sum {haproxy.CONFIG}").stdout == before


async def test_haproxy_refuses_a_value(with_haproxy: Host) -> None:
    found = await found_on(with_haproxy, haproxy.PORT)
    with pytest.raises(ChangeRefused, match=r"^timeout client takes a time such as 30s or 500ms .*, not 'soon'$"):
        async with applied(with_haproxy, haproxy.PORT, (offered(found, "timeout-client"), "soon")):
            pass
    with pytest.raises(ChangeUndone, match=r"haproxy\.cfg"):
        async with applied(with_haproxy, haproxy.PORT, (offered(found, "timeout-client"), "99999999d")):
            pass


async def test_the_statistics_of_haproxy(lab: Lab, with_haproxy: Host) -> None:
    page = StatusPage(kind="haproxy", url=f"http://localhost:{haproxy.STATS_PORT}/stats;csv")
    async with watching(watched("web1", page), lab.ssh_config) as session:
        await session.until(lambda: session.page.t is not None)
        before = session.page.values["web/FRONTEND req_tot"]
        await asyncio.to_thread(with_haproxy.run, f"ab -q -n 50 http://localhost:{haproxy.PORT}/hello.html")
        await session.until(lambda: session.page.values["web/FRONTEND req_tot"] >= before + 50)
        assert session.page.rates["frontend.req_tot"] > 0 and session.page.values["servers.up"] == 1
