"""Shares and rates from two samples of a host, by the names of sar, free and vmstat.

A counter that fell, wrapped or jumped beyond what hardware can do gives no rate: None, or left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import msgspec

from cockpit.model import sar
from cockpit.model.host_state import CpuShare, DiskRates, IoRates, MemoryUse, NetRates
from cockpit.model.hosts import (
    CpuCounters,
    DiskCounters,
    HostFacts,
    HostReading,
    IoCounters,
    NetCounters,
    ProcessCounters,
    identity,
)

KIB = 1024
LOOPBACK = "lo"
# No disk and no interface does so much a second: requests or packets, bytes.
MOST_REQUESTS, MOST_BYTES = 1e9, 1e12
SECTOR = 512

# Counters of a cpu line that only grow; waiting and idle time may fall a little, which is ignored.
_GROWING = ("user", "nice", "system", "irq", "softirq")
_WAITING = ("idle", "iowait", "steal")
_growing = attrgetter(*_GROWING)
_ticks = attrgetter(*_GROWING, *_WAITING)

_Named = TypeVar("_Named", DiskCounters, NetCounters)


class ReadingStep(NamedTuple):
    """The time between two samples of one boot. `seconds` are by the host's clock, `ticks` by its CPU lines.

    `disks` are with the requests of each. `spawned` and `exited` are of the watched processes, `forks` of all.
    `spent` is CPU time (s) of the watched processes, user and system. `rates` and `levels` (means of both readings)
    have the names of `model.sar`.
    """

    seconds: float
    ticks: int
    cpu: CpuShare | None
    cores: tuple[CpuShare | None, ...]
    io: IoRates | None
    disks: tuple[tuple[DiskRates, int], ...]
    nets: tuple[NetRates, ...]
    net: NetRates | None
    spawned: int
    exited: int
    forks: int
    spent: tuple[float, float] = (0.0, 0.0)
    rates: Mapping[str, float] = MappingProxyType({})
    levels: Mapping[str, float] = MappingProxyType({})


def step_between(old: HostReading, new: HostReading, facts: HostFacts) -> ReadingStep:
    """The step from one reading to a later one of the same boot."""
    seconds = new.uptime - old.uptime
    limit = most_ticks(seconds, facts.hz)
    cpus = max(facts.cpus, len(new.cores))
    disks, disks_whole = _disk_steps(old.disks, new.disks, seconds)
    nets, nets_whole = _net_steps(old.nets, new.nets, seconds)
    lives = _lives(old.processes, new.processes)
    spawned, exited = churn(lives)
    return ReadingStep(
        seconds=seconds,
        ticks=ticks_between(old.cpu, new.cpu),
        cpu=cpu_share(old.cpu, new.cpu, cpus * limit),
        cores=tuple(cpu_share(*pair, limit) for pair in zip(old.cores, new.cores, strict=False)),
        io=io_rates(old.io, new.io, seconds) if disks_whole else None,
        disks=disks,
        nets=nets,
        net=total_net(nets) if nets_whole else None,
        spawned=spawned,
        exited=exited,
        forks=new.forks - old.forks,
        spent=cpu_spent(lives, facts.hz),
        rates=sar.rates(old, new, seconds),
        levels=sar.mean_levels(sar.levels(old), sar.levels(new)),
    )


class _Lives(NamedTuple):
    """Match the processes of two samples by pid and start time: those of the later one with their earlier state, and
    those that are gone."""

    there: list[tuple[ProcessCounters | None, ProcessCounters]]
    gone: Iterable[ProcessCounters]


def _lives(old: Sequence[ProcessCounters], new: Sequence[ProcessCounters]) -> _Lives:
    known = dict(zip(map(identity, old), old, strict=True))
    there = [(known.pop(identity(process), None), process) for process in new]
    return _Lives(there, known.values())


def cpu_spent(lives: _Lives, hz: int) -> tuple[float, float]:
    """Return the CPU time (s) of the watched processes between two samples, user and system.

    CPU that a process used between its last sample and its exit is unknown and not included.
    """
    user = system = 0
    for before, process in lives.there:
        if before is None:
            user, system = user + process.utime, system + process.stime
            continue
        if process.utime > before.utime:
            user += process.utime - before.utime
        if process.stime > before.stime:
            system += process.stime - before.stime
    return user / hz, system / hz


def most_ticks(seconds: float, hz: int) -> float:
    """More clock ticks than one core can count in that time, however late it counts them."""
    return 2 * seconds * hz + hz


def ticks_between(old: CpuCounters, new: CpuCounters) -> int:
    """Clock ticks that passed on all CPUs of the line; guest time is in user and nice already."""
    return sum(_passed(old, new))


def _passed(old: CpuCounters, new: CpuCounters) -> list[int]:
    """Clock ticks by kind, in the order of `_ticks`."""
    return [now - then if now > then else 0 for then, now in zip(_ticks(old), _ticks(new), strict=True)]


def cpu_share(old: CpuCounters, new: CpuCounters, most: float = float("inf")) -> CpuShare | None:
    """CPU between two cpu lines as `sar -u` has it; irq time is in system.

    None when no clock tick passed, more than `most` did, or a counter fell that cannot.
    """
    passed = _passed(old, new)
    total = sum(passed)
    fell = any(now < then for then, now in zip(_growing(old), _growing(new), strict=True))
    if fell or not 0 < total <= most:
        return None
    user, nice, system, irq, softirq, idle, iowait, steal = passed
    return CpuShare(
        user=100 * user / total,
        nice=100 * nice / total,
        system=100 * (system + irq + softirq) / total,
        iowait=100 * iowait / total,
        steal=100 * steal / total,
        idle=100 * idle / total,
    )


def io_rates(old: IoCounters | None, new: IoCounters | None, seconds: float) -> IoRates | None:
    """I/O between two readings as `sar -b` has it; None when a counter fell or jumped (a disk came or went), or was not
    read."""
    if old is None or new is None:
        return None
    rates = _per_second(old, new, IoCounters.__struct_fields__, seconds)
    if rates is None:
        return None
    if max(rates["reads"], rates["writes"], rates["discards"]) > MOST_REQUESTS:
        return None
    if max(rates["sectors_read"], rates["sectors_written"]) * SECTOR > MOST_BYTES:
        return None
    reads, writes = rates["reads"], rates["writes"]
    return IoRates(
        tps=reads + writes + rates["discards"],
        rtps=reads,
        wtps=writes,
        bread=rates["sectors_read"],
        bwrtn=rates["sectors_written"],
    )


def disk_rates(old: DiskCounters, new: DiskCounters, seconds: float) -> tuple[DiskRates, int] | None:
    """One disk between two readings as `sar -d` has it, and the requests it did; None as for `io_rates`."""
    rates = _per_second(old, new, DiskCounters.__struct_fields__[1:], seconds)
    if rates is None:
        return None
    requests = rates["reads"] + rates["writes"] + rates["discards"]
    sectors = rates["sectors_read"] + rates["sectors_written"] + rates["sectors_discarded"]
    if requests > MOST_REQUESTS or sectors * SECTOR > MOST_BYTES:
        return None
    waited = rates["read_ms"] + rates["write_ms"] + rates["discard_ms"]
    found = DiskRates(
        name=new.name,
        tps=requests,
        rkb=rates["sectors_read"] / 2,
        wkb=rates["sectors_written"] / 2,
        dkb=rates["sectors_discarded"] / 2,
        areq_sz=sectors / 2 / requests if requests else 0.0,
        aqu_sz=rates["queued"] / 1000,
        await_=waited / requests if requests else 0.0,
        util=rates["busy"] / 10,
    )
    return found, round(requests * seconds)


def net_rates(old: NetCounters, new: NetCounters, seconds: float) -> NetRates | None:
    """One interface between two readings as `sar -n DEV` has it; None when a counter fell or jumped."""
    rates = _per_second(old, new, NetCounters.__struct_fields__[1:], seconds)
    if rates is None or max(rates["rx_packets"], rates["tx_packets"]) > MOST_REQUESTS:
        return None
    if max(rates["rx_bytes"], rates["tx_bytes"]) > MOST_BYTES:
        return None
    return NetRates(
        name=new.name,
        rxpck=rates["rx_packets"],
        txpck=rates["tx_packets"],
        rxkb=rates["rx_bytes"] / KIB,
        txkb=rates["tx_bytes"] / KIB,
        errors=rates["rx_errors"] + rates["tx_errors"],
        drops=rates["rx_dropped"] + rates["tx_dropped"],
    )


def total_net(nets: Sequence[NetRates]) -> NetRates | None:
    """Return all interfaces except the loopback, added up; None if there is none."""
    counted = [net for net in nets if net.name != LOOPBACK]
    if not counted:
        return None
    names = NetRates.__struct_fields__[1:]
    return NetRates("", *(sum(getattr(net, name) for net in counted) for name in names))


def _per_second(
    old: msgspec.Struct, new: msgspec.Struct, names: Sequence[str], seconds: float
) -> dict[str, float] | None:
    deltas = {name: getattr(new, name) - getattr(old, name) for name in names}
    if seconds <= 0 or min(deltas.values()) < 0:
        return None
    return {name: delta / seconds for name, delta in deltas.items()}


def _disk_steps(
    old: Sequence[DiskCounters], new: Sequence[DiskCounters], seconds: float
) -> tuple[tuple[tuple[DiskRates, int], ...], bool]:
    """Return the devices that are valid in both samples, and whether any is missing."""
    before = _by_name(old)
    steps = [disk_rates(before[disk.name], disk, seconds) for disk in new if disk.name in before]
    whole = None not in steps and not before.keys() - {disk.name for disk in new}
    return tuple(step for step in steps if step is not None), whole


def _net_steps(
    old: Sequence[NetCounters], new: Sequence[NetCounters], seconds: float
) -> tuple[tuple[NetRates, ...], bool]:
    """As for disks; the loopback may lack, since it is in no sum. An interface that came has no rate yet."""
    before = _by_name(old)
    steps = [(net.name, net_rates(before[net.name], net, seconds)) for net in new if net.name in before]
    whole = all(rates is not None for name, rates in steps if name != LOOPBACK)
    return tuple(rates for _, rates in steps if rates is not None), whole


def _by_name(counters: Sequence[_Named]) -> Mapping[str, _Named]:
    return {each.name: each for each in counters}


def memory_use(reading: HostReading) -> MemoryUse:
    """Memory as `free` of procps 4 has it: used is total less available."""
    memory = reading.memory
    return MemoryUse(
        total=memory.total * KIB,
        used=max(0, memory.total - memory.available) * KIB,
        free=memory.free * KIB,
        shared=memory.shmem * KIB,
        buff_cache=(memory.buffers + memory.cached + memory.reclaimable) * KIB,
        available=memory.available * KIB,
        buffers=memory.buffers * KIB,
        cache=(memory.cached + memory.reclaimable) * KIB,
        swap_total=memory.swap_total * KIB,
        swap_used=max(0, memory.swap_total - memory.swap_free) * KIB,
        swap_free=memory.swap_free * KIB,
    )


def churn(lives: _Lives) -> tuple[int, int]:
    """Return (spawned, exited) between two samples.

    A process that became defunct has exited, although its row remains.
    """
    spawned, exited = 0, sum(not process.stat.startswith("Z") for process in lives.gone)
    for before, process in lives.there:
        # A new process that is defunct already was spawned and has exited.
        spawned += before is None
        exited += process.stat.startswith("Z") and not (before is not None and before.stat.startswith("Z"))
    return spawned, exited
