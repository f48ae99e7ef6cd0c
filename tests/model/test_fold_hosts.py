"""Hosts in the state: shares and rates as in sar, free and ps; processes; tails and status pages; restarts."""

import re

import pytest
from msgspec.structs import replace

from cockpit.analysis.words.timeline import marker_sign, marker_text
from cockpit.metrics.results import run_result
from cockpit.metrics.values import host_metrics, metric_value
from cockpit.model import events as ev
from cockpit.model.fold.fold import fold, fold_all
from cockpit.model.fold.panes import TAIL_LINES
from cockpit.model.host.samples import (
    CpuCounters,
    HostConfig,
    IoCounters,
    MemCounters,
    ProcessCounters,
    StatusKind,
    StatusPage,
)
from cockpit.model.host.state import HostState, StatusPane
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.report.run import run_text
from tests.model.hosts import FACTS, START, UP, disk, host_of, lost, net, process, result_of, sample


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


def test_lost_host_leaves_gap() -> None:
    state = fold_all([START, UP, sample(1), lost(5)])
    assert (state.hosts["web1"].condition, state.hosts["web1"].since) == ("lost", 5)
    assert [marker.kind for marker in state.markers] == ["gap"]


PAGES: tuple[StatusKind, ...] = ("apache", "squid", "tomcat")
CONFIG = HostConfig(
    name="web1",
    tail=("tail -F log", "sar -b 1"),
    status=tuple(StatusPage(kind=kind, url="http://localhost/") for kind in PAGES),
)
BEGUN: list[ev.AnyEvent] = [
    ev.SessionStarted(t=0, wall=0, version="0", name="x", hosts=(CONFIG,)),
    ev.HostChanged(t=0, host="web1", condition="up", facts=FACTS),
]


def folded(*events: ev.AnyEvent) -> HostState:
    return fold_all([*BEGUN, *events]).hosts["web1"]


def text(t: float, *lines: str, tail: int = 0, skipped: int = 0, continues: bool = False) -> ev.TailText:
    return ev.TailText(t=t, host="web1", tail=tail, lines=lines, skipped=skipped, continues=continues)


def access(t: float, **values: object) -> ev.AccessCounts:
    return ev.AccessCounts(t=t, host="web1", tail=0, seconds=1, **values)


def read(t: float, page: int = 0, detail: str = "", **values: float) -> ev.StatusRead:
    named = {name.replace("_", " "): value for name, value in values.items()}
    return ev.StatusRead(t=t, host="web1", page=page, values=named, detail=detail)


def test_lines_are_kept_and_partial_lines_replaced() -> None:
    host = folded(
        text(1, "a", "10 %"),
        text(2, "20 %", "b", continues=True, skipped=3),
        text(2, "other", tail=1),
        ev.TailChanged(t=3, host="web1", tail=1, condition="ended", detail="exit status 1"),
    )
    first, second = host.tails
    assert [(line.t, line.text) for line in first.lines] == [(1, "a"), (2, "20 %"), (2, "b")]
    assert (first.skipped, first.command) == (3, "tail -F log")
    assert (second.condition, second.detail, second.lines[0].text) == ("ended", "exit status 1", "other")
    host = folded(*(text(t, *(f"{t}.{n}" for n in range(100))) for t in range(20)))
    assert len(host.tails[0].lines) == TAIL_LINES
    assert host.tails[0].lines[-1].text == "19.99"


@pytest.mark.parametrize(
    "event",
    [
        text(1, "a", tail=7),
        read(1, page=9),
        ev.TailText(t=1, host="x", tail=0, lines=()),
        ev.StatusRead(t=1, host="x", page=0),
    ],
)
def test_events_of_unconfigured_panes_are_ignored(event: ev.AnyEvent) -> None:
    assert folded(event).tails == folded().tails


def page(*events: ev.AnyEvent, of: int = 0) -> StatusPane:
    return folded(*events).pages[of]


def test_counters_become_rates_and_gauges_stay() -> None:
    pane = page(read(1, Total_Accesses=100, BusyWorkers=3), read(3, Total_Accesses=150, BusyWorkers=5))
    assert pane.rates == {"Total Accesses": 25}
    assert (pane.values["BusyWorkers"], pane.t) == (5, 3)
    readings = [
        ev.StatusRead(
            t=t, host="web1", page=2, values={"requestCount": t, "ajp-nio-8009 requestCount": 2 * t, "maxTime": 9}
        )
        for t in (1.0, 2.0)
    ]
    assert page(*readings, of=2).rates == {"requestCount": 1, "ajp-nio-8009 requestCount": 2}


