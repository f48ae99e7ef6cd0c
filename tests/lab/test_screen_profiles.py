"""Shipped profiles under load: enable a cache, measure its hits and the origin's CPU, undo to the original bytes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from cockpit.metrics.values import host_metrics
from cockpit.model import access
from cockpit.model.clock import Clock
from cockpit.model.load.plan import ThinkTime
from cockpit.model.state import Segment, State
from cockpit.model.study import with_address
from cockpit.profiles.reader import read_profile
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from tests.lab import proxy1
from tests.lab.cpus import generator_cpu
from tests.lab.lab import Host, Lab
from tests.lab.profile_runs import PROFILES

TIMEOUT = 300.0
# The think time leaves CPU to other processes: less than 800 requests/s.
THINK_TIME = ThinkTime(distribution="constant", seconds=0.005)
# Requests before and after the change, and images: few enough to be cached after a fraction of the requests.
REQUESTS, IMAGES = 1000, "/img/{00001..00200}.jpg"


@asynccontextmanager
async def loaded(lab: Lab, name: str) -> AsyncIterator[tuple[Session, LiveSource]]:
    """Run a session of a shipped profile with its load, on fewer images than in the profile."""
    profile = read_profile(PROFILES / f"{name}.toml")
    host = lab.hosts[urlsplit(profile.plan.url).hostname or ""]
    paths = profile.plan.paths and replace(profile.plan.paths, pattern=IMAGES)
    plan = with_address(profile.plan, {host.name: host.address})
    assert plan.duration == 3600, "long enough for tuning"
    plan = replace(plan, paths=paths, cpus=(generator_cpu(),), concurrency=4, think_time=THINK_TIME)
    source = LiveSource(replace(profile, plan=plan), Clock(), ssh_config=lab.ssh_config)
    session = Session(source)
    running = asyncio.create_task(session.run())
    try:
        await until(session, lambda state: bool(state.knobs) and all(knob.known for knob in state.knobs.values()))
        await until(session, lambda state: all(host.point is not None for host in state.hosts.values()))
        await next(action for action in source.controls.actions if action.name == "toggle").run("")
        yield session, source
    finally:
        await source.close()
        await running


async def until(session: Session, condition: Callable[[State], bool]) -> State:
    return await asyncio.wait_for(session.until(condition), TIMEOUT)


def hit_ratio(state: State, host: str) -> float | None:
    """Return the hit ratio of the access log; None without cache status."""
    rates = access.rates(state.hosts[host].tails[0].counts)
    return rates.hit_ratio if rates else None


def cpu_per_request(segment: Segment, host: str) -> float:
    return host_metrics(segment.hosts[host])["processes.cpu"] / segment.rate


async def measured(session: Session, requests: int = REQUESTS, seconds: float = 3.0) -> Segment:
    """Wait until the latest segment has its requests and some seconds of all hosts, and return it."""

    def enough(state: State) -> bool:
        segment = state.segments[-1] if state.segments else None
        if segment is None or segment.counts.completed < requests or set(segment.hosts) != set(state.hosts):
            return False
        return all(window.seconds >= seconds for window in segment.hosts.values())

    return (await until(session, enough)).segments[-1]


@pytest.fixture
def proxies(whole_lab: Lab, plain_web1: Host) -> Lab:
    """The whole lab with empty and disabled caches."""
    whole_lab.proxy1.run(
        f"rm -rf {proxy1.NGINX_MOUNT}/* /run/nginx/*; rm -rf /var/log/nginx/access.log; nginx -s reopen"
    )
    return whole_lab


@pytest.mark.parametrize(
    ("name", "host", "changes", "place"),
    [
        ("cache-type", "proxy1", ({"proxy_cache": "disk"}, {"proxy_cache": "tmpfs"}), "/etc/nginx"),
        ("cache-type-apache", "web1", ({"cache": "disk"}, {"cache": "socache"}), "/etc/apache2"),
    ],
)
async def test_cache_is_enabled_under_load(
    proxies: Lab, name: str, host: str, changes: tuple[dict[str, str], ...], place: str
) -> None:
    before = proxies.hosts[host].files(place)
    async with loaded(proxies, name) as (session, source):
        first = await measured(session)
        assert hit_ratio(session.state, host) is None and first.counts.failed == 0
        assert source.tuning is not None
        for values in changes:
            await source.tuning.apply(values)
            await until(session, lambda state: (hit_ratio(state, host) or 0) > 0.9)
            cached = await measured(session)
            assert cached.number > first.number
            assert cpu_per_request(cached, "origin1") < cpu_per_request(first, "origin1") / 2
            assert host_metrics(cached.hosts[host])["access.hit_ratio"] > 50
            await source.tuning.undo()
            await until(session, lambda state: hit_ratio(state, host) is None)
    assert proxies.hosts[host].files(place) == before


@pytest.mark.parametrize(
    ("name", "host", "values", "hits"),
    [
        ("caches", "web1", {"cache": "disk"}, True),
        ("large-file", "web1", {"cache": "disk"}, True),
        ("topologies", "web1", {"connector": "AJP"}, False),
        ("spare-servers", "web1", {"MPM": "event", "StartServers": "3"}, False),
        ("cache-type-squid", "proxy1", {"store": "rock"}, True),
    ],
)
async def test_profile_loads_the_server_that_it_tunes(
    proxies: Lab, name: str, host: str, values: dict[str, str], hits: bool
) -> None:
    # How often a reload with another MPM ended Apache.
    crashes = "grep -c 'MPM cannot be changed' /var/log/apache2/error.log || true"
    places = f"/etc/apache2 {proxy1.CONFIG}"
    before = proxies.hosts[host].files(places), proxies.web1.run(crashes).stdout
    async with loaded(proxies, name) as (session, source):
        first = await measured(session, 20, 1.0)
        assert not first.counts.failed
        assert source.tuning is not None
        await source.tuning.apply(values)
        if hits:
            await until(session, lambda state: (hit_ratio(state, host) or 0) > 0.5)
        second = await measured(session, 20, 1.0)
        assert second.number > first.number and set(second.counts.statuses) == {200}
        await source.tuning.undo()
    assert (proxies.hosts[host].files(places), proxies.web1.run(crashes).stdout) == before
