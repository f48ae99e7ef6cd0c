"""Cost, rate and punctuality of the load generator vs other generators, one function per row.

The server has one CPU, the generators the other, in turn. Ratios are medians over rounds of all generators. A row
returns whether its limits hold.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from msgspec.structs import replace

from cockpit.load.pool import LoadRun
from cockpit.model.load.plan import Expect, HttpVersion, LoadPlan, Tls
from tests.bench.measurement import CockpitRun, Measurement, plan_on, run_cockpit
from tests.bench.peers import AB, AB_KEPT, H2LOAD, HEY, HTTPERF, WRK, Peer, h2load, h2load_new, httperf
from tests.bench.servers import LARGE, MEDIUM, SMALL, Site, apache, nginx
from tests.bench.table import (
    Bar,
    Measurements,
    OtherLoad,
    Skipped,
    at_least,
    at_most,
    available,
    cost,
    cpu_of,
    exactly,
    median_of,
    rate,
    ratio,
    report_other_load,
    rounds,
    show,
    summary_lines,
)
from tests.lab.cpus import generator_cpu, server_cpu

COCKPIT = "cockpit"
KEPT, FOR_HEY, NEW = 400_000, 60_000, 120_000
# TLS connections, and their number per second, which the server's CPU can accept.
NEW_TLS, TLS_RATE = 12_000, 500
NEW_TLS_LIMITS: dict[HttpVersion, float] = {"1.1": 1.3, "2": 1.5}
# Streams per connection of rows about HTTP/2 that have a single number of them.
STREAMS = 10
# Many short runs: rates use the wall clock, and other programs use the machine.
AT_APACHE, AT_APACHE_ROUNDS = 30_000, 5
BODIES = 1000
MILLION = 1_000_000
LAST = 5 * MILLION
MANY, FEW, FOR_MANY = 5000, 100, 300_000
FOR_WORKERS = 20_000
# Seconds of open load; requests per kept connection of httperf, whose rate counts connections.
SECONDS, CALLS = 5, 10

Generators = dict[str, Callable[[], Measurement]]


@contextmanager
def _serving(title: str, server: Callable[[], AbstractContextManager[Site]] = nginx) -> Iterator[Site]:
    print(f"{title} ...")
    with server() as site, report_other_load(site.pid):
        yield site


def _recorded(plan: LoadPlan, runs: list[CockpitRun]) -> Measurement:
    """Run the plan, and append the run."""
    runs.append(run_cockpit(plan))
    return runs[-1].measurement


def _compared(plan: LoadPlan, peers: Sequence[tuple[Peer, int]], runs: list[CockpitRun]) -> Measurements:
    """Measure cockpit and the peers (each with its number of requests) on one URL."""
    generators: Generators = {COCKPIT: lambda: _recorded(plan, runs)}
    installed = available([peer for peer, _ in peers])
    for peer, requests in peers:
        if peer in installed:
            generators[peer.name] = partial(peer.run, plan.url, plan.concurrency, requests)
    return rounds(generators)


def _counted(measured: Measurements, requests: int, name: str = COCKPIT) -> list[Bar]:
    """Return the limits of cockpit's counts: all requests complete, no errors."""
    return [
        exactly("requests completed", min(each.requests for each in measured[name]), requests),
        exactly("errors", max(each.errors for each in measured[name]), 0),
    ]


def _costs_at_most(measured: Measurements, **limits: float) -> list[Bar]:
    """Return the limits of cockpit's CPU/request relative to the measured peers, by their commands."""
    return [
        at_most(f"CPU per request, x {name}", ratio(measured, COCKPIT, name, cost), limits[name.split()[0]])
        for name in measured
        if name.split()[0] in limits and name != AB_KEPT.name
    ]


def kept(concurrency: int) -> bool:
    """CPU/request over kept connections."""
    title = f"keep-alive, c={concurrency}, {SMALL}-byte response, all statistics on"
    with _serving(title) as site:
        plan = LoadPlan(url=site.small, concurrency=concurrency, requests=KEPT)
        measured = _compared(plan, [(WRK, KEPT), (AB_KEPT, KEPT), (H2LOAD, KEPT), (HEY, FOR_HEY)], [])
    bars = _counted(measured, KEPT) + _costs_at_most(measured, wrk=1.5, hey=0.5)
    return show(title, summary_lines(measured), bars)


def http2(streams: int) -> bool:
    """CPU/request over HTTP/2 without TLS."""
    concurrency = 20 if streams == 1 else 4
    title = f"HTTP/2, c={concurrency}, {streams} streams per connection, {SMALL}-byte response"
    with _serving(title, partial(nginx, http2=True)) as site:
        plan = LoadPlan(url=site.small, concurrency=concurrency, requests=KEPT, http="2", streams=streams)
        measured = _compared(plan, [(h2load(streams), KEPT)], [])
    return show(title, summary_lines(measured), _counted(measured, KEPT) + _costs_at_most(measured, h2load=1.2))


