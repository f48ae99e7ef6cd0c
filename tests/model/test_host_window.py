"""Means over a run, coverage with gaps, I/O at start and end, and metrics of sar."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.metrics.results import run_result, runs_result
from cockpit.metrics.values import HOST_METRICS, host_metrics, is_host_metric, metric_value
from cockpit.model.events import AnyEvent, HostSample, RunEnded, RunStarted
from cockpit.model.fold.fold import fold_all
from cockpit.model.host import sar
from cockpit.model.host.samples import CpuCounters, IoCounters, MemCounters, ProcessCounters
from cockpit.model.host.state import HostWindow
from cockpit.model.host.window import join_windows
from cockpit.model.load.plan import LoadPlan
from tests.data import data_of
from tests.model.hosts import START, UP, disk, host_of, lost, net, process, reading, recovered, result_of, sample

DATA = data_of(__file__)


def metrics_of(*events: AnyEvent) -> dict[str, float]:
    """Return the host's metrics of a run; the first and last events are the samples just before and after the run."""
    first, *during, last = events
    assert isinstance(first, HostSample)
    assert isinstance(last, HostSample)
    result = result_of(first, during, last)
    return host_metrics(result.hosts["web1"], result.seconds)


def test_counter_means_are_exact() -> None:
    """The mean is the counters' difference over the run, even if the sampling intervals are uneven."""
    found = metrics_of(
        sample(0, cpu=CpuCounters(0, 0, 0, 0, 0, 0, 0, 0), disks=(disk("sda"),), nets=(net("eth0"),)),
        sample(1, cpu=CpuCounters(90, 0, 0, 10, 0, 0, 0, 0), disks=(disk("sda", 30, 900, 60),), nets=(net("eth0"),)),
        sample(
            4,
            cpu=CpuCounters(100, 0, 20, 280, 0, 0, 0, 0),
            disks=(disk("sda", 40, 1000, 120),),
            nets=(net("eth0", 4 << 20),),
        ),
    )
    assert (found["cpu.user"], found["cpu.system"], found["cpu.idle"]) == (25, 5, 70)
    assert (found["disk.sda.tps"], found["disk.sda.util"], found["disk.sda.await"]) == (10, 25, 3)
    assert (found["net.eth0.rxkb"], found["net.rxkb"]) == (1024, 1024)
    assert found["coverage"] == 100


def test_levels_are_time_weighted_means() -> None:
    def at(t: float, available: int, load: float, *rss: int) -> HostSample:
        memory = MemCounters(2000, 400, available, 50, 600, 100, 30, 0, 0)
        processes = tuple(process(pid, rss=size << 20) for pid, size in enumerate(rss))
        return sample(t, memory=memory, load=(load, 0.0, 0.0), processes=processes, running=3)

    found = metrics_of(at(0, 1000, 0.0, 8), at(1, 1000, 2.0, 8, 8), at(4, 400, 2.0, 8, 12))
    assert found["memory.mean.available"] == pytest.approx((1000 * 1 + 700 * 3) / 4 * 1024)
    assert (found["memory.start.available"], found["memory.available"]) == (1000 * 1024, 400 * 1024)
    assert found["load.1"] == pytest.approx((1 * 1 + 2 * 3) / 4)
    assert found["load.running"] == 3
    assert found["processes.mean"] == pytest.approx((1.5 * 1 + 2 * 3) / 4)
    assert found["processes.rss"] == pytest.approx((12 * 1 + 18 * 3) / 4 * (1 << 20))
    assert found["processes.unshared"] == pytest.approx((3 * 1 + 6 * 3) / 4 * (1 << 20))
    assert "processes.pss" not in found


def test_processes_are_counted_with_their_cpu_and_memory() -> None:
    # CPU of a new process counts from its start, that of an exited process until its last sample.

    def at(t: float, *used: tuple[int, int, int]) -> HostSample:
        rows = tuple(
            ProcessCounters(pid, 1, 100, "S", "apache2", user, system, 1, 10 << 20, 8 << 20, 6 << 20, "apache2")
            for pid, user, system in used
        )
        return sample(t, processes=rows)

    found = metrics_of(at(0, (1, 500, 100)), at(2, (1, 600, 120), (2, 40, 20)), at(4, (2, 60, 20), (3, 0, 60)))
    # 100 ticks/s, 4 s: 100 + 40 + 20 of user time, 20 + 20 + 60 of system time.
    assert (found["processes.user"], found["processes.system"], found["processes.cpu"]) == (40, 25, 65)
    assert (found["processes.rss_each"], found["processes.unshared_each"]) == (8 << 20, 2 << 20)
    found = metrics_of(
        sample(0, forks=100, processes=(process(1), process(2))),
        sample(1, forks=110, processes=(process(1), process(3), process(4))),
        sample(2, forks=112, processes=(process(1), process(3, stat="Z"))),
    )
    assert (found["processes.spawned"], found["processes.exited"], found["processes.defunct"]) == (2, 3, 1)
    assert found["processes.unseen"] == 10


