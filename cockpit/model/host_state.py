"""The state of a host: its metrics at each sample, and its windows, processes, tails and status pages.

Frozen, as all states are. Times are session seconds, rates per second, memory bytes unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import msgspec

from cockpit.model.events import AccessCounts, HostCondition, HostSample
from cockpit.model.hosts import HostConfig, HostFacts, IoCounters, ProcessCounters, StatusPage
from cockpit.model.sums import Sums


class IoMark(msgspec.Struct, frozen=True):
    """A host's I/O counters at an instant of its uptime."""

    uptime: float
    io: IoCounters | None


class HostWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A host over some time, from its `first` sample to its `last`, which has `count` processes; of both only
    what is of the host as a whole is kept.

    `seconds` are those of the host's own clock that its counters cover, `covered` those of them in which it was read
    at its pace, without a gap. `sums` has all metrics by name. `spawned` and `exited` count processes that lived past a
    sample, `forks` what the host made of processes and threads; `most_defunct` is the most seen at once. `opening` and
    `closing` are marks of the first and the last seconds. `highest` is the maximum of each metric of one interval.
    `before` and `after` are metrics of the idle host: of the last interval before the run, and of an interval at most
    5 s after it; empty if there was none without load.
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
    opening: tuple[IoMark, ...] = ()
    closing: tuple[IoMark, ...] = ()
    highest: dict[str, float] = {}
    before: dict[str, float] = {}
    after: dict[str, float] = {}

    @property
    def unseen(self) -> int:
        """The most watched processes that can have come and gone between two samples: other forks of the host."""
        return max(0, self.forks - self.spawned)


class CpuShare(msgspec.Struct, frozen=True):
    """Per cent of all cores, as `sar -u` names and counts them."""

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
    """As `sar -d`: transfers and KiB/s, KiB/request, requests under way, ms/request, per cent busy."""

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
    """As `sar -n DEV`: packets and KiB/s; and errors and drops/s, both ways together."""

    name: str
    rxpck: float
    txpck: float
    rxkb: float
    txkb: float
    errors: float = 0.0
    drops: float = 0.0


class MemoryUse(msgspec.Struct, frozen=True):
    """As `free -w`, in bytes; `swap_` is its second line."""

    total: int
    used: int
    free: int
    shared: int
    buff_cache: int
    available: int
    buffers: int = 0
    cache: int = 0
    swap_total: int = 0
    swap_used: int = 0
    swap_free: int = 0


class GroupUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The control group of the server: CPU and its quota in per cent of one CPU, per cent of the periods in which the
    quota was used up, memory without inactive file pages and its limit in KiB, and per cent of the time in which tasks
    of the group waited for CPU, I/O and memory. None: unknown, or no limit."""

    cpu: float | None = None
    quota: float | None = None
    throttled: float | None = None
    kbmemory: float | None = None
    kblimit: float | None = None
    scpu: float | None = None
    sio: float | None = None
    smem: float | None = None


class ProcessRow(msgspec.Struct, frozen=True, kw_only=True):
    """A process as `ps aux` shows it, but `cpu` (per cent of one core) is of the last interval.

    `started` is epoch seconds on the host's clock, `age` seconds. `new`: not there one sample ago.
    """

    process: ProcessCounters
    cpu: float
    started: float
    age: float
    new: bool


class HostPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A host's metrics at one sample, for its charts and for replays. None: unknown.

    `net` is all interfaces together but the loopback. `running` and `blocked` are tasks of the whole host. `rss` sums
    what each watched process has in memory, so that pages they share count once for each; `unshared` leaves out all
    that belongs to files or shared memory; `pss` counts each page once, by parts, and is None where it may not be read.
    `unseen`: maximum number of processes that started and ended since the previous sample without being seen.
    `hidden`: /proc hides processes (hidepid), so that those which are counted are not all. `servers`, `generator` and
    `other` are shares (per cent of all cores): the watched processes with the probe, the load generator if it is on
    that machine, and all other programs. `group` is None without a control group of the server's own. `speed` is how
    many of the probe's loops, which are always the same, a second of CPU time is enough for.
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


class TailLine(msgspec.Struct, frozen=True, array_like=True):
    """A line as it came, not neutralised, and when."""

    t: float
    text: str


class TailPane(msgspec.Struct, frozen=True, kw_only=True):
    """The output of a tail: the newest lines, newest last. `skipped` counts lines that were not kept. `counts` are the
    last seconds of an access log, newest last."""

    command: str
    lines: tuple[TailLine, ...] = ()
    skipped: int = 0
    counts: tuple[AccessCounts, ...] = ()
    condition: Literal["waiting", "running", "ended"] = "waiting"
    detail: str = ""


class StatusPane(msgspec.Struct, frozen=True, kw_only=True):
    """The last reading of a status page, at `t`. `rates` are its counters per second since the reading before."""

    page: StatusPage
    t: float | None = None
    values: Mapping[str, float] = MappingProxyType({})
    rates: Mapping[str, float] = MappingProxyType({})
    text: Mapping[str, str] = MappingProxyType({})
    detail: str = ""


class ParentProcess(msgspec.Struct, frozen=True, kw_only=True):
    """The process of a server that makes its workers. `gone`: it has ended, and none came in its place yet."""

    pid: int
    start: int
    comm: str
    gone: bool = False


class CpuClaim(msgspec.Struct, frozen=True):
    """CPU time (s) that a host's watched processes and its probe used since the session started, at `t`, with the
    `rate` (s per s) of the last interval."""

    t: float = 0.0
    used: float = 0.0
    rate: float = 0.0

    def at(self, t: float) -> float:
        """Return the CPU time used until `t`, near to the last reading."""
        return self.used + self.rate * (t - self.t)


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one host. `seen` is when the last sample was taken, `since` when `condition` began.

    `cores`, `disks`, `nets` and `sar` (by the names of `model.sar`) are of the newest interval, `processes` of the
    newest sample. `gap`: the host was lost since that sample. `claim` is the CPU time of its watched processes;
    `claims` has the claim at the last sample of each host on the same machine, by name, the generator's under "".
    """

    config: HostConfig
    condition: HostCondition = "connecting"
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
    spawned: int = 0
    exited: int = 0
    gap: bool = False
    parents: tuple[ParentProcess, ...] = ()
    claim: CpuClaim = CpuClaim()
    claims: dict[str, float] = {}

    @property
    def point(self) -> HostPoint | None:
        return self.points[-1] if self.points else None