def new_tls(http: HttpVersion) -> bool:
    """CPU/request with a new TLS connection per request, all handshakes full, no certificate verified.

    Both negotiate TLS 1.2 with X25519 and ECDSA, and start requests at even intervals. Most of the cost of both is
    OpenSSL's. Connects and handshakes alone, by Python's ssl module at the same intervals and without a request, cost
    1.07 times as much as h2load with its requests (median of 6 pairs, 1.02 to 1.42): 1.15 leaves nothing for a request.
    HTTP/2 has more to do per connection: its preface, SETTINGS of both sides, and the tables of its streams.
    """
    title = f"HTTP/{http} over TLS, {TLS_RATE} new connections/s, full handshakes, {SMALL}-byte response"
    with _serving(title, partial(nginx, http2=http == "2", secure=True)) as site:
        plan = LoadPlan(
            url=site.small,
            rate=float(TLS_RATE),
            requests=NEW_TLS,
            keepalive=False,
            http=http,
            tls=Tls(verify=False, resumption=False),
        )
        measured = _compared(plan, [(h2load_new(TLS_RATE, *["--h1"] * (http == "1.1")), NEW_TLS)], [])
    return show(
        title,
        summary_lines(measured),
        _counted(measured, NEW_TLS) + _costs_at_most(measured, h2load=NEW_TLS_LIMITS[http]),
    )


def new() -> bool:
    """CPU/request with a new connection per request."""
    title = f"a new connection each, c=20, {SMALL}-byte response"
    with _serving(title) as site:
        plan = LoadPlan(url=site.small, concurrency=20, requests=NEW, keepalive=False)
        measured = _compared(plan, [(AB, NEW)], [])
    return show(title, summary_lines(measured), _counted(measured, NEW) + _costs_at_most(measured, ab=1.3))


def bottleneck() -> bool:
    """Rate on a server that is slower than any generator.

    Other load takes some of the server's CPU. Rates are scaled to the whole CPU.
    """
    title = "the server is the bottleneck: Apache prefork, keep-alive, c=20"

    def scaled(site: Site, measure: Callable[[], Measurement]) -> Measurement:
        others = OtherLoad(site.pid, cpu=server_cpu())
        measurement = measure()
        others.stop()
        return measurement._replace(rate=measurement.rate / (1 - min(others.cpus, 0.9)))

    peers = available([WRK, AB_KEPT, H2LOAD, HEY])
    with _serving(title, apache) as site:
        plan = LoadPlan(url=site.small, concurrency=20, requests=AT_APACHE)
        generators: Generators = {COCKPIT: lambda: scaled(site, lambda: run_cockpit(plan).measurement)}
        for peer in peers:
            generators[peer.name] = partial(scaled, site, partial(peer.run, site.small, 20, AT_APACHE))
        measured = rounds(generators, AT_APACHE_ROUNDS)
    bars = _counted(measured, AT_APACHE)
    if peers:
        best = max((peer.name for peer in peers), key=lambda name: median_of(measured, name, rate))
        bars.append(at_least(f"rate, x the best peer ({best})", ratio(measured, COCKPIT, best, rate), 0.9))
    return show(title, summary_lines(measured), bars)


def open_load(per_second: int, kept: bool, http2: bool = False) -> bool:
    """Open load: all requests are sent, on time."""
    connections = "kept connections" if kept else "a new connection each"
    title = f"open load, {per_second}/s for {SECONDS} s, {connections}{', HTTP/2' * http2}"
    runs: list[CockpitRun] = []
    with _serving(title, partial(nginx, http2=http2)) as site:
        plan = LoadPlan(url=site.small, rate=per_second, duration=float(SECONDS), keepalive=kept)
        plan = _over_http2(plan) if http2 else plan
        generators: Generators = {COCKPIT: lambda: _recorded(plan, runs)}
        if not http2 and available([HTTPERF]):
            calls = CALLS if kept else 1
            generators["httperf"] = lambda: httperf(
                site.small, per_second / calls, per_second * SECONDS // calls, calls
            )
        measured = rounds(generators)
    due = per_second * SECONDS
    lines = summary_lines(measured)
    for run in runs:
        lag = run.merged("lag")
        percentiles = " ".join(f"p{percent} {lag.percentile(percent) * 1e3:.3f}" for percent in (50, 99))
        lines.append(f"sent {run.total('sent'):,} of {due:,}, lag {percentiles} max {lag.max * 1e3:.3f} ms")
    deviation = max(abs(run.total("sent") / due - 1) for run in runs) * 100
    bars = [
        at_most("deviation from the requested rate", deviation, 0.1, "%"),
        # Other load only adds lag: the round with the least lag is the best estimate.
        at_most("lag p99", min(run.merged("lag").percentile(99) for run in runs) * 1e3, 2.0, " ms"),
        exactly("queued", max(run.total("queued") for run in runs), 0),
        exactly("errors", max(run.errors for run in runs), 0),
    ]
    return show(title, lines, bars)


