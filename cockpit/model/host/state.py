"""The state of a host: its metrics at each sample, its windows, processes, tails and status pages.

All states are frozen. Times are session seconds, rates per second, memory bytes unless the name has another unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import msgspec

from cockpit.model.events import AccessCounts, HostCondition, HostSample
from cockpit.model.host.samples import HostConfig, HostFacts, IoCounters, ProcessCounters, StatusPage
from cockpit.model.stacks import ProfilerChanged, StackSlice
from cockpit.model.sums import Sums


class IoSnapshot(msgspec.Struct, frozen=True):
    """I/O counters of a host at an `uptime` (s)."""

    uptime: float
    io: IoCounters | None


class HostWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A host over a time range, from its `first` sample to its `last`, which has `count` processes. Both samples keep
    only metrics of the host as a whole.

    `seconds`: time covered by counters, by the host's clock; `covered`: the part of it sampled without a gap. `sums`:
    all metrics by name. `spawned` and `exited`: processes that were seen in a sample; `forks`: processes and threads
    that the host created; `most_defunct`: maximum of one sample. `opening` and `closing`: I/O counters in the first and
    the last seconds. `highest`: the maximum of each metric over the intervals. `before` and `after`: metrics of the
    idle host in the last interval before the run, and in an interval at most 5 s after it; empty if there was no such
    interval without load.
    """

    first: HostSample
    last: HostSample
    count: int = 0
    seconds: float = 0.0
    covered: float = 0.0
    spawned: int = 0
    exited: int = 0
    forks: int = 0
    most_defunct: int = 0
    sums: Sums = Sums()
    opening: tuple[IoSnapshot, ...] = ()
    closing: tuple[IoSnapshot, ...] = ()
    highest: dict[str, float] = {}
    before: dict[str, float] = {}
    after: dict[str, float] = {}

    @property
    def unseen(self) -> int:
        """Maximum number of watched processes that started and exited between two samples: the host's other forks."""
        return max(0, self.forks - self.spawned)


class CpuShare(msgspec.Struct, frozen=True):
    """CPU use in per cent of all cores, with the names and definitions of `sar -u`."""

    user: float
    nice: float
    system: float
    iowait: float
    steal: float
    idle: float


class IoRates(msgspec.Struct, frozen=True):
    """As `sar -b`: transfers and 512-byte blocks/s."""

    tps: float
    rtps: float
    wtps: float
    bread: float
    bwrtn: float


class DiskRates(msgspec.Struct, frozen=True):
    """As `sar -d`: transfers and KiB/s, KiB/request, requests in flight, ms/request, per cent busy."""

    name: str
    tps: float
    rkb: float
    wkb: float
    dkb: float
    areq_sz: float
    aqu_sz: float
    await_: float
    util: float


class NetRates(msgspec.Struct, frozen=True):
    """As `sar -n DEV`: packets and KiB/s; errors and drops/s are sums of both directions."""

    name: str
    rxpck: float
    txpck: float
    rxkb: float
    txkb: float
    errors: float = 0.0
    drops: float = 0.0


class MemoryUse(msgspec.Struct, frozen=True):
    """As `free -w`, in bytes; `swap_…` is the Swap line. `available` is None if the host does not report it."""

    total: int
    used: int
    free: int
    shared: int
    buff_cache: int
    available: int | None
    buffers: int = 0
    cache: int = 0
    swap_total: int = 0
    swap_used: int = 0
    swap_free: int = 0


class GroupUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The control group of the server: `cpu` and its `quota` in per cent of one CPU; `throttled`: per cent of the
    periods in which the quota was used up; `kbmemory` without inactive file pages and its limit `kblimit`, KiB; `scpu`,
    `sio`, `smem`: per cent of the time in which tasks of the group waited for CPU, I/O, memory. None: unknown, or no
    limit."""

    cpu: float | None = None
    quota: float | None = None
    throttled: float | None = None
    kbmemory: float | None = None
    kblimit: float | None = None
    scpu: float | None = None
    sio: float | None = None
    smem: float | None = None


class ProcessRow(msgspec.Struct, frozen=True, kw_only=True):
    """A process as in `ps aux`, but `cpu` (per cent of one core) covers the last interval.

    `started`: epoch seconds on the host's clock; `age`: seconds. `new`: not in the previous sample.
    """

    process: ProcessCounters
    cpu: float
    started: float
    age: float
    new: bool


class HostPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics of a host at one sample, for charts and replays. None: unknown.

    `net`: sum over interfaces, see `total_net`. `running` and `blocked`: tasks of the whole host. Memory of the
    watched processes: `rss` counts a shared page once per process; `unshared` (rss − shr) excludes pages of files and
    shared memory; `pss` divides a shared page among its processes (None: no permission to read it). `threads`: those of
    the watched processes; `files`: open files of the whole host. `unseen`: maximum
    number of processes that started and exited between two samples. `hidden`: /proc hides processes (hidepid), so that
    counts are incomplete. `servers`, `generator` and `other`: CPU use in per cent of all cores of the watched processes
    and the probe, of the load generator if it is on the same machine, and of all other programs. `group`: None if the
    server has no control group of its own. `speed`: fixed loops of the probe per second of CPU time. `wait` and
    `busiest`: as in ProcessTimes. `accept`: the longest accept queue of the watched ports, in connections.
    """

    t: float
    cpu: CpuShare | None = None
    io: IoRates | None = None
    net: NetRates | None = None
    memory: MemoryUse
    load: tuple[float, float, float]
    count: int = 0
    spawned: float | None = None
    exited: float | None = None
    defunct: int = 0
    rss: int = 0
    unshared: int = 0
    pss: int | None = None
    threads: int = 0
    files: int | None = None
    unseen: int | None = None
    running: int = 0
    blocked: int = 0
    probe_cpu: float = 0.0
    round_trip: float = 0.0
    hidden: bool = False
    servers: float | None = None
    generator: float | None = None
    other: float | None = None
    group: GroupUse | None = None
    speed: float | None = None
    wait: float | None = None
    busiest: float | None = None
    accept: int | None = None


class TailLine(msgspec.Struct, frozen=True, array_like=True):
    """A line as received, not neutralised, at `t`."""

    t: float
    text: str


class TailPane(msgspec.Struct, frozen=True, kw_only=True):
    """The output of a tail: the newest lines, newest last. `skipped`: number of lines that were not kept. `counts`: the
    last seconds of an access log, newest last."""

    command: str
    lines: tuple[TailLine, ...] = ()
    skipped: int = 0
    counts: tuple[AccessCounts, ...] = ()
    condition: Literal["waiting", "running", "ended"] = "waiting"
    detail: str = ""


class StatusPane(msgspec.Struct, frozen=True, kw_only=True):
    """The newest reading of a status page, at `t`. `rates`: its counters per second since the previous reading."""

    page: StatusPage
    t: float | None = None
    values: Mapping[str, float] = MappingProxyType({})
    rates: Mapping[str, float] = MappingProxyType({})
    text: Mapping[str, str] = MappingProxyType({})
    detail: str = ""


class ParentProcess(msgspec.Struct, frozen=True, kw_only=True):
    """The parent process of a server's workers. `gone`: it exited and has no successor yet."""

    pid: int
    start: int
    comm: str
    gone: bool = False


class CpuUsage(msgspec.Struct, frozen=True):
    """CPU time (s) `used` by the watched processes and the probe of a host from the start of the session to `t`;
    `rate`: CPU seconds per second in the last interval."""

    t: float = 0.0
    used: float = 0.0
    rate: float = 0.0

    def at(self, t: float) -> float:
        """Extrapolate the CPU time (s) to `t`, close to the last reading."""
        return self.used + self.rate * (t - self.t)


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one host. `seen`: time of the newest sample; `since`: start of the current `condition`.

    `cores`, `disks`, `nets` and `sar` (by the names in `model.sar`) are from the newest interval, `processes` from the
    newest sample. `gap`: the host was lost after that sample. `claim`: CPU time of its watched processes and its probe;
    `claims`: CPU time (s), at the newest sample, of each host on the same machine by name, of the generator under "".
    `profiler`: its last change; None: it was never started. `slices`: the last KEPT_SLICES of its profiles.
    """

    config: HostConfig
    condition: HostCondition = HostCondition.CONNECTING
    since: float = 0.0
    detail: str = ""
    facts: HostFacts | None = None
    seen: float | None = None
    sample: HostSample | None = None
    points: Sequence[HostPoint] = ()
    processes: Sequence[ProcessRow] = ()
    cores: tuple[CpuShare | None, ...] = ()
    disks: tuple[DiskRates, ...] = ()
    nets: tuple[NetRates, ...] = ()
    sar: Mapping[str, float] = MappingProxyType({})
    tails: tuple[TailPane, ...] = ()
    pages: tuple[StatusPane, ...] = ()
    profiler: ProfilerChanged | None = None
    slices: tuple[StackSlice, ...] = ()
    spawned: int = 0
    exited: int = 0
    gap: bool = False
    parents: tuple[ParentProcess, ...] = ()
    claim: CpuUsage = CpuUsage()
    claims: dict[str, float] = {}

    @property
    def point(self) -> HostPoint | None:
        return self.points[-1] if self.points else None
