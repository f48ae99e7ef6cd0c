"""Cost of many generators for cockpit: recorded ticks of 100 generators through topics of a real Dask cluster."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Sequence
from random import Random
from time import monotonic

from msgspec.structs import replace

from cockpit.cluster.dask_launcher import DaskLauncher
from cockpit.cluster.over_ssh import cluster_over_ssh
from cockpit.cluster.remote_generator import RemoteGenerator, RemoteWorker
from cockpit.load.pool import LoadRun
from cockpit.load.protocol import Assignment, Done, encode
from cockpit.model import events
from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent, RunStarted, Tick
from cockpit.model.fold import fold
from cockpit.model.hosts import GeneratorConfig
from cockpit.model.load import LoadPlan
from cockpit.model.state import State
from cockpit.recording.reader import Recording
from tests.bench.table import at_most, report_other_load, show
from tests.conftest import TESTS

GENERATORS, PROGRAMS, RATE = 100, 2, 10.0
SECONDS, START = 20.0, 3.0
DELAY = 0.003  # s, mean time from the end of a tick until it is sent
BAR_SHARE, BAR_ARRIVAL = 30.0, 100.0  # % of a core; p99 in ms
RECORDED = TESTS / "recordings" / "two-hosts.cockpit"


def generators_scale() -> bool:
    """CPU of cockpit for ten ticks/s per generator, and the time until a tick is in the state."""
    with report_other_load():
        title = f"{GENERATORS} generators, {RATE:g} ticks/s each, sent by {PROGRAMS} Dask workers"
        print(f"{title} ...")
        share, delays, ticks = asyncio.run(_measured())
    delays.sort()
    p50, p99 = (1000 * delays[int(len(delays) * part)] for part in (0.5, 0.99))
    lines = [f"{ticks} of {GENERATORS * RATE * SECONDS:.0f} ticks; delay p50 {p50:.1f} ms"]
    bars = [
        at_most("share of a core", share, BAR_SHARE, "%"),
        at_most("delay from the generator to the state, p99", p99, BAR_ARRIVAL, " ms"),
    ]
    return show(title, lines, bars)


async def _measured() -> tuple[float, list[float], int]:
    """Return CPU (% of a core), the delay of each tick (s), and the number of ticks."""
    # The Dask workers import `replay` from here.
    os.environ["PYTHONPATH"] = str(TESTS.parent)
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
    workers = [RemoteWorker(_assignment(plan, number), machine) for number, machine in enumerate(launcher.generators)]
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
    await asyncio.sleep(SECONDS)
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
    for instant in range(int((START + SECONDS + 1) * RATE)):
        for delay, place in sorted((random.expovariate(1 / DELAY), place) for place in places):
            time.sleep(max(0.0, second + instant / RATE + delay - monotonic()))
            now = monotonic()
            sent = replace(tick, t=now, start=now - 1 / RATE, run=1, worker=place, stage=0, warmup=False)
            log(place, events.encode(sent))
    for place in places:
        log(place, encode(Done("completed")))
        log(place, b"")


def _recorded() -> bytes:
    """Return the tick with most responses of a recorded run."""
    with Recording(RECORDED) as recording:
        ticks = [event for event in recording.events() if isinstance(event, Tick)]
    return events.encode(max(ticks, key=lambda tick: tick.completed))


def _assignment(plan: LoadPlan, number: int) -> Assignment:
    return Assignment(
        plan=plan,
        run=1,
        worker=number,
        concurrency=1,
        requests=None,
        address=("127.0.0.1", 80),
        workers=GENERATORS,
    )