def large() -> bool:
    """Large bodies: all bytes are counted, at the rate of ab."""
    title = f"{LARGE:,}-byte body, c=100, n={BODIES}, a new connection each"
    runs: list[CockpitRun] = []
    with _serving(title) as site:
        plan = LoadPlan(url=site.large, concurrency=100, requests=BODIES, keepalive=False)
        measured = _compared(plan, [(AB, BODIES)], runs)
    bars = [exactly("body bytes counted", run.total("body_bytes"), BODIES * LARGE) for run in runs]
    bars.append(exactly("errors", max(run.errors for run in runs), 0))
    if AB.name in measured:
        bars.append(at_least("rate, x ab", ratio(measured, COCKPIT, AB.name, rate), 0.8))
    return show(title, summary_lines(measured), bars)


def _over_http2(plan: LoadPlan) -> LoadPlan:
    return replace(plan, http="2", streams=STREAMS)


def memory(http2: bool = False) -> bool:
    """Memory of the worker after one million and after five million requests."""
    title = f"memory from 1 M to 5 M requests, keep-alive, c=20{', HTTP/2' * http2}"
    sizes: dict[int, int] = {}
    done = 0

    def watch(run: LoadRun, recorded: CockpitRun) -> None:
        nonlocal done
        done += recorded.ticks.pop().completed if recorded.ticks else 0
        at = done // MILLION
        if at and at not in sizes:
            rows = dict(line.split(":") for line in Path(f"/proc/{run.pids[0]}/status").read_text().splitlines())
            sizes[at] = int(rows["VmRSS"].split()[0]) * 1024

    with _serving(title, partial(nginx, http2=http2)) as site:
        # More requests than are sampled: the last tick arrives when the worker ends.
        plan = LoadPlan(url=site.small, concurrency=20, requests=LAST + MILLION // 2)
        run_cockpit(_over_http2(plan) if http2 else plan, watch)
    lines = [f"{at} M requests: {size / 1e6:.2f} MB resident" for at, size in sorted(sizes.items())]
    return show(title, lines, [at_most("growth", (sizes[5] - sizes[1]) / 1e6, 2.0, " MB")])


def many() -> bool:
    """Keep 5000 connections open."""
    title = f"{MANY} connections, keep-alive, {SMALL}-byte response"
    runs: list[CockpitRun] = []
    few, more = f"c={FEW}", f"c={MANY}"
    with _serving(title) as site:
        plans = [LoadPlan(url=site.small, concurrency=concurrency, requests=FOR_MANY) for concurrency in (FEW, MANY)]
        generators: Generators = {few: lambda: _recorded(plans[0], []), more: lambda: _recorded(plans[1], runs)}
        if available([WRK]):
            generators[f"wrk {more}"] = lambda: WRK.run(site.small, MANY, FOR_MANY)
        measured = rounds(generators)
    connections = min(max(tick.connections for tick in run.ticks) for run in runs)
    bars = [exactly("open connections", connections, MANY), *_counted(measured, FOR_MANY, more)]
    bars.append(at_most(f"CPU per request, x {few}", ratio(measured, more, few, cost), 1.5))
    return show(title, summary_lines(measured), bars)


def workers() -> bool:
    """Two workers on both CPUs vs one worker.

    The server runs on one of these CPUs. The generator checks the digest of each page, which costs it more than the
    server. The rate can then grow until the server, the workers and other load use both CPUs.
    """
    title = f"two workers on two CPUs vs one, {MEDIUM:,}-byte response checked by its digest, c=40"
    if server_cpu() == generator_cpu():
        raise Skipped("the machine has one CPU")
    used: list[float] = []

    def measure(site: Site, count: int) -> Measurement:
        expect = Expect(sha256=hashlib.sha256(b"x" * MEDIUM).hexdigest())
        plan = LoadPlan(url=site.medium, concurrency=40, requests=FOR_WORKERS, workers=count, expect=expect)
        others, served = OtherLoad(site.pid), cpu_of(site.pid)
        measurement = run_cockpit(plan_on(plan, *(generator_cpu(), server_cpu())[:count])).measurement
        others.stop()
        if count == 2:
            own = (cpu_of(site.pid) - served + measurement.cpu) / others.seconds
            used.append(own / max(2 - others.cpus, own))
        return measurement

    with _serving(title) as site:
        measured = rounds({"one": lambda: measure(site, 1), "two": lambda: measure(site, 2)})
    bars = [
        exactly("requests completed", min(each.requests for each in measured["two"]), FOR_WORKERS),
        at_least("rate, two / one", ratio(measured, "two", "one", rate), 1.2),
        at_least("used share of both CPUs without other load", median(used), 0.8),
    ]
    return show(title, summary_lines(measured), bars)
