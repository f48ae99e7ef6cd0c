"""Watching real servers through a real sshd: status pages, tails, restarts, an outage, and no remains on the host."""

import asyncio

import pytest

from cockpit.analysis.words.timeline import marker_text
from cockpit.model.host.samples import StatusPage
from tests.lab.app1 import STATUS_LOGIN, STATUS_PATH
from tests.lab.lab import Host, Lab
from tests.lab.watching import watching

APACHE = StatusPage(kind="apache", url="http://localhost/server-status?auto")
TAILS = ("sar -b 1", "vmstat 1", "tail -n 0 -F /var/log/apache2/error.log")


async def test_tails_restarts_and_an_outage(lab: Lab, fresh_web1: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.hosts.tails.ALIVE", 1)
    async with watching("web1", lab.ssh_config, APACHE, processes=("apache2",), tail=TAILS) as watch:

        def lines(tail: int) -> list[str]:
            return [line.text for line in watch.host().tails[tail].lines]

        def restarts() -> list[str]:
            return [marker_text(marker) for marker in watch.state().markers if marker.kind == "restart"]

        def programs() -> set[int]:
            return {*fresh_web1.processes("tail"), *fresh_web1.processes("sar"), *fresh_web1.processes("vmstat")}

        await watch.shows(lambda: watch.host().parents and watch.page.t is not None)
        await watch.shows(lambda: len(lines(0)) >= 5 and len(lines(1)) >= 4)
        assert [word for line in lines(0) for word in line.split()[1:2]].count("tps") >= 1
        assert any("buff" in line for line in lines(1))
        # tail itself must have begun to look before the log grows.
        await watch.shows(lambda: fresh_web1.processes("tail"))
        await asyncio.to_thread(fresh_web1.run, "echo '[core:error] a line' >>/var/log/apache2/error.log")
        await watch.shows(lambda: "[core:error] a line" in lines(2))
        # A child that is just started is `_` on the board before its parent has noted its pid, and no idle worker yet.
        await watch.shows(lambda: watch.page.text["Scoreboard"].count("_") == watch.page.values["IdleWorkers"])
        assert watch.page.values["BusyWorkers"] >= 1 and watch.page.text["ServerMPM"] == "prefork"

        parent = watch.host().parents[0].pid
        await asyncio.to_thread(fresh_web1.run, "a2dismod -q status && apachectl graceful")
        await watch.shows(lambda: watch.page.detail == "404: is mod_status enabled? a2enmod status")
        await asyncio.to_thread(fresh_web1.run, "a2enmod -q status && apachectl graceful")
        await watch.shows(lambda: not watch.page.detail)
        await watch.shows(restarts)
        assert restarts()[0].startswith("web1 apache: reloaded, generation ")
        await asyncio.to_thread(fresh_web1.restart, "apache2")
        await watch.shows(lambda: watch.host().parents[-1].pid != parent)
        await watch.shows(
            lambda: f"web1 apache2 restarted: pid {parent} → {watch.host().parents[-1].pid}" in restarts()
        )

        first = programs()
        with fresh_web1.unplugged():
            await watch.shows(lambda: watch.host().condition == "lost")
        await watch.shows(lambda: not first & programs())
        await watch.shows(lambda: watch.host().condition == "up" and len(programs()) >= 3)
    arguments = "ps -e -o args="
    await watch.shows(lambda: not programs() and "sh -s" not in fresh_web1.run(arguments).stdout.splitlines())


TOMCAT = StatusPage(kind="tomcat", url=f"http://localhost:8080{STATUS_PATH}?XML=true", auth=":".join(STATUS_LOGIN))
SQUID = StatusPage(kind="squid-info", url="http://localhost:3128/squid-internal-mgr/info")


@pytest.mark.parametrize(
    ("name", "page", "counter", "url"),
    [
        ("proxy1", SQUID, "Number of HTTP requests received", "http://localhost/img/00001.jpg"),
        ("app1", TOMCAT, "requestCount", "http://localhost:8080/hello.html"),
    ],
)
async def test_page_counts_requests(whole_lab: Lab, name: str, page: StatusPage, counter: str, url: str) -> None:
    async with watching(name, whole_lab.ssh_config, page) as watch:
        await watch.shows(lambda: watch.page.t is not None)
        before = watch.page.values[counter]
        await asyncio.to_thread(whole_lab.hosts[name].run, f"ab -q -n 50 {url}")
        await watch.shows(lambda: watch.page.values[counter] >= before + 50)
        assert watch.page.rates[counter] > 0
        values = watch.page.values
    if name == "app1":
        assert values["maxThreads"] >= values["currentThreadCount"] >= values["currentThreadsBusy"] >= 1
        assert 0 < values["memory.free"] < values["memory.total"] <= values["memory.max"]
    else:
        assert len(values) > 25
