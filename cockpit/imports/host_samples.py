"""Converts the intervals of sysstat to samples of a host: rates are summed to counters, since `fold` computes rates.
Pure.

Counters start at the first interval, and again at the first interval after a restart or a gap; these intervals only
provide levels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from cockpit.imports.sysstat import (
    CpuLoad,
    Disk,
    Interface,
    InterfaceErrors,
    Io,
    Memory,
    Statistics,
    SysstatHost,
)
from cockpit.model.events import AnyEvent, HostChanged, HostCondition, HostSample, Note
from cockpit.model.host import sar
from cockpit.model.host.samples import (
    CpuCounters,
    DiskCounters,
    HostConfig,
    HostFacts,
    HostReading,
    IoCounters,
    MemCounters,
    NetCounters,
)
from cockpit.model.text import sanitize

# Clock ticks per second of the CPU counters, so that percentages with two decimal places are exact.
_HZ = 10_000
# Maximum difference (s) between the end of an interval and the start of the next one: times are whole seconds.
_SLACK = 1.0
# Samples within this time (s) before and after the load are kept, and one more on each side.
_AROUND = 10.0
_MISSING = "no samples in the file"
_NO_ERRORS = InterfaceErrors(iface="", rxerr=0.0, txerr=0.0, rxdrop=0.0, txdrop=0.0)
_NOT_IN_SYSSTAT = "processes, shared memory, reclaimable slab, accept queues"
# Activities that may be missing in the file, with their option of sar.
_ACTIVITIES = {
    "process_and_context_switch": "tasks (-w)",
    "io": "I/O (-b)",
    "memory": "memory (-r)",
    "queue": "load average (-q)",
}
# The kernel's names of sysstat's rates, and of its numbers of sockets. `retrseg`: retrans, since sysstat 12.7.6.
_RATES = (sar.TASKS, sar.SWAPPING, sar.PAGING, sar.TCP, sar.ETCP)
COUNTERS = {column: name for group in _RATES for column, name in sar.counter_names(group).items()}
COUNTERS["retrseg"] = COUNTERS["retrans"]
_SOCKETS = sar.counter_names(sar.SOCKETS)


def config_of(name: str, host: SysstatHost, file: str) -> HostConfig:
    interval = float(max(1, host.statistics[0].timestamp.interval))
    return HostConfig(name=name, via=f"sysstat {sanitize(file, 80)}", interval=interval)


def intervals_around(host: SysstatHost, begin: float, end: float) -> Sequence[Statistics]:
    """Return the intervals from some time before a load to some time after it (epoch s). Raises ValueError if there are
    none."""
    intervals = host.statistics
    first, last = intervals[0].epoch, intervals[-1].epoch
    if end < first or last < begin:
        times = " to ".join(f"{each.timestamp.date} {each.timestamp.time}" for each in (intervals[0], intervals[-1]))
        raise ValueError(f"samples of {times} UTC; the load was at another time")
    earlier = [at for at, each in enumerate(intervals) if each.epoch <= begin - _AROUND]
    later = [at for at, each in enumerate(intervals) if each.epoch >= end + _AROUND]
    return intervals[earlier[-1] if earlier else 0 : (later[0] if later else len(intervals) - 1) + 1]


def host_events(
    config: HostConfig,
    host: SysstatHost,
    intervals: Sequence[Statistics],
    wall: float,
    until: float,
    assumed: Sequence[str] = (),
) -> Iterator[AnyEvent]:
    """Yield the events of a host in a session that started at `wall` (epoch s) and whose load ends at `until` (session
    time, s). `assumed` lists assumptions about the file.

    Raises ValueError.
    """
    begin = intervals[0].epoch - wall
    missing = [name for part, name in _ACTIVITIES.items() if any(getattr(each, part) is None for each in intervals)]
    unknown = f"not in the file, shown as 0 or none: {', '.join((*missing, _NOT_IN_SYSSTAT))}"
    yield Note(t=begin, text="; ".join((f"{config.name}: {len(intervals)} samples of {config.via}", *assumed, unknown)))
    facts = HostFacts(
        hostname=host.nodename, kernel=host.release, cpus=host.number_of_cpus, hz=_HZ, page=0, clock_offset=None
    )
    yield HostChanged(t=begin, host=config.name, condition=HostCondition.UP, facts=facts)
    used = {disk.disk_device for each in intervals for disk in each.disk if disk.tps}
    counters = _Counters(host.number_of_cpus, used)
    before: float | None = None
    for interval in intervals:
        t, seconds = interval.epoch - wall, interval.timestamp.interval
        if before is not None and abs(t - before - seconds) > _SLACK:
            yield HostChanged(t=before, host=config.name, condition=HostCondition.LOST, detail=_MISSING)
            yield HostChanged(t=t, host=config.name, condition=HostCondition.UP)
            before = None
        if before is None:
            counters = _Counters(host.number_of_cpus, used)
        reading = counters.reading(interval, 0 if before is None else seconds)
        yield HostSample(t=t, host=config.name, round_trip=0.0, reading=reading, interval=float(max(1, seconds)))
        before = t
    if before is not None and before + intervals[-1].timestamp.interval + _SLACK < until:
        yield HostChanged(t=before, host=config.name, condition=HostCondition.LOST, detail=_MISSING)


class _Counters:
    """Counters since the first interval. `used` are the disks that had any requests."""

    def __init__(self, cpus: int, used: set[str]) -> None:
        self._cpus = cpus
        self._used = used
        self._sums: dict[str, float] = defaultdict(float)
        self._seconds = 0

    def reading(self, interval: Statistics, seconds: int) -> HostReading:
        """Return the reading at the end of an interval, whose rates count for `seconds`. Raises ValueError."""
        self._seconds = seconds
        self._sums["uptime"] += seconds
        queue, tasks = interval.queue, interval.process_and_context_switch
        cpu = {load.cpu: load for load in interval.cpu_load or interval.cpu_load_all}
        errors = {each.iface: each for each in interval.network.net_edev}
        if "all" not in cpu:
            raise ValueError(f"{interval.timestamp.time[:24]}: CPU 'all' is missing")
        return HostReading(
            uptime=self._sums["uptime"],
            wall=interval.epoch,
            cpu=self._cpu(cpu.pop("all"), self._cpus),
            cores=self._cores(cpu),
            memory=_memory(interval.memory) if interval.memory else MemCounters(*[0] * 9),
            io=self._io(interval.io) if interval.io else None,
            load=(queue.ldavg_1, queue.ldavg_5, queue.ldavg_15) if queue else (0.0, 0.0, 0.0),
            forks=1 + self._count("forks", tasks.get("proc", 0.0)) if tasks else 0,
            disks=tuple(self._disk(disk) for disk in interval.disk if disk.disk_device in self._used),
            nets=tuple(self._net(each, errors.get(each.iface, _NO_ERRORS)) for each in interval.network.net_dev),
            running=queue.runq_sz + 1 if queue else 0,
            blocked=queue.blocked if queue else 0,
            counters={name: self._count(name, rate) for name, rate in _rates(interval).items()} | _levels(interval),
        )

    def _count(self, name: str, per_second: float) -> int:
        self._sums[name] += per_second * self._seconds
        return round(self._sums[name])

    def _counted(self, name: str, amounts: Mapping[str, float]) -> dict[str, int]:
        return {part: self._count(f"{name} {part}", amount) for part, amount in amounts.items()}

    def _cpu(self, load: CpuLoad, cpus: int) -> CpuCounters:
        """Return the counters of a CPU. Unlike in `sar -u ALL`, user and nice time include guests, as in /proc/stat."""
        parts = {
            "user": load.usr + load.guest if load.user is None else load.user,
            "nice": load.nice if load.user is not None else load.nice + load.gnice,
            "system": load.sys if load.system is None else load.system,
            "idle": load.idle,
            "iowait": load.iowait,
            "irq": load.irq,
            "softirq": load.soft,
            "steal": load.steal,
            "guest": load.guest,
            "guest_nice": load.gnice,
        }
        ticks = _HZ * cpus / 100
        return CpuCounters(**self._counted(f"cpu {load.cpu}", {part: ticks * parts[part] for part in parts}))

    def _cores(self, loads: Mapping[str, CpuLoad]) -> tuple[CpuCounters, ...]:
        """Return the counters by CPU number; an offline CPU has no line, so its counters are 0."""
        numbered = {int(cpu): load for cpu, load in loads.items() if cpu.isdecimal() and len(cpu) <= 4}
        known = range(min(self._cpus, max(numbered, default=-1) + 1))
        never = CpuCounters(*[0] * 8)
        return tuple(self._cpu(numbered[number], 1) if number in numbered else never for number in known)

    def _io(self, io: Io) -> IoCounters:
        return IoCounters(
            reads=self._count("io reads", io.io_reads.rtps),
            writes=self._count("io writes", io.io_writes.wtps),
            discards=self._count("io discards", io.io_discard.dtps),
            sectors_read=self._count("io read", io.io_reads.bread),
            sectors_written=self._count("io written", io.io_writes.bwrtn),
        )

    def _disk(self, disk: Disk) -> DiskCounters:
        """Return the counters of a disk. sar has only sums of reads and writes, which are put into `reads`; nothing but
        the sums is used."""
        name = disk.disk_device
        queued = disk.avgqu_sz if disk.aqu_sz is None else disk.aqu_sz
        amounts = {
            "reads": disk.tps,
            "sectors_read": 2 * disk.rkb if disk.rd_sec is None else disk.rd_sec,
            "sectors_written": 2 * disk.wkb if disk.wr_sec is None else disk.wr_sec,
            "sectors_discarded": 2 * disk.dkb if disk.dc_sec is None else disk.dc_sec,
            "read_ms": min(disk.await_ * disk.tps, 1e9),
            "busy": 10 * disk.util_percent,
            "queued": 1000 * queued,
        }
        counted = self._counted(f"disk {name}", amounts)
        return DiskCounters(name=name, writes=0, discards=0, write_ms=0, discard_ms=0, **counted)

    def _net(self, interface: Interface, errors: InterfaceErrors) -> NetCounters:
        amounts = {
            "rx_bytes": 1024 * interface.rxkb,
            "rx_packets": interface.rxpck,
            "rx_errors": errors.rxerr,
            "rx_dropped": errors.rxdrop,
            "tx_bytes": 1024 * interface.txkb,
            "tx_packets": interface.txpck,
            "tx_errors": errors.txerr,
            "tx_dropped": errors.txdrop,
        }
        return NetCounters(name=interface.iface, **self._counted(f"net {interface.iface}", amounts))


def _rates(interval: Statistics) -> dict[str, float]:
    """Return rates by the names of the kernel's counters; pressure in microseconds per second."""
    network, psi = interval.network, interval.psi
    tasks, swapping, paging = interval.process_and_context_switch, interval.swap_pages, interval.paging
    parts = (tasks, swapping, paging, network.net_tcp, network.net_etcp)
    rates = {COUNTERS[key]: rate for part in parts if part for key, rate in part.items() if key in COUNTERS}
    for resource, pressure in (("cpu", psi.psi_cpu), ("io", psi.psi_io), ("memory", psi.psi_mem)):
        if pressure is not None:
            rates[f"{resource}.some"] = 1e4 * pressure.some_avg
            rates |= {} if pressure.full_avg is None else {f"{resource}.full": 1e4 * pressure.full_avg}
    return rates


def _levels(interval: Statistics) -> dict[str, int]:
    """Return levels by the kernel's names. sar does not count itself as a running task."""
    memory, sockets, queue = interval.memory, interval.network.net_sock, interval.queue
    levels = {} if queue is None else {"runnable": queue.runq_sz + 1, "tasks": queue.plist_sz}
    if memory is not None:
        levels |= {"Committed_AS": memory.commit, "Active": memory.active, "Inactive": memory.inactive}
        levels |= {"Dirty": memory.dirty, "Slab": memory.slab, "SwapCached": memory.swpcad}
    return levels | {_SOCKETS[key]: level for key, level in (sockets or {}).items() if key in _SOCKETS}


def _memory(memory: Memory) -> MemCounters:
    return MemCounters(
        total=memory.total,
        free=memory.memfree,
        available=memory.avail,
        buffers=memory.buffers,
        cached=memory.cached,
        reclaimable=0,
        shmem=0,
        swap_total=memory.swpfree + memory.swpused,
        swap_free=memory.swpfree,
    )
