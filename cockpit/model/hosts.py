"""The readings of a probe: counters as the kernel gives them, never rates or percentages."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from cockpit.servers.registry import STATUS_PAGES

if TYPE_CHECKING:
    StatusKind = str
else:
    StatusKind = Literal[tuple(STATUS_PAGES)]


class StatusPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The status page of a server, requested from the host itself through its SSH connection.

    `auth` is `user:password`; it never reaches a recording.
    """

    kind: StatusKind
    url: str
    auth: str = ""


class GeneratorConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that load comes from, reached by `ssh`; ".": this one. Cockpit is installed for its `python`; "": in
    the virtual environment that cockpit makes there, else for python3. `watch`: it is among the watched hosts."""

    name: str
    ssh: str
    python: str = ""
    watch: bool = False


class HostConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A server to watch. `ssh` is what would follow the `ssh` command; None is this machine. `via` is a command that
    reaches it from there, as `docker exec -i web1`, or its short name, as `docker:web1`.

    `processes` picks processes by name: the exact comm, or shell patterns (`php-fpm*`). `interval` in seconds.
    `tail` are commands whose lines are shown as they come. `sudo`: changes are made with `sudo -n`. `changes_outside`:
    they are made on the machine from which `via` reaches the host, whose are the files and commands of its knobs.
    `behind` are the addresses there to which the target's server passes requests: `127.0.0.1:9000` or a socket's path.
    """

    name: str
    ssh: str | None = None
    via: str = ""
    processes: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    interval: float = 1.0
    tail: tuple[str, ...] = ()
    status: tuple[StatusPage, ...] = ()
    sudo: bool = False
    changes_outside: bool = False

    @property
    def outside(self) -> HostConfig:
        """The machine from which `via` reaches it; itself without `via`."""
        return replace(self, via="")

    @property
    def place(self) -> str:
        """Where it is, for a person: `ssh root@web1, docker:shop`."""
        outer = "this machine" if self.ssh is None else f"ssh {self.ssh}"
        return outer if not self.via else self.via if self.ssh is None else f"{outer}, {self.via}"

    @property
    def watched(self) -> str:
        """The names of the watched processes, for a person; "" without any."""
        return ", ".join(self.processes)

    @classmethod
    def of_generator(cls, generator: GeneratorConfig) -> HostConfig:
        return cls(name=generator.name, ssh=None if generator.ssh == "." else generator.ssh)

    def without_secrets(self) -> HostConfig:
        """As it may be recorded."""
        return replace(self, status=tuple(replace(page, auth="") for page in self.status))


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What does not change while a host is up. `hz` is clock ticks/s, `page` bytes.

    `clock_offset` is by how much (s) the host's wall clock was ahead of the cockpit's when the probe started, give or
    take `clock_error`; None: it could not be read. `boot` is the kernel's boot id, which hosts that share a machine
    have in common; "": unknown.
    """

    hostname: str
    kernel: str
    cpus: int
    hz: int
    page: int
    clock_offset: float | None = None
    clock_error: float = 0.0
    boot: str = ""


class CpuCounters(msgspec.Struct, frozen=True, array_like=True):
    """A `cpu` line of /proc/stat, in clock ticks since boot: of one core, or of all summed."""

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


class DiskCounters(msgspec.Struct, frozen=True, array_like=True):
    """A line of /proc/diskstats, since boot: requests done, sectors of 512 bytes, milliseconds.

    `busy` is milliseconds with a request under way, `queued` those times the requests under way.
    """

    name: str
    reads: int
    writes: int
    discards: int
    sectors_read: int
    sectors_written: int
    sectors_discarded: int
    read_ms: int
    write_ms: int
    discard_ms: int
    busy: int
    queued: int


class NetCounters(msgspec.Struct, frozen=True, array_like=True):
    """A line of /proc/net/dev, since boot."""

    name: str
    rx_bytes: int
    rx_packets: int
    rx_errors: int
    rx_dropped: int
    tx_bytes: int
    tx_packets: int
    tx_errors: int
    tx_dropped: int


class ProcessCounters(msgspec.Struct, frozen=True):
    """One process of /proc/PID/stat, statm and cmdline. Times in clock ticks, memory in bytes.

    (`pid`, `start`) names a process for good; `start` is in clock ticks after boot.
    `shared` is what statm calls shared: resident pages that belong to files or shared memory.
    `stat` is what ps prints under STAT. `command` is the raw command line, not neutralised. `user` is the login name
    of the effective user, else its number; "" if unknown. `pss` is the proportional set size (bytes), read every 30
    samples or less; None if it is unknown.
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
    user: str = ""
    pss: int | None = None


# What names a process for good.
identity = attrgetter("pid", "start")


class HostReading(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a probe read at one instant. `uptime` and `wall` (epoch) are the host's own clocks, seconds.

    `forks` counts processes and threads made since boot: the bound on what sampling can have missed.
    `probe_cpu` is the CPU time (s) that the probe itself uses on the host for a frame, the mean of its last 30 or so.
    `running` and `blocked` are tasks, as the kernel counts them. `hidden`: /proc shows the probe its own processes only
    (hidepid), so that the absence of others says nothing. `pss` is the memory (bytes) of the watched processes,
    each page that they share counted once, by parts; None where it could not be read of all of them. `processes_cpu`
    is the CPU time (clock ticks) of the watched processes and of the children that they waited for since the probe
    started, those included that have ended; None: not read. `counters` are further counters by the kernel's name
    (`pgfault`, `Tcp.InSegs`, memory in KiB, `cpu.some` of /proc/pressure in microseconds); what the host does not have
    is absent. `accept` has the connections in the accept queue of each listening TCP port, `backlog` their limit.
    A `memory.total` of 0, an `io` of None: not read.
    `left_out` is the number of processes of other servers of the same name, which are not counted; None: which of them
    is the target's is unknown, so that all are counted.
    """

    uptime: float
    wall: float
    cpu: CpuCounters
    memory: MemCounters
    io: IoCounters | None
    load: tuple[float, float, float]
    forks: int
    processes: tuple[ProcessCounters, ...] = ()
    probe_cpu: float = 0.0
    cores: tuple[CpuCounters, ...] = ()
    disks: tuple[DiskCounters, ...] = ()
    nets: tuple[NetCounters, ...] = ()
    running: int = 0
    blocked: int = 0
    hidden: bool = False
    pss: int | None = None
    processes_cpu: int | None = None
    counters: dict[str, int] = {}
    accept: dict[int, int] = {}
    backlog: dict[int, int] = {}
    left_out: int | None = 0
