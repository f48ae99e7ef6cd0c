"""Rates of cores, disks and interfaces with sar's names; implausible counters have no rate."""

from __future__ import annotations

import pytest

from cockpit.model.hosts import CpuCounters, IoCounters
from tests.model.hosts import disk, host_of, lost, net, sample


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
    host = host_of(sample(1, forks=100), sample(2, forks=107))
    assert host.point.unseen == 7
