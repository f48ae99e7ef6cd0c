"""Think time on a real Apache, and access logs of real servers replayed on the same servers."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from cockpit.load.log_reader import read_log
from cockpit.model.load import LoadPlan, LogReplay, PathList, ThinkTime
from cockpit.model.study import located
from cockpit.profiles.reader import read_profile
from tests.lab import state
from tests.lab.cpus import generator_cpu
from tests.lab.keeper import REPOSITORY
from tests.lab.lab import Host, Lab
from tests.load.servers import load

REQUESTS = 60


class Site(NamedTuple):
    """A server of the lab with an access log: host, port, log, paths, and Host header."""

    host: str
    port: int
    log: str
    paths: str = "/img/{00001..00020}.jpg"
    site: str = ""


SITES = {
    "apache": Site("web1", 80, "/var/log/apache2/access.log"),
    "nginx": Site("proxy1", 8080, "/var/log/nginx/access.log"),
    "squid": Site("proxy1", 80, "/var/log/squid/access.log", site="origin1"),
    "tomcat": Site("app1", 8080, "/var/log/tomcat10/access.log", paths="/hello.html?n={1..20}"),
}


async def test_think_time_and_reconnects(plain_web1: Host) -> None:
    plan = read_profile(REPOSITORY / "profiles" / "real-visitors.toml").plan
    assert plan.cookies and plan.requests_per_connection == 10 and plan.think_time is not None
    think = ThinkTime(distribution="uniform", seconds=0.02, most=0.1)
    plan = replace(plan, concurrency=15, requests=600, duration=None, think_time=think, cpus=(generator_cpu(),))
    outcome = await load(located(plan, {"web1": plain_web1.address}))
    assert outcome.statuses == {200: 600} and outcome.errors == {}
    # Ten requests per connection; the last connection of each visitor may have fewer.
    assert 60 <= outcome.merged("connect").count <= 60 + 15
    assert {name: sum(group.completed for group in groups) for name, groups in outcome.groups.items()} == {
        "page": 150,
        "text": 450,
    }


@pytest.mark.parametrize("name", SITES)
async def test_log_of_real_server_is_replayed(name: str, whole_lab: Lab, tmp_path: Path) -> None:
    site = SITES[name]
    host = whole_lab.hosts[site.host]
    plan = LoadPlan(
        url=f"http://{site.host}:{site.port}/",
        connect_to=f"{host.address}:{site.port}",
        headers=(("Host", site.site),) if site.site else (),
        concurrency=3,
        requests=REQUESTS,
        cpus=(generator_cpu(),),
    )
    first = await logged(host, site, replace(plan, paths=PathList(pattern=site.paths)), tmp_path / "first.log")
    again = await logged(host, site, replace(plan, requests=None, replay=first), tmp_path / "again.log")
    assert requests_of(plan, first) == requests_of(plan, again)
    assert sum(requests_of(plan, again).values()) == REQUESTS


async def logged(host: Host, site: Site, plan: LoadPlan, file: Path) -> LogReplay:
    """Load the site, and return its log of that load for a replay at speed 2."""
    before = length(host, site)
    outcome = await load(plan)
    assert outcome.statuses == {200: REQUESTS} and outcome.errors == {}
    assert state.wait_for(lambda: length(host, site) - before >= REQUESTS)
    text = host.run(f"tail -n {length(host, site) - before} {site.log}").stdout
    await asyncio.to_thread(file.write_text, text)
    return LogReplay(file=str(file), speed=2.0)


def length(host: Host, site: Site) -> int:
    return int(host.run(f"wc -l <{site.log} || echo 0").stdout.split()[0])


def requests_of(plan: LoadPlan, replay: LogReplay) -> Counter[bytes]:
    log = read_log(replace(plan, replay=replay))
    assert log.lines == log.total
    return Counter(log.requests.line(number) for number in log.numbers.tolist())
