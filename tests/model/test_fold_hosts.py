"""Counters become shares and rates as in sar, free and ps; processes are identified by pid and start time."""

from cockpit.model import events as ev
from cockpit.model.fold import fold_all
from cockpit.model.hosts import CpuCounters, IoCounters
from cockpit.model.load import LoadPlan
from cockpit.model.metrics import host_metrics, metric_value, run_result
from tests.model.hosts import START, UP, host_of, lost, process, sample


def loaded(t: float, busy: int = 0, writes: int = 0) -> ev.HostSample:
    return sample(
        t, cpu=CpuCounters(busy, 0, 0, int(100 * t) - busy, 0, 0, 0, 0), io=IoCounters(0, writes, 0, 0, writes * 8)
    )


def test_cpu_io_and_memory() -> None:
    first, point = host_of(loaded(1), loaded(2, busy=25, writes=12)).points
    assert (first.cpu, first.io, first.spawned) == (None, None, None)
    assert (point.cpu.user, point.cpu.idle) == (25.0, 75.0)
    assert (point.io.tps, point.io.wtps, point.io.bwrtn) == (12, 12, 96)
    assert (point.memory.used, point.memory.buff_cache) == (800 * 1024, 750 * 1024)
    assert host_of(sample(1), sample(2), sample(3, uptime=2.0)).point.cpu is None, "it was rebooted"


def test_spawned_exited_and_defunct_processes() -> None:
    first = (process(1), process(2), process(3))
    # 2 became defunct, 3 exited and its pid was reused, 4 is new.
    second = (process(1), process(2, stat="Z"), process(3, start=900), process(4))
    host = host_of(sample(1, processes=first), sample(2, processes=second))
    assert (host.spawned, host.exited) == (2, 2)
    assert (host.point.spawned, host.point.exited, host.point.defunct) == (2.0, 2.0, 1)
    assert [process.new for process in host.processes] == [False, False, True, True]
    once = host_of(sample(1, processes=(process(2),)), sample(2, processes=(process(2, stat="Z"),)), sample(3))
    assert (once.spawned, once.exited) == (0, 1)


def test_cpu_and_memory_of_processes() -> None:
    host = host_of(sample(1, processes=(process(1, utime=500),)), sample(3, processes=(process(1, utime=600),)))
    assert host.processes[0].cpu == 50.0
    host = host_of(sample(1, processes=tuple(process(pid) for pid in range(10))))
    assert (host.point.rss, host.point.unshared) == (80 << 20, 20 << 20)


def test_averages_cover_only_the_run() -> None:
    samples = [loaded(t, busy) for t, busy in ((1, 0), (2, 10), (3, 20), (4, 30), (5, 130))]
    run = ev.RunStarted(t=1.5, run=1, plan=LoadPlan(url="http://a/", requests=1))
    ended = ev.RunEnded(t=3.5, run=1, reason="completed")
    result = run_result(fold_all([START, UP, samples[0], run, *samples[1:3], ended, *samples[3:]]), 1)
    assert host_metrics(result.hosts["web1"])["cpu.user"] == 10.0
    assert metric_value(result, "web1.cpu.idle") == 90.0
    assert metric_value(result, "web2.cpu.idle") is None


def test_lost_host_leaves_gap() -> None:
    state = fold_all([START, UP, sample(1), lost(5)])
    assert (state.hosts["web1"].condition, state.hosts["web1"].since) == ("lost", 5)
    assert [marker.kind for marker in state.markers] == ["gap"]
