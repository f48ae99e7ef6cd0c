"""Many generators: load from four lab hosts vs this machine, and cockpit's cost for the ticks of 100 generators."""

import asyncio
import math
import os
import time
from collections.abc import Sequence
from random import Random
from statistics import median
from time import monotonic

from msgspec.structs import replace

from cockpit.cluster.dask_launcher import DaskLauncher
from cockpit.cluster.over_ssh import cluster_over_ssh
from cockpit.cluster.remote_generator import RemoteGenerator, RemoteWorker
from cockpit.load.http.protocol import Assignment, Done, encode
from cockpit.load.pool import LoadRun, launch
from cockpit.load.preflight import preflight
from cockpit.load.workers import LocalLauncher, WorkerLauncher
from cockpit.model import events
from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent, RunStarted
from cockpit.model.fold.fold import fold
from cockpit.model.host.samples import GeneratorConfig
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.model.tick import Tick
from cockpit.recording.reader import Recording
from tests.bench.measurement import CockpitRun
from tests.bench.table import Skipped, at_most, exactly, report_other_load, show
from tests.lab.cpus import generator_cpu
from tests.lab.generator_hosts import PYTHON, install_python
from tests.lab.keeper import REPOSITORY
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
GENERATORS, PROGRAMS, TICKS = 100, 2, 10.0
REPLAYED, START = 20.0, 3.0
DELAY = 0.003  # s, mean time from the end of a tick until it is sent
BAR_SHARE, BAR_ARRIVAL = 30.0, 100.0  # % of a core; p99 in ms
RECORDED = REPOSITORY / "tests" / "recordings" / "two-hosts.cockpit"


