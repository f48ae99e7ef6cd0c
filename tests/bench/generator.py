"""What the load generator costs and how fast it is, beside the others, one row a function.

The server has a CPU of its own and the generators another, each in turn. Ratios are medians over rounds that go
round the generators. A row returns whether its bars hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from cockpit.model.load import LoadPlan
from tests.bench.goes import Figure, ours
from tests.bench.peers import AB, AB_KEPT, H2LOAD, HEY, WRK, Peer
from tests.bench.servers import SMALL, Site, apache, lacking_apache, lacking_nginx, nginx
from tests.bench.table import (
    Bar,
    Goes,
    Others,
    at_least,
    at_most,
    cost,
    described,
    exactly,
    middle,
    neighbours,
    present,
    rate,
    ratio,
    rounds,
    show,
)
from tests.lab.cpus import server_cpu

COCKPIT = "cockpit"
KEPT = 400_000
FOR_HEY = 60_000
NEW = 120_000
# Short goes and many of them: rates are by the clock, and others use the machine.
AT_APACHE = 30_000
AT_APACHE_ROUNDS = 5


def _beside(url: str, peers: Sequence[tuple[Peer, int]], concurrency: int, plan: LoadPlan) -> Goes:
    """Ours and the peers (each with its count of requests) against one URL."""
    goes: dict[str, Callable[[], Figure]] = {COCKPIT: lambda: ours(plan).figure}
    here = present([peer for peer, _ in peers])
    for peer, requests in peers:
        if peer in here:
            goes[peer.name] = partial(peer.go, url, concurrency, requests)
    return rounds(goes)


def _counted(measured: Goes, requests: int) -> list[Bar]:
    """That ours did all it was asked to, every time."""
    return [
        exactly("requests completed", min(figure.requests for figure in measured[COCKPIT]), requests),
        exactly("errors", max(figure.errors for figure in measured[COCKPIT]), 0),
    ]


def _kept(concurrency: int) -> bool:
    title = f"keep-alive, c={concurrency}, {SMALL}-byte reply, all statistics on"
    if lacking := lacking_nginx():
        return show(f"{title}: left out, {lacking}", [], [])
    print(f"{title} ...")
    with nginx() as site, neighbours(site.pid):
        plan = LoadPlan(url=site.small, concurrency=concurrency, requests=KEPT)
        peers = [(WRK, KEPT), (AB_KEPT, KEPT), (H2LOAD, KEPT), (HEY, FOR_HEY)]
        measured = _beside(site.small, peers, concurrency, plan)
    bars = _counted(measured, KEPT)
    if WRK.name in measured:
        bars.append(at_most("CPU per request, x wrk -t1", ratio(measured, COCKPIT, WRK.name, cost), 1.5))
    if HEY.name in measured:
        bars.append(at_most("CPU per request, x hey", ratio(measured, COCKPIT, HEY.name, cost), 0.5))
    return show(title, described(measured), bars)


def kept_20() -> bool:
    """CPU per request over kept connections, few of them."""
    return _kept(20)


def kept_100() -> bool:
    """The same, with more of them."""
    return _kept(100)


def new() -> bool:
    """CPU per request with a new connection for each."""
    title = f"a new connection each, c=20, {SMALL}-byte reply"
    if lacking := lacking_nginx():
        return show(f"{title}: left out, {lacking}", [], [])
    print(f"{title} ...")
    with nginx() as site, neighbours(site.pid):
        plan = LoadPlan(url=site.small, concurrency=20, requests=NEW, keepalive=False)
        measured = _beside(site.small, [(AB, NEW)], 20, plan)
    bars = _counted(measured, NEW)
    if AB.name in measured:
        bars.append(at_most("CPU per request, x ab", ratio(measured, COCKPIT, AB.name, cost), 1.3))
    return show(title, described(measured), bars)


def bottleneck() -> bool:
    """The rate against a server that is slower than any generator.

    Others take some of the server's CPU. So rates are told as they would be if the server had all of it.
    """
    title = "the server is the bottleneck: Apache prefork, keep-alive, c=20"
    if lacking := lacking_apache():
        return show(f"{title}: left out, {lacking}", [], [])
    print(f"{title} ...")

    def alone(site: Site, go: Callable[[], Figure]) -> Figure:
        others = Others(site.pid, cpu=server_cpu())
        figure = go()
        others.note()
        return figure._replace(rate=figure.rate / (1 - min(others.cpus, 0.9)))

    peers = present([WRK, AB_KEPT, H2LOAD, HEY])
    with apache() as site, neighbours(site.pid):
        plan = LoadPlan(url=site.small, concurrency=20, requests=AT_APACHE)
        goes: dict[str, Callable[[], Figure]] = {COCKPIT: lambda: alone(site, lambda: ours(plan).figure)}
        for peer in peers:
            goes[peer.name] = partial(alone, site, partial(peer.go, site.small, 20, AT_APACHE))
        measured = rounds(goes, AT_APACHE_ROUNDS)
    bars = _counted(measured, AT_APACHE)
    if peers:
        best = max((peer.name for peer in peers), key=lambda name: middle(measured, name, rate))
        bars.append(at_least(f"rate, x the best peer ({best})", ratio(measured, COCKPIT, best, rate), 0.9))
    return show(title, described(measured), bars)