def test_failed_page_keeps_previous_values() -> None:
    pane = page(read(1, Total_Accesses=100), read(2, detail="404: is mod_status enabled?"))
    assert (pane.detail, pane.t, pane.values) == ("404: is mod_status enabled?", 1, {"Total Accesses": 100})
    pane = page(read(1, Total_Accesses=100), read(2, detail="gone"), read(3, Total_Accesses=110))
    assert (pane.detail, pane.rates) == ("", {"Total Accesses": 5})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"Total_Accesses": 100.0}, {"Total_Accesses": 40.0}),
        ({"Total_Accesses": 100.0, "Uptime": 60.0}, {"Total_Accesses": 140.0, "Uptime": 2.0}),
    ],
)
def test_counter_reset_has_no_rate(old: dict[str, float], new: dict[str, float]) -> None:
    assert page(read(1, **old), read(2, **new)).rates == {}


def run(*events: ev.AnyEvent) -> State:
    """A run from 1 s to 9 s."""
    inside = sorted([*(sample(t) for t in (1, 3, 5, 7, 9)), *events], key=lambda event: event.t)
    plan = LoadPlan(url="http://web1/", requests=1)
    load = [ev.RunStarted(t=1, run=1, plan=plan), *inside, ev.Tick(t=9, run=1, worker=0, start=1, completed=1, sent=1)]
    return fold_all([*BEGUN, *load, ev.RunEnded(t=9, run=1, reason="completed")])


def test_averages_over_run_window() -> None:
    state = run(
        read(2, BusyWorkers=2, IdleWorkers=8, Total_Accesses=100),
        read(4, BusyWorkers=4, IdleWorkers=6, Total_Accesses=200),
        read(8, BusyWorkers=4, IdleWorkers=6, Total_Accesses=800),
        ev.StatusRead(t=2, host="web1", page=1, values={"client_http.hits": 10}),
        ev.StatusRead(t=4, host="web1", page=1, values={"client_http.hits": 30}),
        ev.StatusRead(t=6, host="web1", page=1, values={"client_http.hits": 5}),
        ev.StatusRead(t=8, host="web1", page=1, values={"client_http.hits": 15}),
    )
    result = run_result(state, 1)
    assert result is not None
    assert metric_value(result, "web1.apache.busy") == pytest.approx((3 * 2 + 4 * 4) / 6)
    assert metric_value(result, "web1.apache.idle") == pytest.approx((7 * 2 + 6 * 4) / 6)
    assert metric_value(result, "web1.apache.requests") == pytest.approx(700 / 6)
    # The interval with the counter reset is excluded.
    assert metric_value(result, "web1.squid.hits") == pytest.approx(30 / 4)
    assert metric_value(result, "web1.tomcat.busy") is None


def test_access_log_rates_and_hit_ratio_over_run_window() -> None:
    state = run(
        access(1.5, lines=900, statuses={200: 900}),
        ev.AccessCounts(
            t=3, host="web1", tail=0, seconds=1, lines=100, statuses={200: 98, 502: 2}, lookups=100, hits=50
        ),
        access(4, lines=300, statuses={200: 300}, lookups=300, hits=300),
        ev.AccessCounts(t=4, host="web1", tail=1, seconds=1, lines=70, statuses={200: 70}),
        ev.AccessCounts(t=5, host="other", tail=0, seconds=1, lines=1, statuses={200: 1}),
    )
    result = run_result(state, 1)
    assert result is not None
    assert metric_value(result, "web1.access.requests") == pytest.approx(200)
    assert metric_value(result, "web1.access.errors") == pytest.approx(1)
    assert metric_value(result, "web1.access.hit_ratio") == pytest.approx(100 * 350 / 400)
    assert [counts.t for counts in state.hosts["web1"].tails[0].counts] == [1.5, 3, 4]
    state = run(access(3, lines=100, statuses={200: 100}))
    result = run_result(state, 1)
    assert result is not None and metric_value(result, "web1.access.hit_ratio") is None


def workers(parent: int, start: int, *pids: int) -> tuple[ProcessCounters, ...]:
    """A parent process with this start time (clock ticks), and its workers."""
    return process(parent, start), *(replace(process(pid, start + 1), ppid=parent) for pid in pids)


def restarts(*samples: ev.HostSample) -> list[tuple[float, str]]:
    state = fold_all(BEGUN)
    for event in samples:
        state = fold(state, event)
    return [(marker.t, marker_text(marker)) for marker in state.markers if marker.kind == "restart"]