def test_io_of_first_and_last_seconds() -> None:
    # The host writes 100 blocks/s for 6 s, none for 20 s, then 10 blocks/s for 6 s.
    written = [min(t, 6) * 100 + max(0, t - 26) * 10 for t in range(33)]
    found = metrics_of(*(sample(t, io=IoCounters(0, blocks // 8, 0, 0, blocks)) for t, blocks in enumerate(written)))
    assert (found["io.start.bwrtn"], found["io.end.bwrtn"]) == (100, 10)
    assert found["io.bwrtn"] == pytest.approx(660 / 32)
    found = metrics_of(*(sample(t, io=IoCounters(0, 0, 0, 0, blocks)) for t, blocks in enumerate([0, 80, 80])))
    assert (found["io.start.bwrtn"], found["io.end.bwrtn"]) == (80, 0)
    assert "io.start.bwrtn" not in metrics_of(sample(0), sample(2001, uptime=1500.0)), "the host rebooted"
    result = result_of(sample(0), (sample(t / 100) for t in range(1, 5000)), sample(50))
    window = result.hosts["web1"]
    assert len(window.opening) + len(window.closing) < 50


def test_gap_reduces_coverage() -> None:
    # Counters include the gap; levels cover only the sampled time.
    busy = CpuCounters(300, 0, 0, 700, 0, 0, 0, 0)
    found = metrics_of(
        sample(0, load=(1.0, 0.0, 0.0), cpu=CpuCounters(0, 0, 0, 0, 0, 0, 0, 0)),
        sample(2, load=(1.0, 0.0, 0.0), cpu=CpuCounters(0, 0, 0, 200, 0, 0, 0, 0)),
        lost(3),
        recovered(7),
        sample(8, load=(9.0, 0.0, 0.0), cpu=CpuCounters(300, 0, 0, 500, 0, 0, 0, 0)),
        sample(10, load=(9.0, 0.0, 0.0), cpu=busy),
    )
    assert found["coverage"] == 40
    assert found["cpu.user"] == 30
    assert found["load.1"] == 5
    result = result_of(sample(0), (sample(2), lost(3)), sample(10))
    assert metric_value(result, "web1.coverage") == 20
    assert result.hosts["web1"].covered == 2
    busy, idle = CpuCounters(100, 0, 0, 0, 0, 0, 0, 0), CpuCounters(0, 0, 0, 0, 0, 0, 0, 0)
    found = metrics_of(
        sample(0, cpu=idle),
        sample(1, cpu=busy),
        sample(4, uptime=1.0, cpu=idle, forks=1),
        sample(5, uptime=2.0, cpu=busy, forks=2),
    )
    assert found["cpu.user"] == 100
    assert found["coverage"] == 40


def test_several_runs_are_covered_and_ended_as_the_worst_of_them() -> None:
    events: list[AnyEvent] = [START, UP]
    for second in range(31):
        events += [sample(second)]
        if second in (0, 20):
            events.append(RunStarted(t=second, run=second // 20 + 1, plan=LoadPlan(url="http://a/", requests=1)))
        if second in (10, 30):
            events.append(RunEnded(t=second, run=second // 20 + 1, reason="completed"))
    state = fold_all(events)
    runs = [found for number in (1, 2) if (found := run_result(state, number)) is not None]
    assert [metric_value(one, "web1.coverage") for one in (*runs, runs_result(runs))] == [100, 100, 100]
    run = result_of(sample(0), (sample(2),), sample(4))
    ends = [replace(run, reason=reason) for reason in ("stopped", "failed", "completed")]
    assert [runs_result(some).reason for some in (ends, ends[::2], ends[2:])] == ["failed", "stopped", "completed"]


def test_names_of_disks_and_interfaces_are_metrics() -> None:
    names = ("disk.sda.util", "net.eth0.rxkb", "disk.nvme0n1.await", "net.eth0.100.drops", "load.1")
    assert all(map(is_host_metric, names))
    assert not any(map(is_host_metric, ("disk.util", "net.eth0", "disk.sda.rxkb", "cpu.sda.user", "")))


@given(busy=st.lists(st.integers(0, 100), min_size=2, max_size=20), cut=st.integers(1, 19))
def test_joined_segments_equal_whole_run(busy: list[int], cut: int) -> None:
    """The means are independent of the split of a run into segments."""
    samples = []
    spent = 0
    for t, more in enumerate((0, *busy)):
        spent += more
        cpu = CpuCounters(spent, 0, 0, 100 * t - spent, 0, 0, 0, 0)
        samples.append(HostSample(t=t, host="web1", round_trip=0, reading=reading(t, cpu=cpu, load=(more, 0.0, 0.0))))
    cut = min(cut, len(busy) - 1)

    def window(part: list[HostSample]) -> HostWindow:
        return result_of(part[0], part[1:-1], part[-1]).hosts["web1"]

    whole = host_metrics(window(samples))
    parts = host_metrics(join_windows(window(samples[: cut + 1]), window(samples[cut:])))
    assert {name: pytest.approx(value) for name, value in whole.items() if "io." not in name} == {
        name: value for name, value in parts.items() if "io." not in name
    }
    assert whole["cpu.user"] == pytest.approx(sum(busy) / len(busy))


def run_between(idle_before: bool, rest: float) -> HostWindow:
    """A run from 2 s to 4 s on a host with 1200 KiB available, 900 KiB from 3 s on; then samples for `rest` s."""

    def at(t: float) -> HostSample:
        return sample(t, memory=MemCounters(2000, 400, 1200 - 300 * (t >= 3), 50, 600, 100, 30, 0, 0))

    started = RunStarted(t=2.1, run=1, plan=LoadPlan(url="http://a/", requests=1))
    before = [at(1), at(2)] if idle_before else [at(2)]
    ended = RunEnded(t=4.5, run=1, reason="completed")
    after = [at(t) for t in range(5, 5 + round(rest))]
    state = fold_all([START, UP, *before, started, at(3), at(4), ended, *after])
    return state.segments[0].hosts["web1"]


def test_idle_host_before_and_after_run() -> None:
    window = run_between(idle_before=True, rest=3)
    found = host_metrics(window)
    assert (found["memory.before.available"], found["memory.after.available"]) == (1200 * 1024, 900 * 1024)
    assert found["memory.before.used"] == 800 * 1024
    assert found["cpu.before.idle"] == found["cpu.after.idle"] == 100
    assert window.last.t == 5, "samples after the run are not part of it"
    assert window.seconds == 3
    window = run_between(idle_before=False, rest=1)
    assert (window.before, window.after) == ({}, {})
    assert not any(".before." in name or ".after." in name for name in host_metrics(window))
    plan = LoadPlan(url="http://a/", requests=1)
    first = [sample(1), RunStarted(t=1.5, run=1, plan=plan), sample(2), RunEnded(t=2.5, run=1, reason="completed")]
    soon = [sample(3), RunStarted(t=3.5, run=2, plan=plan), sample(4)]
    later = [sample(3), sample(4), RunStarted(t=4.5, run=2, plan=plan), sample(5)]
    assert not fold_all([START, UP, *first, *soon]).segments[1].hosts["web1"].before
    state = fold_all([START, UP, *first, *later])
    assert state.segments[1].hosts["web1"].before == state.segments[0].hosts["web1"].after != {}


PAGING = {"pgpgin": 1000, "pgfault": 50_000, "pgsteal_kswapd": 10, "pgsteal_direct": 5, "pgsteal_proactive": 1}
PRESSURE = {"cpu.some": 1_000_000, "io.some": 0, "io.full": 0}


def increased(counters: dict[str, int], **added: int) -> dict[str, int]:
    return {name: value + added.get(name.replace(".", "_"), 0) for name, value in counters.items()}


def test_rates_of_counters_and_pressure() -> None:
    old = reading(10, counters=PAGING, forks=100)
    new = reading(14, counters=increased(PAGING, pgpgin=400, pgsteal_kswapd=4, pgsteal_proactive=8), forks=108)
    found = sar.rates(old, new, 4)
    assert (found["paging.pgpgin"], found["paging.fault"], found["paging.pgsteal"]) == (100, 0, 3)
    assert found["tasks.proc"] == 2
    old = reading(10, counters=PRESSURE)
    found = sar.rates(old, reading(12, counters=increased(PRESSURE, cpu_some=500_000, io_some=2_000_100)), 2)
    assert (found["pressure.scpu"], found["pressure.sio"], found["pressure.fio"]) == (25, 100, 0)
    assert "pressure.smem" not in found, "the kernel has no such counter"
    counters = {"loops": 10, "loop_us": 9000}
    found = sar.rates(reading(10, counters=counters), reading(12, counters={"loops": 12, "loop_us": 11_500}), 2)
    assert found["speed.cpu"] == pytest.approx(800)
    # The probe began anew, or the loop was not over.
    for after in ({"loops": 1, "loop_us": 900}, counters):
        assert "speed.cpu" not in sar.rates(reading(10, counters=counters), reading(12, counters=after), 2)


GROUP = DATA["group"]


def test_control_group_of_server() -> None:
    after = increased(GROUP, cgroup_cpu=3_000_000, cgroup_periods=20, cgroup_throttled=5, cgroup_waits_cpu=500_000)
    found = sar.rates(reading(10, counters=GROUP), reading(12, counters=after), 2)
    assert (found["cgroup.cpu"], found["cgroup.throttled"], found["cgroup.scpu"]) == (150, 25, 25)
    idle = sar.rates(reading(10, counters=GROUP), reading(12, counters=GROUP), 2)
    assert (idle["cgroup.cpu"], idle["cgroup.throttled"]) == (0, 0)
    levels = sar.levels(reading(0, counters=GROUP))
    assert [levels[f"cgroup.{name}"] for name in ("quota", "kbmemory", "kblimit", "memory")] == [150, 256, 1024, 25]
    unlimited = sar.levels(reading(0, counters=GROUP | {"cgroup.quota": 0, "cgroup.limit": 0}))
    assert {name for name in unlimited if name.startswith("cgroup.")} == {"cgroup.kbmemory"}


@pytest.mark.parametrize("after", [{"pgfault": 49_999}, {"pgfault": 2**62}, {}], ids=["fell", "jumped", "gone"])
def test_implausible_counter_has_no_rate(after: dict[str, int]) -> None:
    old, new = reading(10, counters=PAGING), reading(11, counters=after)
    assert "paging.fault" not in sar.rates(old, new, 1)


def test_levels_match_sar_and_their_names_are_valid_in_thresholds() -> None:
    counters = {"runnable": 3, "tasks": 200, "TCP.tw": 9, "Slab": 150, "Committed_AS": 600, "SwapCached": 4}
    found = sar.levels(reading(0, counters=counters))
    assert (found["queue.runq_sz"], found["queue.plist_sz"], found["sockets.tcp_tw"]) == (2, 200, 9)
    # Of 2000 KiB 400 are free, 50 buffers, 600 cached, 150 slab.
    assert (found["ram.kbmemused"], found["ram.memused"], found["ram.commit"]) == (800, 40, 30)
    assert (found["swap.kbswpused"], found["swap.swpused"]) == (0, 0), "a host without swap"
    assert "sockets.totsck" not in found
    assert "ram.kbdirty" not in found
    assert set(sar.METRICS) <= set(HOST_METRICS)
    assert all(is_host_metric(name) for name in (*sar.METRICS, "accept.8080"))
    assert not is_host_metric("accept.http")
    assert all(name.replace(".", "").replace("_", "").isalnum() for name in sar.METRICS)


def test_state_has_rates_of_last_interval_but_not_over_gap() -> None:
    counted = [increased(PAGING, pgpgin=100 * t) for t in range(12)]
    host = host_of(*(sample(t, counters=counted[t], accept={80: t}) for t in (1, 2)))
    assert host.sar["paging.pgpgin"] == 100
    assert host.sar["accept.80"] == 2
    host = host_of(sample(1, counters=counted[1]), lost(3), recovered(10), sample(11, counters=counted[11]))
    assert "paging.pgpgin" not in host.sar
    assert "ram.kbmemfree" in host.sar


def test_mean_and_maximum_of_segment() -> None:
    samples = [
        sample(0, counters=increased(PAGING), accept={80: 0}),
        sample(1, counters=increased(PAGING, pgpgin=300), accept={80: 8}),
        sample(4, counters=increased(PAGING, pgpgin=300), accept={80: 0}),
    ]
    result = result_of(samples[0], samples[1:2], samples[2])
    window = result.hosts["web1"]
    found = host_metrics(window, result.seconds)
    assert (found["paging.pgpgin"], window.highest["paging.pgpgin"]) == (75, 300)
    assert (found["accept.80"], window.highest["accept.80"]) == (4, 8)
    assert window.highest["cpu.idle"] == 100
    assert window.highest["memory.mean.total"] == 2000 * 1024
    assert join_windows(window, window).highest == window.highest
