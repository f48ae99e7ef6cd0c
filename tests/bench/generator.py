"""Cost and rate of the load generator vs other generators, one function per row.

The server has one CPU, the generators the other, in turn. Ratios are medians over rounds of all generators. A row
returns whether its limits hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from cockpit.model.load import LoadPlan
from tests.bench.measurement import Measurement, run_cockpit
from tests.bench.peers import AB, AB_KEPT, H2LOAD, HEY, WRK, Peer
from tests.bench.servers import SMALL, Site, apache, missing_apache, missing_nginx, nginx
from tests.bench.table import (
    Bar,
    Measurements,
    OtherLoad,
    at_least,
    at_most,
    available,
    cost,
    exactly,
    median_of,
    rate,
    ratio,
    report_other_load,
    rounds,
    show,
    summary_lines,
)
from tests.lab.cpus import server_cpu

COCKPIT = "cockpit"
KEPT = 400_000
FOR_HEY = 60_000
NEW = 120_000
# Many short runs: rates use the wall clock, and other programs use the machine.
AT_APACHE = 30_000
AT_APACHE_ROUNDS = 5


def _compared(url: str, peers: Sequence[tuple[Peer, int]], concurrency: int, plan: LoadPlan) -> Measurements:
    """Measure cockpit and the peers (each with its number of requests) on one URL."""
    generators: dict[str, Callable[[], Measurement]] = {COCKPIT: lambda: run_cockpit(plan).measurement}
    installed = available([peer for peer, _ in peers])
    for peer, requests in peers:
        if peer in installed:
            generators[peer.name] = partial(peer.run, url, concurrency, requests)
    return rounds(generators)


def _counted(measured: Measurements, requests: int) -> list[Bar]:
    """Return the limits of cockpit's counts: all requests complete, no errors."""
    return [
        exactly("requests completed", min(each.requests for each in measured[COCKPIT]), requests),
        exactly("errors", max(each.errors for each in measured[COCKPIT]), 0),
    ]


def _kept(concurrency: int) -> bool:
    title = f"keep-alive, c={concurrency}, {SMALL}-byte response, all statistics on"
    if absent := missing_nginx():
        return show(f"{title}: skipped, {absent}", [], [])
    print(f"{title} ...")
    with nginx() as site, report_other_load(site.pid):
        plan = LoadPlan(url=site.small, concurrency=concurrency, requests=KEPT)
        peers = [(WRK, KEPT), (AB_KEPT, KEPT), (H2LOAD, KEPT), (HEY, FOR_HEY)]
        measured = _compared(site.small, peers, concurrency, plan)
    bars = _counted(measured, KEPT)
    if WRK.name in measured:
        bars.append(at_most("CPU per request, x wrk -t1", ratio(measured, COCKPIT, WRK.name, cost), 1.5))
    if HEY.name in measured:
        bars.append(at_most("CPU per request, x hey", ratio(measured, COCKPIT, HEY.name, cost), 0.5))
    return show(title, summary_lines(measured), bars)


def kept_20() -> bool:
    """CPU/request over 20 kept connections."""
    return _kept(20)


def kept_100() -> bool:
    """CPU/request over 100 kept connections."""
    return _kept(100)


def new() -> bool:
    """CPU/request with a new connection per request."""
    title = f"a new connection each, c=20, {SMALL}-byte response"
    if absent := missing_nginx():
        return show(f"{title}: skipped, {absent}", [], [])
    print(f"{title} ...")
    with nginx() as site, report_other_load(site.pid):
        plan = LoadPlan(url=site.small, concurrency=20, requests=NEW, keepalive=False)
        measured = _compared(site.small, [(AB, NEW)], 20, plan)
    bars = _counted(measured, NEW)
    if AB.name in measured:
        bars.append(at_most("CPU per request, x ab", ratio(measured, COCKPIT, AB.name, cost), 1.3))
    return show(title, summary_lines(measured), bars)


def bottleneck() -> bool:
    """Rate on a server that is slower than any generator.

    Other load takes some of the server's CPU. Rates are scaled to the whole CPU.
    """
    title = "the server is the bottleneck: Apache prefork, keep-alive, c=20"
    if absent := missing_apache():
        return show(f"{title}: skipped, {absent}", [], [])
    print(f"{title} ...")

    def scaled(site: Site, measure: Callable[[], Measurement]) -> Measurement:
        others = OtherLoad(site.pid, cpu=server_cpu())
        measurement = measure()
        others.stop()
        return measurement._replace(rate=measurement.rate / (1 - min(others.cpus, 0.9)))

    peers = available([WRK, AB_KEPT, H2LOAD, HEY])
    with apache() as site, report_other_load(site.pid):
        plan = LoadPlan(url=site.small, concurrency=20, requests=AT_APACHE)
        generators: dict[str, Callable[[], Measurement]] = {
            COCKPIT: lambda: scaled(site, lambda: run_cockpit(plan).measurement)
        }
        for peer in peers:
            generators[peer.name] = partial(scaled, site, partial(peer.run, site.small, 20, AT_APACHE))
        measured = rounds(generators, AT_APACHE_ROUNDS)
    bars = _counted(measured, AT_APACHE)
    if peers:
        best = max((peer.name for peer in peers), key=lambda name: median_of(measured, name, rate))
        bars.append(at_least(f"rate, x the best peer ({best})", ratio(measured, COCKPIT, best, rate), 0.9))
    return show(title, summary_lines(measured), bars)
