"""Shares and rates from two samples of a host, by the names of sar, free and vmstat.

A counter that decreased, wrapped or jumped beyond hardware limits has no rate: None, or left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import msgspec

from cockpit.model.host import sar
from cockpit.model.host.samples import (
    CpuCounters,
    DiskCounters,
    HostFacts,
    HostReading,
    IoCounters,
    NetCounters,
    ProcessCounters,
    identity,
)
from cockpit.model.host.state import CpuShare, DiskRates, IoRates, MemoryUse, NetRates

KIB = 1024
LOOPBACK = "lo"
# Bridges, bonds, VLANs, tunnels and interfaces of containers and guests, by their usual names.
_VIRTUAL = re.compile(
    r"(?:br|bond|cni|docker|dummy|fwbr|fwln|fwpr|gre|ifb|incusbr|lxcbr|lxdbr|podman|ppp|tailscale|team|tun|tunl|virbr|"
    r"vlan|vmbr|vnet)\d.*|(?:br-|cali|cilium|docker_|flannel|kube-|lxc|tap|veth|vxlan|wg).*|.*[.@]\d+"
)
# Sums of all interfaces: each has its own.
_FAULTS = ("errors", "drops")
# Plausible maxima of a disk or an interface: requests or packets/s, bytes/s.
MOST_REQUESTS, MOST_BYTES = 1e9, 1e12
SECTOR = 512
# A process whose CPU time exceeds that of its first thread by this factor, and by these clock ticks, has others.
_OTHER_THREADS, _TICKS = 1.1, 2

# Monotonic counters of a cpu line. The others may decrease slightly, which is ignored.
_GROWING = ("user", "nice", "system", "irq", "softirq")
_WAITING = ("idle", "iowait", "steal")
_growing = attrgetter(*_GROWING)
_ticks = attrgetter(*_GROWING, *_WAITING)

_Named = TypeVar("_Named", DiskCounters, NetCounters)


class ReadingStep(NamedTuple):
    """Metrics of the interval between two samples of one boot: `seconds` by the host's clock, clock `ticks` by its cpu
    line.

    `disks`: each with its number of requests. `spawned` and `exited`: watched processes; `forks`: all processes.
    `spent`: CPU time (s) of the watched processes, user and system; `tree`: with exited ones, and the
    children that they waited for; None: not read. `rates` and `levels` (means of both readings): by
    the names in `model.sar`.
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
    tree: float | None = None
    spent: tuple[float, float] = (0.0, 0.0)
    rates: Mapping[str, float] = MappingProxyType({})
    levels: Mapping[str, float] = MappingProxyType({})
    times: ProcessTimes | None = None


class ProcessTimes(NamedTuple):
    """Seconds of the watched processes in an interval, summed over them: all of them (`lived`; 0 if times are unknown
    for one of them), on a CPU (`ran`), on the run queue (`waited`), and in uninterruptible sleep (`blocked`, if their
    states at its end are those of all of it). `busiest`: per cent of the interval in which one of them was ready to run
    at most. `switches`: context switches; `left`: voluntary and involuntary ones, as far as their cause is known."""

    lived: float
    ran: float
    waited: float
    blocked: float
    busiest: float
    switches: int
    left: tuple[int, int]

    @property
    def wait(self) -> float | None:
        """Per cent of the time in which they were ready to run that they waited for a CPU; None if they never were."""
        return 100 * self.waited / (self.ran + self.waited) if self.ran else None

    @property
    def shares(self) -> tuple[float, float, float, float]:
        """Per cent of their time: on a CPU, waiting for a CPU, blocked, and asleep, blocked included."""
        parts = [100 * part / self.lived for part in (self.ran, self.waited, self.blocked)]
        return parts[0], parts[1], parts[2], max(0.0, 100 - parts[0] - parts[1])


def step_between(old: HostReading, new: HostReading, facts: HostFacts) -> ReadingStep:
    """Return the metrics between a reading and a later reading of the same boot."""
    seconds = new.uptime - old.uptime
    limit = max_ticks(seconds, facts.hz)
    cpus = max(facts.cpus, len(new.cores))
    disks, disks_whole = _disk_steps(old.disks, new.disks, seconds)
    nets, nets_whole = _net_steps(old.nets, new.nets, seconds)
    matched = _match(old.processes, new.processes)
    spawned, exited = churn(matched)
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
        tree=tree_spent(old, new, facts.hz),
        spent=cpu_spent(matched, facts.hz),
        rates={**sar.rates(old, new, seconds), **softirq_rate(old.cpu, new.cpu)},
        levels=sar.mean_levels(sar.levels(old), sar.levels(new)),
        times=process_times(matched, new.uptime, seconds, facts.hz),
    )


