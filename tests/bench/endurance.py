"""Scaling with the size of bodies and the number of requests, connections and workers."""

from __future__ import annotations

import hashlib
from pathlib import Path
from statistics import median

from cockpit.load.pool import LoadRun
from cockpit.model.load import Expect, LoadPlan
from tests.bench.measurement import CockpitRun, Measurement, plan_on, run_cockpit
from tests.bench.peers import AB, WRK
from tests.bench.servers import LARGE, MEDIUM, SMALL, Site, missing_nginx, nginx
from tests.bench.table import (
    OtherLoad,
    at_least,
    at_most,
    available,
    cost,
    cpu_of,
    exactly,
    rate,
    ratio,
    report_other_load,
    rounds,
    show,
    summary_lines,
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
    """Large bodies: all bytes are counted, at the rate of ab."""
    title = f"{LARGE:,}-byte body, c=100, n={BODIES}, a new connection each"
    if absent := missing_nginx():
        return show(f"{title}: skipped, {absent}", [], [])
    print(f"{title} ...")
    with nginx() as site, report_other_load(site.pid):
        plan = LoadPlan(url=site.large, concurrency=100, requests=BODIES, keepalive=False)
        runs: list[CockpitRun] = []

        def measure() -> Measurement:
            runs.append(run_cockpit(plan))
            return runs[-1].measurement

        generators = {COCKPIT: measure}
        if available([AB]):
            generators[AB.name] = lambda: AB.run(site.large, 100, BODIES)
        measured = rounds(generators)
    counted = {run.total("body_bytes") for run in runs}
    bars = [exactly("body bytes counted", count, BODIES * LARGE) for count in counted]
    bars.append(exactly("errors", max(run.errors for run in runs), 0))
    if AB.name in measured:
        bars.append(at_least("rate, x ab", ratio(measured, COCKPIT, AB.name, rate), 0.8))
    return show(title, summary_lines(measured), bars)


def memory() -> bool:
    """Memory of the worker after one million and after five million requests."""
    title = "memory from 1 M to 5 M requests, keep-alive, c=20"
    if absent := missing_nginx():
        return show(f"{title}: skipped, {absent}", [], [])
    print(f"{title} ...")
    sizes: dict[int, int] = {}
    done = 0

    def watch(run: LoadRun, recorded: CockpitRun) -> None:
        nonlocal done
        done += recorded.ticks.pop().completed if recorded.ticks else 0
        at = done // MILLION
        if at and at not in sizes:
            sizes[at] = _resident(run.pids[0])

    with nginx() as site, report_other_load(site.pid):
        # More requests than are sampled: the last tick arrives when the worker ends.
        plan = LoadPlan(url=site.small, concurrency=20, requests=LAST + MILLION // 2)
        run_cockpit(plan, watch)
    lines = [f"{at} M requests: {size / 1e6:.2f} MB resident" for at, size in sorted(sizes.items())]
    grown = (sizes[5] - sizes[1]) / 1e6
    return show(title, lines, [at_most("growth", grown, 2.0, " MB")])


def _resident(pid: int) -> int:
    """Return the resident memory of a process (bytes)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"process {pid} has no VmRSS")


def many() -> bool:
    """Keep 5000 connections open."""
    title = f"{MANY} connections, keep-alive, {SMALL}-byte response"
    if absent := missing_nginx():
        return show(f"{title}: skipped, {absent}", [], [])
    print(f"{title} ...")
    connections: list[int] = []

    def measure(site: Site, concurrency: int) -> Measurement:
        run = run_cockpit(LoadPlan(url=site.small, concurrency=concurrency, requests=FOR_MANY))
        if concurrency == MANY:
            connections.append(max(tick.connections for tick in run.ticks))
        return run.measurement

    with nginx() as site, report_other_load(site.pid):
        generators = {f"c={FEW}": lambda: measure(site, FEW), f"c={MANY}": lambda: measure(site, MANY)}
        if available([WRK]):
            generators[f"wrk c={MANY}"] = lambda: WRK.run(site.small, MANY, FOR_MANY)
        measured = rounds(generators)
    bars = [
        exactly("open connections", min(connections), MANY),
        exactly("requests completed", min(each.requests for each in measured[f"c={MANY}"]), FOR_MANY),
        exactly("errors", max(each.errors for each in measured[f"c={MANY}"]), 0),
        at_most(f"CPU per request, x c={FEW}", ratio(measured, f"c={MANY}", f"c={FEW}", cost), 1.5),
    ]
    return show(title, summary_lines(measured), bars)


def workers() -> bool:
    """Two workers on both CPUs vs one worker.

    The server runs on one of these CPUs. The generator checks the digest of each page, which costs it more than the
    server. The rate can then grow until the server, the workers and other load use both CPUs.
    """
    title = f"two workers on two CPUs vs one, {MEDIUM:,}-byte response checked by its digest, c=40"
    if absent := missing_nginx():
        return show(f"{title}: skipped, {absent}", [], [])
    if server_cpu() == generator_cpu():
        return show(f"{title}: skipped, the machine has one CPU", [], [])
    print(f"{title} ...")
    used: list[float] = []

    def measure(site: Site, count: int) -> Measurement:
        digest = hashlib.sha256(b"x" * MEDIUM).hexdigest()
        expect = Expect(sha256=digest)
        plan = LoadPlan(url=site.medium, concurrency=40, requests=FOR_WORKERS, workers=count, expect=expect)
        others, served = OtherLoad(site.pid), cpu_of(site.pid)
        measurement = run_cockpit(plan_on(plan, *(generator_cpu(), server_cpu())[:count])).measurement
        others.stop()
        if count == 2:
            own = (cpu_of(site.pid) - served + measurement.cpu) / others.seconds
            used.append(own / max(2 - others.cpus, own))
        return measurement

    with nginx() as site, report_other_load(site.pid):
        measured = rounds({"one": lambda: measure(site, 1), "two": lambda: measure(site, 2)})
    bars = [
        exactly("requests completed", min(each.requests for each in measured["two"]), FOR_WORKERS),
        at_least("rate, two / one", ratio(measured, "two", "one", rate), 1.2),
        at_least("used share of both CPUs without other load", median(used), 0.8),
    ]
    return show(title, summary_lines(measured), bars)
