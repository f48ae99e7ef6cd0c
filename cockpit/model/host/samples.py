"""Configuration of hosts, and readings of their probes: raw kernel counters, never rates or percentages."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from cockpit.model.recorded import Name, Url
from cockpit.servers.registry import STATUS_PAGES

if TYPE_CHECKING:
    StatusKind = str
else:
    StatusKind = Literal[tuple(STATUS_PAGES)]


# Default time between the samples of a host (s).
INTERVAL = 1.0


class StatusPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The status page of a server, requested on the host itself through the SSH connection.

    `auth` is `user:password`; it is never recorded.
    """

    kind: StatusKind
    url: Url
    auth: str = ""


class GeneratorConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A load generator, reached by `ssh` (".": this machine). `python`: the interpreter for which cockpit is installed
    there; "": the virtual environment that cockpit creates there, else python3. `watch`: it is also a watched host."""

    name: str
    ssh: str
    python: str = ""
    watch: bool = False


class HostConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A host to watch. `ssh`: arguments of the `ssh` command; None: this machine. `via`: a command that reaches the
    host from there, e.g. `docker exec -i web1`, or a short name, e.g. `docker:web1`.

    `processes`: names of the watched processes, exact comm or shell patterns (`php-fpm*`). `interval` in seconds.
    `tail`: commands whose output is followed. `access_log`: the file with the requests of users; `log_format`: its
    format, "" if it is to be recognized. `sudo`: changes are made with `sudo -n`. `changes_outside`: changes are
    made on the machine from which `via` reaches the host; files and commands of the host's knobs are there.
    `upstreams`: addresses on the host to which the target's server passes requests: `127.0.0.1:9000` or a socket path.
    `profile`: samples/s per CPU of its CPU profile, 0: not profiled until the user switches it on. `call_graph`: how
    perf finds the callers, by frame pointers or by copies of the stack (more CPU).
    """

    name: Name
    ssh: str | None = None
    via: str = ""
    processes: tuple[str, ...] = ()
    upstreams: tuple[str, ...] = ()
    profile: int = 0
    call_graph: Literal["fp", "dwarf"] = "fp"
    interval: float = INTERVAL
    tail: tuple[str, ...] = ()
    status: tuple[StatusPage, ...] = ()
    access_log: str = ""
    log_format: str = ""
    sudo: bool = False
    changes_outside: bool = False

    @property
    def outside(self) -> HostConfig:
        """The machine from which `via` reaches the host; the host itself without `via`."""
        return replace(self, via="")

    @property
    def place(self) -> str:
        """The location of the host as text: `ssh root@web1, docker:shop`."""
        outer = "this machine" if self.ssh is None else f"ssh {self.ssh}"
        return outer if not self.via else self.via if self.ssh is None else f"{outer}, {self.via}"

    @property
    def watched(self) -> str:
        """The names of the watched processes as text; "": none."""
        return ", ".join(self.processes)

    @classmethod
    def of_generator(cls, generator: GeneratorConfig) -> HostConfig:
        return cls(name=generator.name, ssh=None if generator.ssh == "." else generator.ssh)

    def without_secrets(self) -> HostConfig:
        """Return the configuration without secrets, for recordings."""
        return replace(self, status=tuple(replace(page, auth="") for page in self.status))


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of a host that are constant while it is up. `hz`: clock ticks/s; `page`: page size (bytes).

    `clock_offset`: by how much (s) the host's wall clock was ahead of the cockpit's when the probe started, ±
    `clock_error`; None: it could not be read. `boot`: the kernel's boot id, equal for all hosts on a machine; "":
    unknown.
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
    """A `cpu` line of /proc/stat, in clock ticks since boot: one core, or the sum of all cores."""

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
    """Fields of /proc/meminfo, KiB. `available`: None before Linux 3.14, and in some containers."""

    total: int
    free: int
    available: int | None
    buffers: int
    cached: int
    reclaimable: int
    shmem: int
    swap_total: int
    swap_free: int


class IoCounters(msgspec.Struct, frozen=True, array_like=True):
    """/proc/diskstats summed over whole disks as in `sar -b`; sectors of 512 bytes, since boot."""

    reads: int
    writes: int
    discards: int
    sectors_read: int
    sectors_written: int


class DiskCounters(msgspec.Struct, frozen=True, array_like=True):
    """A line of /proc/diskstats, since boot: completed requests, sectors of 512 bytes, milliseconds.

    `busy`: milliseconds with a request in flight; `queued`: the same, weighted by the number of requests in flight.
    """

    name: Name
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

    name: Name
    rx_bytes: int
    rx_packets: int
    rx_errors: int
    rx_dropped: int
    tx_bytes: int
    tx_packets: int
    tx_errors: int
    tx_dropped: int


class ProcessCounters(msgspec.Struct, frozen=True):
    """A process, from /proc/PID/stat, statm and cmdline. Times in clock ticks, memory in bytes.

    (`pid`, `start`) identifies a process, even if its pid is used again; `start`: clock ticks after boot.
    `shared`: as in statm, resident pages of files or shared memory. `stat`: as in the STAT column of ps. `command`: the
    raw command line, not neutralised. `user`: login name of the effective user, else the uid; "": unknown. `pss`:
    proportional set size (bytes), read every 30 samples or less; None: unknown. `ran` and `waited`: time (ns) on a CPU
    and on the run queue since it started, `switches`: how often it was put on a CPU, from /proc/PID/schedstat; None:
    several threads, or not counted. `left`: context switches in which it waited for something (voluntary), and in which
    it lost the CPU (involuntary), read every 5 samples; None: unknown.
    """

    pid: int
    ppid: int
    start: int
    stat: Name
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
    ran: int | None = None
    waited: int | None = None
    switches: int | None = None
    left: tuple[int, int] | None = None


# Identifies a process, even if its pid is used again.
identity = attrgetter("pid", "start")


class HostReading(msgspec.Struct, frozen=True, kw_only=True):
    """A reading of a probe at one instant. `uptime` and `wall` (epoch): the host's own clocks, seconds.

    `forks`: processes and threads created since boot, an upper bound of the processes that sampling missed.
    `probe_cpu`: mean CPU time (s) of the probe per frame, over its last 30 or so. `running` and `blocked`: tasks, as
    counted by the kernel. `hidden`: /proc shows the probe only its own processes (hidepid), so that processes may be
    missing. `pss`: proportional set size (bytes) of the watched processes; None if it could not be read for all of
    them. `processes_cpu`: CPU time (clock ticks) of the watched processes, exited ones included, and of the children
    that they waited for, since the probe started; None: not read. `counters`: further counters by the kernel's name
    (`pgfault`, `Tcp.InSegs`, memory in KiB, `cpu.some` of /proc/pressure in microseconds); counters that the host lacks
    are absent. `accept`: connections in the accept queue of each listening TCP port; `backlog`: the limit of each.
    A `memory.total` of 0, an `io` of None: not read.
    `excluded`: number of processes of other servers with the same name, which are not counted; None: the target's
    server could not be identified, so that all are counted.
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
    excluded: int | None = 0
