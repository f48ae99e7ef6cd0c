"""Rates of cores, disks and interfaces as sar names them; what counters cannot have done is not drawn."""

from __future__ import annotations

import pytest

from cockpit.model.hosts import CpuCounters, IoCounters
from tests.model.hosts import disk, host_of, lost, net, sample


def test_a_disk_as_sar_has_it() -> None:
    host = host_of(sample(1, disks=(disk("sda", 100),)), sample(3, disks=(disk("sda", 150, busy=500, waited=200),)))
    [sda] = host.disks
    assert (sda.name, sda.tps, sda.wkb, sda.rkb) == ("sda", 25, 100, 0)
    assert (sda.areq_sz, sda.await_, sda.aqu_sz, sda.util) == (4, 4, 0.1, 25)


def test_a_disk_at_rest_took_no_time() -> None:
    host = host_of(sample(1, disks=(disk("sda", 100),)), sample(2, disks=(disk("sda", 100),)))
    assert (host.disks[0].tps, host.disks[0].await_, host.disks[0].areq_sz) == (0, 0, 0)


def test_interfaces_as_sar_has_them_and_their_sum_without_the_loopback() -> None:
    before = (net("lo"), net("eth0"), net("eth1", 5000))
    after = (net("lo", 9 << 20, 9 << 20), net("eth0", 2 << 20, 1 << 20), net("eth1", 5000 + 4096))
    host = host_of(sample(1, nets=before), sample(2, nets=after))
    assert [(each.name, each.rxkb, each.txkb) for each in host.nets] == [
        ("lo", 9216, 9216),
        ("eth0", 2048, 1024),
        ("eth1", 4, 0),
    ]
    assert host.point is not None
    assert host.point.net is not None
    assert (host.point.net.rxkb, host.point.net.rxpck, host.point.net.txkb) == (2052, 2052, 1024)


def test_cores() -> None:
    def cores(*busy: int, t: int) -> tuple[CpuCounters, ...]:
        return tuple(CpuCounters(each, 0, 0, 100 * t - each, 0, 0, 0, 0) for each in busy)

    host = host_of(sample(1, cores=cores(10, 20, t=1)), sample(2, cores=cores(10, 95, t=2)))
    assert [core and core.user for core in host.cores] == [0, 75]


@pytest.mark.parametrize("after", [5, 2**40], ids=["fell", "jumped"])
def test_a_counter_that_makes_no_sense_is_not_drawn(after: int) -> None:
    """Of the disk and the interface alone that it belongs to; what is a sum over it is not drawn either."""
    host = host_of(
        sample(1, disks=(disk("sda", 10), disk("sdb", 10)), nets=(net("eth0", 1 << 20), net("eth1", 1 << 20))),
        sample(2, disks=(disk("sda", after), disk("sdb", 12)), nets=(net("eth0", after << 10), net("eth1", 1 << 20))),
    )
    assert [each.name for each in host.disks] == ["sdb"]
    assert [each.name for each in host.nets] == ["eth1"]
    assert host.point is not None
    assert (host.point.io, host.point.net) == (None, None)
    assert host.point.cpu is not None


def test_disks_and_interfaces_come_and_go() -> None:
    both = sample(1, disks=(disk("sda", 10), disk("sdb", 10)), nets=(net("lo"), net("eth0", 10)))
    one = sample(2, disks=(disk("sda", 20),), nets=(net("lo"), net("wg0", 900)), io=IoCounters(0, 20, 0, 0, 160))
    again = sample(
        3,
        disks=(disk("sda", 30), disk("sdc", 5)),
        nets=(net("lo"), net("wg0", 900 + 1024)),
        io=IoCounters(0, 35, 0, 0, 280),
    )
    host = host_of(both, one)
    assert [each.name for each in host.disks] == ["sda"]
    assert [each.name for each in host.nets] == ["lo"]
    assert host.point is not None
    assert (host.point.io, host.point.net) == (None, None)
    host = host_of(both, one, again)
    assert [each.name for each in host.disks] == ["sda"]
    assert host.point is not None
    assert host.point.io is not None
    assert host.point.net is not None
    assert (host.point.io.wtps, host.point.net.rxkb) == (15, 1)


def test_io_wait_may_go_back_a_little() -> None:
    """The kernel says so itself; the other shares stand, and all make 100."""
    host = host_of(
        sample(1, cpu=CpuCounters(0, 0, 0, 50, 50, 0, 0, 0)), sample(2, cpu=CpuCounters(30, 0, 10, 110, 48, 0, 0, 0))
    )
    assert host.point is not None
    assert host.point.cpu is not None
    cpu = host.point.cpu
    assert (cpu.user, cpu.system, cpu.iowait, cpu.idle) == (30, 10, 0, 60)


@pytest.mark.parametrize(
    "after", [CpuCounters(5, 0, 0, 190, 0, 0, 0, 0), CpuCounters(20, 0, 0, 10**9, 0, 0, 0, 0)], ids=["fell", "jumped"]
)
def test_cpu_time_that_makes_no_sense_is_not_drawn(after: CpuCounters) -> None:
    host = host_of(sample(1, cpu=CpuCounters(20, 0, 0, 100, 0, 0, 0, 0)), sample(2, cpu=after, nets=(net("eth0"),)))
    assert host.point is not None
    assert host.point.cpu is None
    assert host.point.io is not None


def test_the_first_figures_after_a_gap_are_no_mean_over_it() -> None:
    host = host_of(sample(1), sample(2), lost(5), sample(20, nets=(net("eth0"),)), sample(21, nets=(net("eth0"),)))
    before, after_gap, last = host.points[-3:]
    assert before.cpu is not None
    assert (after_gap.cpu, after_gap.io, after_gap.spawned, after_gap.unseen) == (None, None, None, None)
    assert last.cpu is not None
    assert not host.gap


def test_a_host_that_was_started_anew_is_told_from_one_that_was_away() -> None:
    """Its uptime may have outgrown the one before."""
    away = host_of(sample(1), sample(2001))
    assert away.point is not None
    assert away.point.cpu is not None
    rebooted = host_of(sample(1), sample(2001, uptime=1500.0))
    assert rebooted.point is not None
    assert rebooted.point.cpu is None


def test_what_may_have_come_and_gone_unseen_is_told() -> None:
    host = host_of(sample(1, forks=100), sample(2, forks=107))
    assert host.point is not None
    assert host.point.unseen == 7
