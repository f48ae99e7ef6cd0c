"""CPU time of the generator's machine during a session, and other load of a host on this machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.load.generator import boot_id, read_machine
from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent, HostChanged
from cockpit.model.fold import fold_all
from cockpit.model.generators import GeneratorSample
from cockpit.model.hosts import HostConfig
from cockpit.model.load import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.recording.reader import Recording, last_state
from cockpit.recording.writer import RecordingWriter
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from tests.servers import http_server


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


# The first line of input is its name; after the second it uses 0.5 s of CPU.
HOG = """\
import sys, time
open("/proc/self/comm", "w").write(sys.stdin.readline().strip())
print("ready", flush=True)
sys.stdin.readline()
end = time.process_time() + 0.5
while time.process_time() < end:
    pass
time.sleep(600)
"""
BUSY = "import time\nwhile time.process_time() < {seconds}: pass\ntime.sleep({rest})"


def test_own_time_includes_workers_and_exited_children() -> None:
    before = read_machine(0.0, ())
    burn(0.5)
    here = read_machine(1.0, ())
    # User and system time of process and children are counted in ticks of 10 ms each.
    assert here.own - before.own >= 0.4
    with subprocess.Popen([sys.executable, "-c", BUSY.format(seconds=0.5, rest=0)]) as child:
        child.wait()
    ended = read_machine(2.0, (child.pid,))
    assert ended.own - here.own >= 0.4
    with subprocess.Popen([sys.executable, "-c", BUSY.format(seconds=0.2, rest=600)]) as live:
        try:
            deadline = time.monotonic() + 60
            while read_machine(3.0, (live.pid,)).own - read_machine(3.0, ()).own < 0.1:
                assert time.monotonic() < deadline
                time.sleep(0.02)
        finally:
            live.kill()


def test_machine_times_cover_all_cpus() -> None:
    times = read_machine(0.0, ()).times
    total = sum(getattr(times, name) for name in times.__struct_fields__)
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    assert total == pytest.approx(uptime * (os.cpu_count() or 1), rel=0.1)


async def test_session_records_generator_machine(tmp_path: Path) -> None:
    with http_server() as base:
        profile = Profile(name="x", plan=LoadPlan(url=f"{base}/", concurrency=2, duration=60.0))
        source = LiveSource(profile, Clock())
        session = Session(source, RecordingWriter(tmp_path / "s.cockpit"))
        running = asyncio.create_task(session.run())
        await source.load.start()
        state = await asyncio.wait_for(
            session.until(lambda state: any(second.other is not None for second in state.seconds)), 60
        )
        assert state.started is not None and state.started.boot == boot_id()
        await source.close()
        await running
    with Recording(tmp_path / "s.cockpit") as recording:
        events = list(recording.events())
        assert fold_all(events) == session.state
        assert last_state(recording).generator == session.state.generator
    samples = [event for event in events if isinstance(event, GeneratorSample)]
    assert len(samples) >= 2
    # CPU time is counted in steps of 10 ms.
    assert samples[-1].own >= samples[0].own > 0


@contextmanager
def named(name: str) -> Iterator[Callable[[], None]]:
    """Run a process with this name; the yielded function makes it use 0.5 s of CPU."""
    with subprocess.Popen([sys.executable, "-c", HOG], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        stdin = process.stdin

        def send(line: str) -> None:
            stdin.write(f"{line}\n".encode())
            stdin.flush()

        try:
            send(name)
            assert process.stdout.readline() == b"ready\n"
            yield lambda: send("go")
        finally:
            process.kill()


async def watched(hosts: tuple[HostConfig, ...], go: Callable[[], None]) -> list[AnyEvent]:
    """Return the events of a session that watched the hosts while the first host's process used 0.5 s of CPU."""
    events: list[AnyEvent] = []
    profile = Profile(name="x", plan=LoadPlan(url="http://127.0.0.1:1/"), hosts=hosts)
    source = LiveSource(profile, Clock())
    session = Session(source, listen=events.extend)
    running = asyncio.create_task(session.run())
    names = [host.name for host in hosts]
    await asyncio.wait_for(
        session.until(lambda state: all(name in state.hosts and len(state.hosts[name].points) > 1 for name in names)),
        120,
    )
    go()
    await asyncio.wait_for(session.until(lambda state: state.hosts[hosts[0].name].claim.used >= 0.4), 120)
    seen = {name: len(host.points) + 2 for name, host in session.state.hosts.items()}
    await asyncio.wait_for(
        session.until(lambda state: all(len(host.points) >= seen[name] for name, host in state.hosts.items())), 120
    )
    await source.close()
    await running
    return events


def test_processes_of_host_on_same_machine_are_no_other_load() -> None:
    """Both hosts are this machine. Processes watched on the first host are no other load of the second, since both have
    the same boot id; without it they are, and the difference is the CPU time of the hog."""
    hog, quiet = (f"{kind}{os.getpid() % 100_000}" for kind in ("hog", "quiet"))
    hosts = (HostConfig(name="hogs", processes=(hog,)), HostConfig(name="web1", processes=(quiet,)))
    with named(hog) as go, named(quiet):
        events = asyncio.run(watched(hosts, go))

    def other_load(events: list[AnyEvent]) -> float:
        """CPU seconds of other load on web1."""
        host = fold_all(events).hosts["web1"]
        assert host.facts is not None
        spans = [now.t - then.t for then, now in zip(host.points, host.points[1:], strict=False)]
        shares = [point.other or 0.0 for point in host.points[1:]]
        return host.facts.cpus * sum(share / 100 * span for share, span in zip(shares, spans, strict=True))

    apart = [
        replace(event, facts=replace(event.facts, boot=""))
        if isinstance(event, HostChanged) and event.facts and event.host == "hogs"
        else event
        for event in events
    ]
    # The probe of the hog's host uses CPU, too. On a busy machine a share that is corrected upwards is capped at 100%:
    # more may be subtracted than the hog used.
    assert fold_all(events).hosts["web1"].claims["hogs"] == pytest.approx(0.5, abs=0.3)
    assert other_load(apart) - other_load(events) >= 0.3
