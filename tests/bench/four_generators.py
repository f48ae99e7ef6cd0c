"""Load from four lab hosts over SSH and Dask vs the same load from this machine: counts, timing and cost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from statistics import median

from cockpit.cluster.dask_launcher import DaskLauncher
from cockpit.cluster.over_ssh import cluster_over_ssh
from cockpit.load.pool import launch
from cockpit.load.preflight import preflight
from cockpit.load.workers import LocalLauncher, WorkerLauncher
from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent, Tick
from cockpit.model.histogram import Histogram
from cockpit.model.hosts import GeneratorConfig
from cockpit.model.load import LoadPlan
from tests.bench.table import at_most, exactly, report_other_load, show
from tests.lab.cpus import generator_cpu
from tests.lab.generator_hosts import PYTHON, install_python
from tests.lab.lab import Lab
from tests.lab.requirements import missing

NAMES = ("app1", "origin1", "proxy1", "web1")
RATE, SECONDS, ROUNDS = 10_000.0, 10.0, 4
PORT = 8099
# One worker, no logs, no files on disk.
_NGINX = f"""
worker_processes 1; pid /run/bench.pid; error_log /dev/null;
events {{ worker_connections 16000; }}
http {{ access_log off; keepalive_requests 1000000000; server {{ listen {PORT}; return 200 "{"x" * 92}"; }} }}
"""
_PERCENTILES = (50.0, 99.0, 99.9)
# Latency differences (s) that are from the operating system's scheduler.
_RESOLUTION = 0.0005


class Measured:
    """A run: its ticks, and the delay (s) of each."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.ticks: list[Tick] = []
        self.arrivals: list[float] = []

    def emit(self, event: AnyEvent) -> None:
        if isinstance(event, Tick):
            self.ticks.append(event)
            self.arrivals.append(self.clock.now() - event.t)

    def total(self, name: str) -> int:
        return sum(getattr(tick, name) for tick in self.ticks)

    @property
    def cost(self) -> float:
        """CPU/request (µs)."""
        return sum(tick.cpu for tick in self.ticks) / self.total("completed") * 1e6

    @property
    def latency(self) -> Histogram:
        return Histogram.merged(tick.response for tick in self.ticks)


def four_generators() -> bool:
    """Open load from four hosts: exact counts, on time, with the latencies and the cost of one machine."""
    title = f"open load, {RATE:g}/s for {SECONDS:g} s from {len(NAMES)} hosts vs one machine"
    if absent := missing():
        return show(f"{title}: skipped, the lab needs {', '.join(absent)}", [], [])
    print(f"{title} ...")
    with Lab.start(*NAMES) as lab, report_other_load(lab.web1.pid):
        install_python(lab, NAMES)
        lab.web1.run(f"printf %s '{_NGINX}' >/tmp/bench.conf && nginx -c /tmp/bench.conf")
        url = f"http://{lab.web1.address}:{PORT}/"
        skew, local, remote = asyncio.run(_measured(lab, url))
    due = RATE * SECONDS
    deviation = max(abs(run.total("sent") / due - 1) for run in remote) * 100
    arrivals = sorted(arrival for run in remote for arrival in run.arrivals)
    costs = [there.cost / here.cost for here, there in zip(local, remote, strict=True)]
    lines = [f"{name}: {_words(runs)}" for name, runs in (("one machine", local), ("four hosts", remote))]
    bars = [
        at_most("deviation from the requested rate", deviation, 0.1, "%"),
        exactly("errors", sum(sum(tick.errors.values()) for run in remote for tick in run.ticks), 0),
        at_most("skew of the start", skew * 1e3, 5.0, " ms"),
        at_most("delay of a tick, p99", arrivals[int(0.99 * len(arrivals))] * 1e3, 100.0, " ms"),
        at_most("CPU/request, four hosts / one machine", median(costs), 1.03),
    ]
    bars += [
        at_most(f"p{percent:g} difference, x spread between runs", _difference(local, remote, percent), 1.0)
        for percent in _PERCENTILES
    ]
    return show(title, lines, bars)


async def _measured(lab: Lab, url: str) -> tuple[float, list[Measured], list[Measured]]:
    """Return the skew of the start (s: clock error plus delay of the first requests), the local and the remote runs.

    Runs alternate: this machine with four workers, four hosts with one worker each.
    """
    plan = LoadPlan(url=url, rate=RATE, duration=SECONDS, cpus=(generator_cpu(),))
    machines = [GeneratorConfig(name=name, ssh=name, python=PYTHON) for name in NAMES]
    local, remote = [], []
    async with (
        cluster_over_ssh(machines, lab.ssh_config) as (address, security),
        DaskLauncher(address, security, len(NAMES)) as launcher,
    ):
        for _ in range(ROUNDS):
            local.append(await _run(plan, len(NAMES), LocalLauncher()))
            remote.append(await _run(plan, 1, launcher))
        # The hosts share this machine's clock: the true offset is 0.
        errors = [abs(machine.clock.best.offset) for machine in launcher.generators]
    # Half of the requests of the first tick start within that delay.
    first = [tick for run in remote for tick in run.ticks if tick.start < run.ticks[0].start + 0.05]
    late = max(tick.lag.percentile(50) for tick in first)
    return max(errors) + late, local, remote


async def _run(plan: LoadPlan, workers: int, launcher: WorkerLauncher) -> Measured:
    clock = Clock()
    measured = Measured(clock)
    launcher.attach(clock, measured.emit)
    plan = LoadPlan(url=plan.url, rate=plan.rate, duration=plan.duration, cpus=plan.cpus, workers=workers)
    run = await launch(plan, 1, clock, measured.emit, await preflight(plan, launcher.capacity), launcher)
    await run.wait()
    return measured


def _difference(local: Sequence[Measured], remote: Sequence[Measured], percent: float) -> float:
    """Return the difference of the medians, relative to the larger range between equal runs."""
    here, there = ([run.latency.percentile(percent) for run in runs] for runs in (local, remote))
    spread = max(max(values) - min(values) for values in (here, there))
    return abs(median(there) - median(here)) / max(spread, _RESOLUTION)


def _words(runs: Sequence[Measured]) -> str:
    parts = [
        f"p{percent:g} {median(run.latency.percentile(percent) for run in runs) * 1e3:.2f} ms"
        for percent in _PERCENTILES
    ]
    return f"{', '.join(parts)}, {median(run.cost for run in runs):.1f} µs CPU/request"
