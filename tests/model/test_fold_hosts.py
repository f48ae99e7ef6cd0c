"""Counters become shares and rates as in sar, free and ps; processes are identified by pid and start time."""

import msgspec

from cockpit.model.events import HostChanged, HostSample, RunEnded, RunStarted, SessionStarted
from cockpit.model.fold import fold_all
from cockpit.model.host_state import HostState
from cockpit.model.hosts import (
    CpuCounters,
    HostConfig,
    HostFacts,
    HostReading,
    IoCounters,
    MemCounters,
    ProcessCounters,
)
from cockpit.model.load import LoadPlan
from cockpit.model.metrics import host_metrics, metric_value, run_result
from cockpit.model.state import State

FACTS = HostFacts(hostname="web1", kernel="6.1", cpus=1, hz=100, page=4096)
START = SessionStarted(t=0, wall=0, version="0", name="x", hosts=(HostConfig(name="web1"),))


def process(pid: int, start: int = 100, stat: str = "S", utime: int = 0) -> ProcessCounters:
    return ProcessCounters(pid, 1, start, stat, "apache2", utime, 0, 1, 10 << 20, 8 << 20, 6 << 20, "apache2 -k start")


def sample(t: float, busy: int = 0, writes: int = 0, processes: tuple[ProcessCounters, ...] = ()) -> HostSample:
    reading = HostReading(
        uptime=1000.0 + t,
        wall=5000.0 + t,
        cpu=CpuCounters(busy, 0, 0, int(100 * t) - busy, 0, 0, 0, 0),
        memory=MemCounters(2000, 400, 1200, 50, 600, 100, 30, 0, 0),
        io=IoCounters(0, writes, 0, 0, writes * 8),
        load=(0.1, 0.2, 0.3),
        forks=100,
        processes=processes,
    )
    return HostSample(t=t, host="web1", round_trip=0.001, reading=reading)


def host_of(*samples: HostSample) -> HostState:
    return fold_all([START, HostChanged(t=0, host="web1", condition="up", facts=FACTS), *samples]).hosts["web1"]


def test_cpu_io_and_memory() -> None:
    point = host_of(sample(1), sample(2, busy=25, writes=12)).point
    assert point is not None
    assert point.cpu is not None
    assert (point.cpu.user, point.cpu.idle) == (25.0, 75.0)
    assert point.io is not None
    assert (point.io.tps, point.io.wtps, point.io.bwrtn) == (12, 12, 96)
    assert (point.memory.used, point.memory.buff_cache) == (800 * 1024, 750 * 1024)


def test_first_sample_has_no_rates() -> None:
    point = host_of(sample(1, busy=20)).point
    assert point is not None
    assert (point.cpu, point.io, point.spawned) == (None, None, None)


def test_spawned_exited_and_defunct_processes() -> None:
    first = (process(1), process(2), process(3))
    # 2 became defunct, 3 exited and its pid was reused, 4 is new.
    second = (process(1), process(2, stat="Z"), process(3, start=900), process(4))
    host = host_of(sample(1, processes=first), sample(2, processes=second))
    assert (host.spawned, host.exited) == (2, 2)
    assert host.point is not None
    assert (host.point.spawned, host.point.exited, host.point.defunct) == (2.0, 2.0, 1)
    assert [process.new for process in host.processes] == [False, False, True, True]


def test_exit_is_counted_once() -> None:
    host = host_of(sample(1, processes=(process(2),)), sample(2, processes=(process(2, stat="Z"),)), sample(3))
    assert (host.spawned, host.exited) == (0, 1)


def test_process_cpu_covers_the_interval() -> None:
    host = host_of(sample(1, processes=(process(1, utime=500),)), sample(3, processes=(process(1, utime=600),)))
    assert host.processes[0].cpu == 50.0


def test_shared_memory_is_counted_once() -> None:
    host = host_of(sample(1, processes=tuple(process(pid) for pid in range(10))))
    assert host.point is not None
    assert (host.point.rss, host.point.unshared) == (80 << 20, 20 << 20)


def test_reboot_has_no_cpu_rates() -> None:
    after = sample(3)
    rebooted = msgspec.structs.replace(after, reading=msgspec.structs.replace(after.reading, uptime=2.0))
    point = host_of(sample(1), sample(2), rebooted).point
    assert point is not None
    assert point.cpu is None


def run_over(*samples: HostSample) -> State:
    plan = LoadPlan(url="http://a/", requests=1)
    return fold_all(
        [
            START,
            HostChanged(t=0, host="web1", condition="up", facts=FACTS),
            samples[0],
            RunStarted(t=1.5, run=1, plan=plan),
            *samples[1:-2],
            RunEnded(t=3.5, run=1, reason="completed"),
            *samples[-2:],
        ]
    )


def test_averages_cover_only_the_run() -> None:
    state = run_over(sample(1), sample(2, busy=10), sample(3, busy=20), sample(4, busy=30), sample(5, busy=130))
    result = run_result(state, 1)
    assert result is not None
    assert host_metrics(result.hosts["web1"])["cpu.user"] == 10.0
    assert metric_value(result, "web1.cpu.idle") == 90.0
    assert metric_value(result, "web2.cpu.idle") is None


def test_lost_host_leaves_gap() -> None:
    up = HostChanged(t=0, host="web1", condition="up", facts=FACTS)
    state = fold_all([START, up, sample(1), HostChanged(t=5, host="web1", condition="lost", detail="no answer")])
    assert state.hosts["web1"].condition == "lost"
    assert state.hosts["web1"].since == 5
    assert [marker.kind for marker in state.markers] == ["gap"]
