"""A large session: one host with 200 short-lived workers, 2000 requests/s, for hours.

One minute is real (Apache, its workers, the probe, the load engine). The rest repeats it with growing counters.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent, HostSample, RunStarted
from cockpit.model.fold.fold import fold
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.model.tick import Tick
from cockpit.profiles.profile import Profile
from cockpit.recording.write_queue import LIMIT
from cockpit.recording.writer import RecordingWriter
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from tests.bench.servers import apache

WORKERS = 200
CONNECTIONS = 20
RATE = 2000.0
SECONDS = 60

_CHURN = f"""\
MinSpareServers {WORKERS}
MaxSpareServers {WORKERS}
ServerLimit 256
MaxRequestWorkers 256
MaxConnectionsPerChild 1000
KeepAlive Off
"""


async def _recorded(url: str, seconds: float) -> list[AnyEvent]:
    """Return the events of a session with `seconds` of load, from the engine and the probe."""
    plan = LoadPlan(url=url, rate=RATE, duration=seconds, keepalive=False, max_in_flight=CONNECTIONS * 10)
    host = HostConfig(name="web1", processes=("apache2",))
    found: list[AnyEvent] = []
    source = LiveSource(Profile(name="crowded", plan=plan, hosts=(host,)), Clock())
    session = Session(source, listen=found.extend)
    running = asyncio.create_task(session.run())

    def has_workers(state) -> bool:  # type: ignore[no-untyped-def]
        return "web1" in state.hosts and len(state.hosts["web1"].processes) > WORKERS

    await asyncio.wait_for(session.until(has_workers), 60)
    await source.load.start()
    await asyncio.wait_for(session.until(lambda state: state.runs == 1 and state.running is None), seconds + 60)
    await source.close()
    await running
    return found


def minute() -> list[AnyEvent]:
    """Record the real minute."""
    with apache(WORKERS, _CHURN) as site:
        return asyncio.run(_recorded(site.small, SECONDS))


def session(minute: Sequence[AnyEvent], seconds: float) -> Iterator[AnyEvent]:
    """Yield a session of `seconds`: its start and one run that repeats the real minute.

    Counters of the host continue. Its processes get new PIDs every minute: the numbers of spawned and exited processes
    stay realistic.
    """
    started = next(event.t for event in minute if isinstance(event, RunStarted))
    ticks = [event for event in minute if isinstance(event, Tick)]
    span = ticks[-1].t - ticks[0].start
    samples = [event for event in minute if isinstance(event, HostSample) and event.t >= started]
    repeated = sorted([*ticks, *samples], key=lambda event: event.t)
    yield from (event for event in minute if event.t <= started and not isinstance(event, Tick))
    for turn in range(int(seconds / span) + 1):
        for event in repeated:
            if event.t - started + turn * span > seconds:
                return
            yield later(event, turn, round(turn * span, 6), samples)


def later(event: Tick | HostSample, turn: int, seconds: float, samples: Sequence[HostSample]) -> Tick | HostSample:
    """Return an event of the minute, shifted by `turn` minutes."""
    t = round(event.t + seconds, 6)
    if isinstance(event, Tick):
        return replace(event, t=t, start=round(event.start + seconds, 6))
    first, last = samples[0].reading, samples[-1].reading
    now = event.reading

    def continued(name: str) -> Any:
        return _continued(getattr(now, name), getattr(first, name), getattr(last, name), turn)

    parents = {process.ppid for process in now.processes}
    processes = tuple(
        process
        if process.pid in parents
        else replace(process, pid=process.pid + 1000 * turn, start=process.start + int(seconds * 100))
        for process in now.processes
    )
    reading = replace(
        now,
        uptime=round(now.uptime + seconds, 2),
        wall=round(now.wall + seconds, 2),
        cpu=continued("cpu"),
        io=continued("io"),
        forks=now.forks + turn * (last.forks - first.forks),
        cores=tuple(_continued(*three, turn) for three in zip(now.cores, first.cores, last.cores, strict=True)),
        disks=_continued_devices(now.disks, first.disks, last.disks, turn),
        nets=_continued_devices(now.nets, first.nets, last.nets, turn),
        processes=processes,
    )
    return replace(event, t=t, reading=reading)


def _continued_devices(now: Any, first: Any, last: Any, turn: int) -> tuple[Any, ...]:
    """Continue the counters of devices that exist at the start and the end of the minute; leave others as they are."""
    begun, ended = ({device.name: device for device in devices} for devices in (first, last))
    return tuple(
        _continued(device, begun[device.name], ended[device.name], turn)
        if device.name in begun.keys() & ended.keys()
        else device
        for device in now
    )


def _continued(now: Any, first: Any, last: Any, turn: int) -> Any:
    """Return the counters after `turn` more minutes."""
    names = [name for name in now.__struct_fields__ if isinstance(getattr(now, name), int)]
    return replace(
        now, **{name: getattr(now, name) + turn * (getattr(last, name) - getattr(first, name)) for name in names}
    )


def recorded(path: Path, events: Iterable[AnyEvent]) -> State:
    """Write a recording as a session does, one batch per second; return its last state."""
    writer = RecordingWriter(path)
    state = State()
    for _, batch in groupby(events, key=lambda event: int(event.t)):
        in_second = list(batch)
        writer.record(in_second)
        for event in in_second:
            state = fold(state, event)
        writer.settle(state)
        while writer.backlog > LIMIT // 2:
            time.sleep(0.01)
    writer.close()
    if writer.trouble or writer.gaps:
        raise RuntimeError(writer.trouble or writer.gaps[0])
    return state