def test_new_parent_process_is_a_restart() -> None:
    old, new = workers(12, 100, 13, 14), workers(34, 100_200, 35, 36)
    assert restarts(sample(1, processes=old), sample(2, processes=()), sample(4, processes=new)) == [
        (pytest.approx(2), "web1 apache2 restarted: pid 12 → 34")
    ]
    old = workers(12, 100, 13)
    short_lived = workers(33, 100_200, 34)
    permanent = workers(34, 100_201, 35)
    found = restarts(sample(1, processes=old), sample(2.05, processes=short_lived), sample(4, processes=permanent))
    assert [text for _, text in found] == ["web1 apache2 restarted: pid 12 → 34"]
    first = workers(12, 100, 13, 14)
    replaced = workers(12, 100, 23, 24)
    second = (*replaced, *workers(50, 100_100, 51))
    assert restarts(*(sample(t, processes=p) for t, p in ((1, first), (2, replaced), (4, second), (5, replaced)))) == []
    assert restarts(sample(1), sample(4, processes=workers(34, 100_200, 35))) == []
    # A worker with a child is no server.
    nested = [(*workers(12, 100, pid), replace(process(pid + 1, 10 * pid), ppid=pid)) for pid in (13, 23)]
    assert restarts(*(sample(t, processes=p) for t, p in zip((1, 4), nested, strict=True))) == []
    state = fold_all([*BEGUN, *(read(t, ParentServerMPMGeneration=g) for t, g in ((1, 0), (2, 0), (3, 1), (4, 0)))])
    assert [(marker.t, marker_sign(marker), marker_text(marker)) for marker in state.markers] == [
        (3, "R", "web1 apache: reloaded, generation 0 → 1")
    ]


def test_disk_rates_match_sar() -> None:
    host = host_of(sample(1, disks=(disk("sda", 100),)), sample(3, disks=(disk("sda", 150, busy=500, waited=200),)))
    [sda] = host.disks
    assert (sda.name, sda.tps, sda.wkb, sda.rkb) == ("sda", 25, 100, 0)
    assert (sda.areq_sz, sda.await_, sda.aqu_sz, sda.util) == (4, 4, 0.1, 25)
    host = host_of(sample(1, disks=(disk("sda", 100),)), sample(2, disks=(disk("sda", 100),)))
    assert (host.disks[0].tps, host.disks[0].await_, host.disks[0].areq_sz) == (0, 0, 0)


def test_interface_rates_match_sar_and_sum_excludes_loopback() -> None:
    before = (net("lo"), net("eth0"), net("eth1", 5000))
    after = (net("lo", 9 << 20, 9 << 20), net("eth0", 2 << 20, 1 << 20), net("eth1", 5000 + 4096))
    host = host_of(sample(1, nets=before), sample(2, nets=after))
    assert [(interface.name, interface.rxkb, interface.txkb) for interface in host.nets] == [
        ("lo", 9216, 9216),
        ("eth0", 2048, 1024),
        ("eth1", 4, 0),
    ]
    assert (host.point.net.rxkb, host.point.net.rxpck, host.point.net.txkb) == (2052, 2052, 1024)


def test_sum_excludes_interfaces_whose_traffic_passes_another_one() -> None:
    names = ("eth0", "docker0", "veth1a", "br-1f", "bond0", "eth0.7")
    host = host_of(sample(1, nets=tuple(map(net, names))), sample(2, nets=tuple(net(name, 1 << 20) for name in names)))
    assert host.point.net.rxkb == 1024 and len(host.nets) == len(names)
    host = host_of(sample(1, nets=(net("wg0"),)), sample(2, nets=(net("wg0", 1 << 20),)))
    assert host.point.net.rxkb == 1024, "the only one"


def test_rates_per_core_and_small_decrease_of_iowait() -> None:

    def cores(*busy: int, t: int) -> tuple[CpuCounters, ...]:
        return tuple(CpuCounters(ticks, 0, 0, 100 * t - ticks, 0, 0, 0, 0) for ticks in busy)

    host = host_of(sample(1, cores=cores(10, 20, t=1)), sample(2, cores=cores(10, 95, t=2)))
    assert [core and core.user for core in host.cores] == [0, 75]
    # The kernel documents that iowait may decrease; the other shares are kept, and all sum to 100%.
    host = host_of(
        sample(1, cpu=CpuCounters(0, 0, 0, 50, 50, 0, 0, 0)), sample(2, cpu=CpuCounters(30, 0, 10, 110, 48, 0, 0, 0))
    )
    assert host.point.cpu is not None
    cpu = host.point.cpu
    assert (cpu.user, cpu.system, cpu.iowait, cpu.idle) == (30, 10, 0, 60)