class TimedRun(CockpitRun):
    """A run with the delay (s) of each tick."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.arrivals: list[float] = []

    def emit(self, event: AnyEvent) -> None:
        super().emit(event)
        if isinstance(event, Tick):
            self.arrivals.append(self.clock.now() - event.t)

    @property
    def cost(self) -> float:
        """CPU/request (µs)."""
        return sum(tick.cpu for tick in self.ticks) / self.total("completed") * 1e6


def four_generators() -> bool:
    """Open load from four hosts: exact counts, on time, with the latencies and the cost of one machine."""
    title = f"open load, {RATE:g}/s for {SECONDS:g} s from {len(NAMES)} hosts vs one machine"
    if absent := missing():
        raise Skipped(f"the lab needs {', '.join(absent)}")
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
        exactly("errors", sum(run.errors for run in remote), 0),
        at_most("skew of the start", skew * 1e3, 5.0, " ms"),
        at_most("delay of a tick, p99", arrivals[int(0.99 * len(arrivals))] * 1e3, 100.0, " ms"),
        at_most("CPU/request, four hosts / one machine", median(costs), 1.03),
    ]
    bars += [
        at_most(f"p{percent:g} difference, x spread between runs", _difference(local, remote, percent), 1.0)
        for percent in _PERCENTILES
    ]
    return show(title, lines, bars)


async def _measured(lab: Lab, url: str) -> tuple[float, list[TimedRun], list[TimedRun]]:
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


async def _run(plan: LoadPlan, workers: int, launcher: WorkerLauncher) -> TimedRun:
    clock = Clock()
    measured = TimedRun(clock)
    launcher.attach(clock, measured.emit)
    plan = replace(plan, workers=workers)
    run = await launch(plan, 1, clock, measured.emit, await preflight(plan, launcher.capacity), launcher)
    await run.wait()
    return measured


def _difference(local: Sequence[TimedRun], remote: Sequence[TimedRun], percent: float) -> float:
    """Return the difference of the medians, relative to the larger range between equal runs."""
    here, there = ([run.merged("response").percentile(percent) for run in runs] for runs in (local, remote))
    spread = max(max(values) - min(values) for values in (here, there))
    return abs(median(there) - median(here)) / max(spread, _RESOLUTION)


def _words(runs: Sequence[TimedRun]) -> str:
    parts = [
        f"p{percent:g} {median(run.merged('response').percentile(percent) for run in runs) * 1e3:.2f} ms"
        for percent in _PERCENTILES
    ]
    return f"{', '.join(parts)}, {median(run.cost for run in runs):.1f} µs CPU/request"


def generators_scale() -> bool:
    """CPU of cockpit for ten ticks/s per generator, and the time until a tick is in the state."""
    with report_other_load():
        title = f"{GENERATORS} generators, {TICKS:g} ticks/s each, sent by {PROGRAMS} Dask workers"
        print(f"{title} ...")
        share, delays, ticks = asyncio.run(_replayed_by_workers())
    delays.sort()
    p50, p99 = (1000 * delays[int(len(delays) * part)] for part in (0.5, 0.99))
    lines = [f"{ticks} of {GENERATORS * TICKS * REPLAYED:.0f} ticks; delay p50 {p50:.1f} ms"]
    bars = [
        at_most("share of a core", share, BAR_SHARE, "%"),
        at_most("delay from the generator to the state, p99", p99, BAR_ARRIVAL, " ms"),
    ]
    return show(title, lines, bars)


async def _replayed_by_workers() -> tuple[float, list[float], int]:
    """Return CPU (% of a core), the delay of each tick (s), and the number of ticks."""
    # The Dask workers import `replay` from here.
    os.environ["PYTHONPATH"] = str(REPOSITORY)
    programs = [GeneratorConfig(name=f"program{number}", ssh=".") for number in range(PROGRAMS)]
    async with (
        cluster_over_ssh(programs, None) as (address, security),
        DaskLauncher(address, security, PROGRAMS) as launcher,
    ):
        return await _replayed(launcher)


async def _replayed(launcher: DaskLauncher) -> tuple[float, list[float], int]:
    clock, state = Clock(), State()
    delays: list[float] = []
    real = launcher.generators[0]
    addresses = [machine.address for machine in launcher.generators]
    client = launcher.client
    assert client is not None

    def emit(event: AnyEvent) -> None:
        nonlocal state
        if isinstance(event, Tick):
            delays.append(clock.now() - event.t)
        state = fold(state, event)

    plan = LoadPlan(url="http://127.0.0.1/", rate=1000.0, duration=3600.0)
    launcher.generators = [
        RemoteGenerator(f"gen{number}", addresses[number % PROGRAMS]) for number in range(GENERATORS)
    ]
    part = {"plan": plan, "run": 1, "concurrency": 1, "requests": None, "address": ("127.0.0.1", 80)}
    parts = [Assignment(**part, worker=number, workers=GENERATORS) for number in range(GENERATORS)]  # type: ignore[arg-type]
    workers = [RemoteWorker(part, machine) for part, machine in zip(parts, launcher.generators, strict=True)]
    for machine, worker in zip(launcher.generators, workers, strict=True):
        machine.expect([worker])
        machine.clock = real.clock
    emit(RunStarted(t=clock.now(), run=1, plan=plan, machines=tuple(machine.name for machine in launcher.generators)))
    run = LoadRun(plan, 1, clock, emit, workers, clock.now())
    sending = [
        client.submit(replay, launcher.topic, range(at, GENERATORS, PROGRAMS), _recorded(), workers=[address])
        for at, address in enumerate(addresses)
    ]
    await asyncio.sleep(START)
    delays.clear()
    began, used = time.monotonic(), time.process_time()
    await asyncio.sleep(REPLAYED)
    share = 100 * (time.process_time() - used) / (time.monotonic() - began)
    found = list(delays)
    await asyncio.gather(*sending)
    await run.wait()
    return share, found, len(found)


def replay(topic: str, places: Sequence[int], line: bytes) -> None:
    """Log the tick of each place ten times per second, then the end of its worker; runs on a Dask worker.

    As in a run, all places start and tick at the same instants, each with a delay of some milliseconds.
    """
    from distributed.worker import get_worker

    worker, random = get_worker(), Random(1)
    tick = events.decode(line)
    assert isinstance(tick, Tick)

    def log(place: int, line: bytes) -> None:
        worker.log_event(topic, {"place": place, "number": place, "line": line, "ending": ""})

    # Both programs run on this machine and share its clock.
    second = math.ceil(monotonic())
    for instant in range(int((START + REPLAYED + 1) * TICKS)):
        for delay, place in sorted((random.expovariate(1 / DELAY), place) for place in places):
            time.sleep(max(0.0, second + instant / TICKS + delay - monotonic()))
            now = monotonic()
            sent = replace(tick, t=now, start=now - 1 / TICKS, run=1, worker=place, stage=0, warmup=False)
            log(place, events.encode(sent))
    for place in places:
        log(place, encode(Done("completed")))
        log(place, b"")


def _recorded() -> bytes:
    """Return the tick with most responses of a recorded run."""
    with Recording(RECORDED) as recording:
        ticks = [event for event in recording.events() if isinstance(event, Tick)]
    return events.encode(max(ticks, key=lambda tick: tick.completed))
