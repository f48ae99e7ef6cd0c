"""Synthetic readings of a host: idle unless values are given."""

from collections.abc import Iterable

from msgspec.structs import replace

from cockpit.metrics.results import RunResult, run_result
from cockpit.model.events import AnyEvent, HostChanged, HostSample, RunEnded, RunStarted, SessionStarted
from cockpit.model.fold.fold import fold_all
from cockpit.model.host.samples import (
    CpuCounters,
    DiskCounters,
    HostConfig,
    HostFacts,
    HostReading,
    IoCounters,
    MemCounters,
    NetCounters,
    ProcessCounters,
)
from cockpit.model.host.state import HostState
from cockpit.model.load.plan import LoadPlan

FACTS = HostFacts(hostname="web1", kernel="6.1", cpus=1, hz=100, page=4096)
START = SessionStarted(t=0, wall=0, version="0", name="x", hosts=(HostConfig(name="web1"),))
UP = HostChanged(t=0, host="web1", condition="up", facts=FACTS)
BOOTED = 1000.0  # seconds before the session


def reading(t: float, **values: object) -> HostReading:
    idle = HostReading(
        uptime=BOOTED + t,
        wall=5000.0 + t,
        cpu=CpuCounters(0, 0, 0, int(100 * t), 0, 0, 0, 0),
        memory=MemCounters(2000, 400, 1200, 50, 600, 100, 30, 0, 0),
        io=IoCounters(0, 0, 0, 0, 0),
        load=(0.1, 0.2, 0.3),
        forks=100,
    )
    return replace(idle, **values)


def sample(t: float, **values: object) -> HostSample:
    return HostSample(t=t, host="web1", round_trip=0.001, reading=reading(t, **values))


def process(pid: int, start: int = 100, stat: str = "S", utime: int = 0, rss: int = 8 << 20) -> ProcessCounters:
    return ProcessCounters(pid, 1, start, stat, "apache2", utime, 0, 1, 10 << 20, rss, 6 << 20, "apache2 -k start")


def lost(t: float) -> HostChanged:
    return HostChanged(t=t, host="web1", condition="lost", detail="no answer")


def recovered(t: float) -> HostChanged:
    return HostChanged(t=t, host="web1", condition="up", facts=FACTS)


def disk(name: str, writes: int = 0, busy: int = 0, waited: int = 0) -> DiskCounters:
    """Counters of a disk; each write has 4 KiB."""
    return DiskCounters(name, 0, writes, 0, 0, writes * 8, 0, 0, waited, 0, busy, waited)


def net(name: str, received: int = 0, sent: int = 0) -> NetCounters:
    """Counters of an interface: bytes, in packets of 1 KiB."""
    return NetCounters(name, received, received // 1024, 0, 0, sent, sent // 1024, 0, 0)


def host_of(*events: AnyEvent) -> HostState:
    return fold_all([START, UP, *events]).hosts["web1"]


def result_of(before: HostSample, during: Iterable[AnyEvent], after: HostSample) -> RunResult:
    """Return the result of a run from just after the sample `before` to just before the sample `after`."""
    started = RunStarted(t=before.t, run=1, plan=LoadPlan(url="http://a/", requests=1))
    ended = RunEnded(t=after.t, run=1, reason="completed")
    return run_result(fold_all([START, UP, before, started, *during, ended, after]), 1)
