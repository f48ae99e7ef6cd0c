"""What must not grow, break or slow down with size: bodies, requests, connections, workers."""

from __future__ import annotations

import hashlib
from pathlib import Path
from statistics import median

from cockpit.load.pool import LoadRun
from cockpit.model.load import Expect, LoadPlan
from tests.bench.goes import Figure, Run, ours, plan_on
from tests.bench.peers import AB, WRK
from tests.bench.servers import LARGE, MEDIUM, SMALL, Site, lacking_nginx, nginx
from tests.bench.table import (
    Others,
    at_least,
    at_most,
    cost,
    cpu_of,
    described,
    exactly,
    neighbours,
    present,
    rate,
    ratio,
    rounds,
    show,
)
from tests.lab.cpus import generator_cpu, server_cpu

COCKPIT = "cockpit"
BODIES = 1000
MILLION = 1_000_000
LAST = 5 * MILLION
MANY = 5000
FEW = 100
FOR_MANY = 300_000
FOR_WORKERS = 20_000


def large() -> bool:
    """Large bodies: every byte counted, and as fast as ab."""
    title = f"{LARGE:,}-byte body, c=100, n={BODIES}, a new connection each"
    if lacking := lacking_nginx():
        return show(f"{title}: left out, {lacking}", [], [])
    print(f"{title} ...")
    with nginx() as site, neighbours(site.pid):
        plan = LoadPlan(url=site.large, concurrency=100, requests=BODIES, keepalive=False)
        runs: list[Run] = []

        def go() -> Figure:
            runs.append(ours(plan))
            return runs[-1].figure

        goes = {COCKPIT: go}
        if present([AB]):
            goes[AB.name] = lambda: AB.go(site.large, 100, BODIES)
        measured = rounds(goes)
    counted = {run.total("body_bytes") for run in runs}
    bars = [exactly("body bytes counted", count, BODIES * LARGE) for count in counted]
    bars.append(exactly("errors", max(run.errors for run in runs), 0))
    if AB.name in measured:
        bars.append(at_least("rate, x ab", ratio(measured, COCKPIT, AB.name, rate), 0.8))
    return show(title, described(measured), bars)


def memory() -> bool:
    """The worker's memory after a million requests and after five."""
    title = "memory from 1 M to 5 M requests, keep-alive, c=20"
    if lacking := lacking_nginx():
        return show(f"{title}: left out, {lacking}", [], [])
    print(f"{title} ...")
    sizes: dict[int, int] = {}
    done = 0

    def watch(run: LoadRun, seen: Run) -> None:
        nonlocal done
        done += seen.ticks.pop().completed if seen.ticks else 0
        at = done // MILLION
        if at and at not in sizes:
            sizes[at] = _resident(run.pids[0])

    with nginx() as site, neighbours(site.pid):
        # A little more than is looked at: the last tick comes when the worker is about to end.
        plan = LoadPlan(url=site.small, concurrency=20, requests=LAST + MILLION // 2)
        ours(plan, watch)
    lines = [f"{at} M requests: {size / 1e6:.2f} MB resident" for at, size in sorted(sizes.items())]
    grown = (sizes[5] - sizes[1]) / 1e6
    return show(title, lines, [at_most("growth", grown, 2.0, " MB")])


def _resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"process {pid} has no VmRSS")


def many() -> bool:
    """Five thousand connections at once."""
    title = f"{MANY} connections, keep-alive, {SMALL}-byte reply"
    if lacking := lacking_nginx():
        return show(f"{title}: left out, {lacking}", [], [])
    print(f"{title} ...")
    held: list[int] = []

    def go(site: Site, concurrency: int) -> Figure:
        run = ours(LoadPlan(url=site.small, concurrency=concurrency, requests=FOR_MANY))
        if concurrency == MANY:
            held.append(max(tick.connections for tick in run.ticks))
        return run.figure

    with nginx() as site, neighbours(site.pid):
        goes = {f"c={FEW}": lambda: go(site, FEW), f"c={MANY}": lambda: go(site, MANY)}
        if present([WRK]):
            goes[f"wrk c={MANY}"] = lambda: WRK.go(site.small, MANY, FOR_MANY)
        measured = rounds(goes)
    bars = [
        exactly("connections held", min(held), MANY),
        exactly("requests completed", min(figure.requests for figure in measured[f"c={MANY}"]), FOR_MANY),
        exactly("errors", max(figure.errors for figure in measured[f"c={MANY}"]), 0),
        at_most(f"CPU per request, x c={FEW}", ratio(measured, f"c={MANY}", f"c={FEW}", cost), 1.5),
    ]
    return show(title, described(measured), bars)


def workers() -> bool:
    """Two workers on both CPUs against one.

    The server lives on one of these CPUs, so the load is one that costs the generator more than the server: pages
    whose digest it checks. The rate can then grow until both CPUs are used up, by the server, the workers and whoever
    else is on this machine.
    """
    title = f"two workers on two CPUs against one, {MEDIUM:,}-byte reply checked by its digest, c=40"
    if lacking := lacking_nginx():
        return show(f"{title}: left out, {lacking}", [], [])
    if server_cpu() == generator_cpu():
        return show(f"{title}: left out, there is one CPU", [], [])
    print(f"{title} ...")
    used: list[float] = []

    def go(site: Site, count: int) -> Figure:
        digest = hashlib.sha256(b"x" * MEDIUM).hexdigest()
        expect = Expect(sha256=digest)
        plan = LoadPlan(url=site.medium, concurrency=40, requests=FOR_WORKERS, workers=count, expect=expect)
        others, served = Others(site.pid), cpu_of(site.pid)
        figure = ours(plan_on(plan, *(generator_cpu(), server_cpu())[:count])).figure
        others.note()
        if count == 2:
            own = (cpu_of(site.pid) - served + figure.cpu) / others.seconds
            used.append(own / max(2 - others.cpus, own))
        return figure

    with nginx() as site, neighbours(site.pid):
        measured = rounds({"one": lambda: go(site, 1), "two": lambda: go(site, 2)})
    bars = [
        exactly("requests completed", min(figure.requests for figure in measured["two"]), FOR_WORKERS),
        at_least("rate of two, x that of one", ratio(measured, "two", "one", rate), 1.2),
        at_least("share used of what others leave of both CPUs", median(used), 0.8),
    ]
    return show(title, described(measured), bars)