class _MatchedProcesses(NamedTuple):
    """Processes of two samples, matched by pid and start time. `present`: those in the later sample, each with its
    earlier counters (None: new); `gone`: those only in the earlier sample."""

    present: list[tuple[ProcessCounters | None, ProcessCounters]]
    gone: Iterable[ProcessCounters]


def _match(old: Sequence[ProcessCounters], new: Sequence[ProcessCounters]) -> _MatchedProcesses:
    known = dict(zip(map(identity, old), old, strict=True))
    present = [(known.pop(identity(process), None), process) for process in new]
    return _MatchedProcesses(present, known.values())


def cpu_spent(matched: _MatchedProcesses, hz: int) -> tuple[float, float]:
    """Return the CPU time (s) of the watched processes between two samples, user and system.

    CPU time that a process used between its last sample and its exit is unknown and not included.
    """
    user = system = 0
    for before, process in matched.present:
        if before is None:
            user, system = user + process.utime, system + process.stime
            continue
        if process.utime > before.utime:
            user += process.utime - before.utime
        if process.stime > before.stime:
            system += process.stime - before.stime
    return user / hz, system / hz


def tree_spent(old: HostReading, new: HostReading, hz: int) -> float | None:
    """Return the CPU time (s) of the watched processes, exited ones included; None: not read, or by another probe."""
    if old.processes_cpu is None or new.processes_cpu is None or new.processes_cpu < old.processes_cpu:
        return None
    return (new.processes_cpu - old.processes_cpu) / hz


def process_times(matched: _MatchedProcesses, uptime: float, seconds: float, hz: int) -> ProcessTimes | None:
    """Return the times of the watched processes in an interval that ended at `uptime`; None if they are unknown for a
    process that ran, e.g. with several threads."""
    lived, blocked, known = 0.0, 0.0, True
    ran = waited = busiest = switches = voluntary = involuntary = 0
    for before, process in matched.present:
        present = seconds if before else min(seconds, max(0.0, uptime - process.start / hz))
        if not process.stat.startswith("Z"):
            lived, known = lived + present, known and process.ran is not None
        blocked += present * process.stat.startswith("D")
        spent = process.utime + process.stime - (before.utime + before.stime if before else 0)
        run, wait = (_grown(before, process, name) for name in ("ran", "waited"))
        if run is None or wait is None or (spent - _TICKS) / hz > _OTHER_THREADS * run / 1e9:
            if spent > 0:
                return None
            continue
        ran, waited, busiest = ran + run, waited + wait, max(busiest, run + wait)
        switches += _grown(before, process, "switches") or 0
        if before and before.left and process.left:
            voluntary += max(0, process.left[0] - before.left[0])
            involuntary += max(0, process.left[1] - before.left[1])
    if not lived or seconds <= 0:
        return None
    share = min(100.0, busiest / seconds / 1e7)
    return ProcessTimes(lived * known, ran / 1e9, waited / 1e9, blocked, share, switches, (voluntary, involuntary))


def _grown(before: ProcessCounters | None, process: ProcessCounters, name: str) -> int | None:
    """Return by how much a counter grew since the earlier counters, or since the process started."""
    now, then = getattr(process, name), getattr(before, name) if before else 0
    return None if now is None or then is None else max(0, now - then)


def max_ticks(seconds: float, hz: int) -> float:
    """Return an upper bound of the clock ticks that one core counts in `seconds`, late counting included."""
    return 2 * seconds * hz + hz


def ticks_between(old: CpuCounters, new: CpuCounters) -> int:
    """Return the clock ticks between two cpu lines; user and nice include guest time."""
    return sum(_tick_deltas(old, new))


def _tick_deltas(old: CpuCounters, new: CpuCounters) -> list[int]:
    """Return the clock ticks between two cpu lines by state, in the order of `_ticks`."""
    return [now - then if now > then else 0 for then, now in zip(_ticks(old), _ticks(new), strict=True)]


def cpu_share(old: CpuCounters, new: CpuCounters, most: float = float("inf")) -> CpuShare | None:
    """Return the CPU use between two cpu lines, as `sar -u` prints it; system includes irq time.

    None if no clock tick passed, more than `most` passed, or a monotonic counter decreased.
    """
    deltas = _tick_deltas(old, new)
    total = sum(deltas)
    decreased = any(now < then for then, now in zip(_growing(old), _growing(new), strict=True))
    if decreased or not 0 < total <= most:
        return None
    user, nice, system, irq, softirq, idle, iowait, steal = deltas
    return CpuShare(
        user=100 * user / total,
        nice=100 * nice / total,
        system=100 * (system + irq + softirq) / total,
        iowait=100 * iowait / total,
        steal=100 * steal / total,
        idle=100 * idle / total,
    )