@pytest.mark.parametrize("after", [5, 2**40], ids=["fell", "jumped"])
def test_implausible_counter_has_no_rate(after: int) -> None:
    """Only the affected disk, the affected interface and the sums over them have no rates."""
    host = host_of(
        sample(1, disks=(disk("sda", 10), disk("sdb", 10)), nets=(net("eth0", 1 << 20), net("eth1", 1 << 20))),
        sample(2, disks=(disk("sda", after), disk("sdb", 12)), nets=(net("eth0", after << 10), net("eth1", 1 << 20))),
    )
    assert [device.name for device in host.disks] == ["sdb"]
    assert [interface.name for interface in host.nets] == ["eth1"]
    assert (host.point.io, host.point.net) == (None, None)
    assert host.point.cpu is not None


def test_counters_of_devices_that_appear_or_disappear_have_no_rates() -> None:
    first = sample(1, disks=(disk("sda", 10), disk("sdb", 10)), nets=(net("lo"), net("eth0", 10)))
    second = sample(2, disks=(disk("sda", 20),), nets=(net("lo"), net("wg0", 900)), io=IoCounters(0, 20, 0, 0, 160))
    third = sample(
        3,
        disks=(disk("sda", 30), disk("sdc", 5)),
        nets=(net("lo"), net("wg0", 900 + 1024)),
        io=IoCounters(0, 35, 0, 0, 280),
    )
    host = host_of(first, second)
    assert [device.name for device in host.disks] == ["sda"]
    assert [interface.name for interface in host.nets] == ["lo"]
    assert (host.point.io, host.point.net) == (None, None)
    host = host_of(first, second, third)
    assert [device.name for device in host.disks] == ["sda"]
    assert (host.point.io.wtps, host.point.net.rxkb) == (15, 1)


@pytest.mark.parametrize(
    "after", [CpuCounters(5, 0, 0, 190, 0, 0, 0, 0), CpuCounters(20, 0, 0, 10**9, 0, 0, 0, 0)], ids=["fell", "jumped"]
)
def test_implausible_cpu_time_has_no_rate(after: CpuCounters) -> None:
    host = host_of(sample(1, cpu=CpuCounters(20, 0, 0, 100, 0, 0, 0, 0)), sample(2, cpu=after, nets=(net("eth0"),)))
    assert host.point.cpu is None
    assert host.point.io is not None


def test_rates_after_gap_reboot_and_pause() -> None:
    host = host_of(sample(1), sample(2), lost(5), sample(20, nets=(net("eth0"),)), sample(21, nets=(net("eth0"),)))
    before, after_gap, last = host.points[-3:]
    assert before.cpu is not None
    assert (after_gap.cpu, after_gap.io, after_gap.spawned, after_gap.unseen) == (None, None, None, None)
    assert last.cpu is not None
    assert not host.gap
    # Even if the uptime after the reboot is longer than before.
    paused = host_of(sample(1), sample(2001))
    assert paused.point.cpu is not None
    rebooted = host_of(sample(1), sample(2001, uptime=1500.0))
    assert rebooted.point.cpu is None
    assert host_of(sample(1), sample(2, uptime=sample(1).reading.uptime)).point.cpu is None
    host = host_of(sample(1, forks=100), sample(2, forks=107))
    assert host.point.unseen == 7


def test_memory_of_a_host_without_memavailable_is_as_free_computes_it() -> None:
    memory = MemCounters(2000, 400, None, 50, 600, 100, 30, 0, 0)
    samples = [sample(t, memory=memory) for t in (1, 2, 3, 4)]
    assert host_of(*samples).point.memory.available is None
    assert host_of(*samples).point.memory.used == 850 * 1024
    result = result_of(samples[0], samples[1:3], samples[3])
    found = host_metrics(result.hosts["web1"])
    assert {found[f"memory.{part}used"] for part in ("", "mean.", "start.")} == {850 * 1024}
    assert not [name for name in found if name.startswith("memory.") and "available" in name]
    lines = [line for line in run_text(result).splitlines() if line.startswith(("  memory", "  mean"))]
    # Columns have two spaces between them, a unit one.
    (head, row) = (re.split(" {2,}", line.strip()) for line in lines)
    assert "available" not in head and len(row) == len(head)
