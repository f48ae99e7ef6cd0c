"""Metrics of sar from kernel counters: rates, levels, means, maxima; no metric without its counter."""

from __future__ import annotations

import pytest

from cockpit.model import sar
from cockpit.model.host_window import join_windows
from cockpit.model.metrics import HOST_METRICS, host_metrics, is_host_metric
from tests.model.hosts import host_of, lost, reading, recovered, result_of, sample

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


GROUP = {
    "cgroup.cpu": 0,
    "cgroup.periods": 100,
    "cgroup.throttled": 10,
    "cgroup.quota": 1500,
    "cgroup.memory": 256,
    "cgroup.limit": 1024,
    "cgroup.waits_cpu": 0,
}


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