def softirq_rate(old: CpuCounters, new: CpuCounters) -> dict[str, float]:
    """Return the CPU time in softirqs (mostly packets of the network) in per cent of all cores, if it is plausible."""
    deltas, total = _tick_deltas(old, new), ticks_between(old, new)
    return {sar.SOFTIRQ_METRIC: 100 * deltas[_GROWING.index("softirq")] / total} if total else {}


def io_rates(old: IoCounters | None, new: IoCounters | None, seconds: float) -> IoRates | None:
    """Return I/O rates between two readings, as `sar -b` prints them; None if a counter was not read, or decreased or
    jumped (a disk was added or removed)."""
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
    """Return the rates of a disk between two readings, as `sar -d` prints them, and its number of requests; None as for
    `io_rates`."""
    rates = _per_second(old, new, DiskCounters.__struct_fields__[1:], seconds)
    if rates is None:
        return None
    requests = rates["reads"] + rates["writes"] + rates["discards"]
    sectors = rates["sectors_read"] + rates["sectors_written"] + rates["sectors_discarded"]
    if requests > MOST_REQUESTS or sectors * SECTOR > MOST_BYTES:
        return None
    waited = rates["read_ms"] + rates["write_ms"] + rates["discard_ms"]
    disk = DiskRates(
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
    return disk, round(requests * seconds)


def net_rates(old: NetCounters, new: NetCounters, seconds: float) -> NetRates | None:
    """Return the rates of an interface between two readings, as `sar -n DEV` prints them; None if a counter decreased
    or jumped."""
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
    """Return the sum of all interfaces except the loopback; None if there is none. The traffic of virtual ones, which
    most often passes another interface, counts only if there are no others."""
    every = [net for net in nets if net.name != LOOPBACK]
    others = [net for net in every if not _is_virtual(net.name)] or every
    if not every:
        return None
    names = NetRates.__struct_fields__[1:]
    return NetRates("", *(sum(getattr(net, name) for net in (every if name in _FAULTS else others)) for name in names))


def _is_virtual(name: str) -> bool:
    return name == LOOPBACK or _VIRTUAL.fullmatch(name) is not None


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
    """Return the rates of the devices that are valid in both samples, and whether these are all devices of the earlier
    sample."""
    before = _by_name(old)
    steps = [disk_rates(before[disk.name], disk, seconds) for disk in new if disk.name in before]
    whole = None not in steps and not before.keys() - {disk.name for disk in new}
    return tuple(step for step in steps if step is not None), whole


def _net_steps(
    old: Sequence[NetCounters], new: Sequence[NetCounters], seconds: float
) -> tuple[tuple[NetRates, ...], bool]:
    """Return the same for interfaces. Virtual ones may be missing; an interface that was added has no rate yet."""
    before = _by_name(old)
    steps = [(net.name, net_rates(before[net.name], net, seconds)) for net in new if net.name in before]
    whole = all(rates is not None for name, rates in steps if not _is_virtual(name))
    return tuple(rates for _, rates in steps if rates is not None), whole


def _by_name(counters: Sequence[_Named]) -> Mapping[str, _Named]:
    return {each.name: each for each in counters}


def memory_use(reading: HostReading) -> MemoryUse:
    """Return memory use as `free` of procps 4 prints it: used is total minus available. If the host does not report
    `available`, used is total minus free, buffers and cache, as in procps 3."""
    memory, available = reading.memory, reading.memory.available
    unused = memory.free + memory.buffers + memory.cached + memory.reclaimable if available is None else available
    return MemoryUse(
        total=memory.total * KIB,
        used=max(0, memory.total - unused) * KIB,
        free=memory.free * KIB,
        shared=memory.shmem * KIB,
        buff_cache=(memory.buffers + memory.cached + memory.reclaimable) * KIB,
        available=None if available is None else available * KIB,
        buffers=memory.buffers * KIB,
        cache=(memory.cached + memory.reclaimable) * KIB,
        swap_total=memory.swap_total * KIB,
        swap_used=max(0, memory.swap_total - memory.swap_free) * KIB,
        swap_free=memory.swap_free * KIB,
    )


def churn(matched: _MatchedProcesses) -> tuple[int, int]:
    """Return (spawned, exited) between two samples.

    A process that became defunct has exited, although it is still listed.
    """
    spawned, exited = 0, sum(not process.stat.startswith("Z") for process in matched.gone)
    for before, process in matched.present:
        # A new process that is already defunct counts as spawned and as exited.
        spawned += before is None
        exited += process.stat.startswith("Z") and not (before is not None and before.stat.startswith("Z"))
    return spawned, exited
