"""What a probe reads on a host: counters as the kernel gives them, never rates or percentages."""

from __future__ import annotations

import msgspec


class HostConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A server to watch. `ssh` is what would follow the `ssh` command; None is this machine.

    `processes` picks processes by name: the exact comm, or a shell pattern (`php-fpm*`). `interval` in seconds.
    """

    name: str
    ssh: str | None = None
    processes: str | None = None
    interval: float = 1.0


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What does not change while a host is up. `hz` is clock ticks a second, `page` bytes."""

    hostname: str
    kernel: str
    cpus: int
    hz: int
    page: int


class CpuCounters(msgspec.Struct, frozen=True, array_like=True):
    """The `cpu` line of /proc/stat, in clock ticks since boot, all cores summed."""

    user: int
    nice: int
    system: int
    idle: int
    iowait: int
    irq: int
    softirq: int
    steal: int
    guest: int = 0
    guest_nice: int = 0


class MemCounters(msgspec.Struct, frozen=True, array_like=True):
    """Fields of /proc/meminfo, KiB."""

    total: int
    free: int
    available: int
    buffers: int
    cached: int
    reclaimable: int
    shmem: int
    swap_total: int
    swap_free: int


class IoCounters(msgspec.Struct, frozen=True, array_like=True):
    """/proc/diskstats summed over whole disks as `sar -b` sums them; sectors of 512 bytes, since boot."""

    reads: int
    writes: int
    discards: int
    sectors_read: int
    sectors_written: int


class ProcessCounters(msgspec.Struct, frozen=True, array_like=True):
    """One process of /proc/PID/stat, statm and cmdline. Times in clock ticks, memory in bytes.

    (`pid`, `start`) names a process for good; `start` is in clock ticks after boot.
    `shared` is what statm calls shared: resident pages that belong to files or shared memory.
    `stat` is what ps prints under STAT. `command` is the raw command line, not neutralised.
    """

    pid: int
    ppid: int
    start: int
    stat: str
    comm: str
    utime: int
    stime: int
    threads: int
    vsz: int
    rss: int
    shared: int
    command: str


class HostReading(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a probe read at one instant. `uptime` and `wall` (epoch) are the host's own clocks, seconds.

    `forks` counts processes and threads made since boot: the bound on what sampling can have missed.
    `probe_cpu` is the CPU time (s) that the probe itself uses on the host for a frame, the mean of its last 30 or so.
    """

    uptime: float
    wall: float
    cpu: CpuCounters
    memory: MemCounters
    io: IoCounters
    load: tuple[float, float, float]
    forks: int
    processes: tuple[ProcessCounters, ...] = ()
    probe_cpu: float = 0.0
