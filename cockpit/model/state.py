"""What the events so far add up to. Frozen: a fold makes a new state, so any state can be kept and shown later.

Screen, check, replay and report read this and nothing else. Times are session seconds, latencies seconds,
rates per second, memory bytes unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

import msgspec

from cockpit.model.events import (
    Group,
    HostCondition,
    HostSample,
    SessionStarted,
    StudyLook,
    StudyRun,
    StudyStepEnded,
)
from cockpit.model.histogram import EMPTY, Histogram
from cockpit.model.hosts import HostConfig, HostFacts, IoCounters, ProcessCounters, StatusPage
from cockpit.model.knobs import Knob, Setting
from cockpit.model.load import LoadPlan
from cockpit.model.study import Study

# Bucket edges (ns) of LoadSecond.density: eight a decade from 1 µs to 100 s, as a heat map needs them.
LATENCY_EDGES = tuple(round(1000 * 10 ** (step / 8)) for step in range(8 * 8 + 1))


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Ticks added up: the same fields, merged over workers and time.

    `refused` are replies of 400 and above where the plan does not say what it expects.
    """

    sent: int = 0
    completed: int = 0
    abandoned: int = 0
    statuses: dict[int, int] = {}
    errors: dict[str, int] = {}
    bytes_received: int = 0
    bytes_sent: int = 0
    cpu: float = 0.0
    body_bytes: int = 0
    held_back: int = 0
    varied: int = 0
    unexpected: dict[str, int] = {}
    refused: int = 0
    groups: dict[str, Group] = {}
    unsent: int = 0
    connect: Histogram = EMPTY
    tls: Histogram = EMPTY
    first_byte: Histogram = EMPTY
    service: Histogram = EMPTY
    response: Histogram = EMPTY
    lag: Histogram = EMPTY

    @property
    def failed(self) -> int:
        """Requests that got no whole reply, and replies that were not what was expected."""
        return sum(self.errors.values()) + sum(self.unexpected.values()) + self.refused

    @property
    def latency(self) -> Histogram:
        """Response time: from the intended send; under closed load that is the service time."""
        return self.response if self.response.count else self.service

    @property
    def latency_name(self) -> str:
        """Which of the two `latency` is."""
        return "response" if self.response.count else "service"


class LoadSecond(msgspec.Struct, frozen=True, kw_only=True):
    """One second of load: `second` is session time rounded down; `start` to `end` is the part that ticks cover.

    `latency` is response time (under closed load the service time) by coarse buckets, so that seconds can be merged
    into any window; `p50`, `p99` and `max` are of it. `failed` as in Counts;
    `errors` of them got no whole reply. `saturated`: the generator was the bottleneck for most of it, do not trust.
    `workers` is CPU of each worker by number, 1.0 is a whole core; `cpu_wait` the largest share of the time that one
    of them was ready to run and had no CPU; `pause` the longest time (s) that one was away.
    """

    second: int
    start: float
    end: float
    completed: int = 0
    failed: int = 0
    errors: int = 0
    held_back: int = 0
    latency: Histogram = EMPTY
    connections: int = 0
    workers: tuple[float, ...] = ()
    lag_p99: float = 0.0
    pause: float = 0.0
    saturated: bool = False
    cpu_wait: float = 0.0

    @property
    def p50(self) -> float:
        return self.latency.percentile(50)

    @property
    def p99(self) -> float:
        return self.latency.percentile(99)

    @property
    def max(self) -> float:
        return self.latency.max

    @property
    def density(self) -> tuple[int, ...]:
        """Response times counted by LATENCY_EDGES."""
        return tuple(self.latency.between(LATENCY_EDGES))

    @property
    def generator(self) -> float:
        """CPU of the busiest worker."""
        return max(self.workers, default=0.0)

    @property
    def rate(self) -> float:
        """Replies a second over the part of the second that ticks cover."""
        return self.completed / (self.end - self.start) if self.end > self.start else 0.0


class Filling(msgspec.Struct, frozen=True, kw_only=True):
    """A second whose ticks still arrive; `span` and `saturated` are worker-seconds, `spent` CPU and span by worker,
    `waited` seconds that a worker waited for a CPU."""

    second: int
    start: float
    end: float
    counts: Counts
    connections: Mapping[int, int]
    spent: Mapping[int, tuple[float, float]]
    span: float = 0.0
    saturated: float = 0.0
    pause: float = 0.0
    waited: Mapping[int, float] = MappingProxyType({})


class IoMark(msgspec.Struct, frozen=True):
    """A host's I/O counters at an instant of its uptime."""

    uptime: float
    io: IoCounters


class Weighted(NamedTuple):
    """A sum of figures, each times what it is a mean over, and the sum of that: seconds, clock ticks or requests."""

    amount: float
    weight: float


class HostWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A host over a stretch of time, from its `first` sample to its `last`, which has `count` processes; of both only
    what is of the host as a whole is kept.

    `seconds` are those of the host's own clock that its counters tell of, `covered` those of them in which it was read
    at its pace, without a gap. `sums` has all figures by name. Births and deaths count processes that lived past a
    sample, `forks` what the host made of processes and threads; `most_defunct` is the most seen at once. `opening` and
    `closing` are marks of the first and the last seconds.
    """

    first: HostSample
    last: HostSample
    count: int = 0
    seconds: float = 0.0
    covered: float = 0.0
    births: int = 0
    deaths: int = 0
    forks: int = 0
    most_defunct: int = 0
    sums: Mapping[str, Weighted] = MappingProxyType({})
    opening: tuple[IoMark, ...] = ()
    closing: tuple[IoMark, ...] = ()

    @property
    def unseen(self) -> int:
        """At most so many of the watched processes came and went between two samples: what else the host forked."""
        return max(0, self.forks - self.births)


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of one run with the settings unchanged: a row of the runs table.

    `label` is `base`, which tells the settings, and the rung of a ladder where there is one.
    `changes` are the letters of the changes made since the row before (`changes_until` says how many the session
    had by then); `end` is None while it goes on. `saturated` seconds of it the generator was the bottleneck.
    `partial` says why its figures are not whole. `warmup` is not counted into the run's result; `stage` is its rung;
    `altered`: somebody changed the load while it went on. `warnings` and the target's `addresses` were
    known before the run; `worker_cpu` is CPU seconds by worker, `worker_wait` those it waited for a CPU.
    """

    number: int
    run: int
    plan: LoadPlan
    label: str
    base: str = ""
    changes: tuple[str, ...] = ()
    changes_until: int = 0
    start: float
    last: float
    end: float | None = None
    counts: Counts = Counts()
    hosts: Mapping[str, HostWindow] = MappingProxyType({})
    stage: int = 0
    warmup: bool = False
    altered: bool = False
    warnings: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    worker_cpu: Mapping[int, float] = MappingProxyType({})
    worker_wait: Mapping[int, float] = MappingProxyType({})
    saturated: float = 0.0
    partial: str = ""
    reason: str = ""
    detail: str = ""

    @property
    def seconds(self) -> float:
        """Length of the part that ticks cover."""
        return self.last - self.start

    @property
    def cpu_wait(self) -> float:
        """The largest share of the time that a worker was ready to run and had no CPU."""
        return max(self.worker_wait.values(), default=0.0) / self.seconds if self.seconds > 0 else 0.0

    @property
    def rate(self) -> float:
        """Replies a second, failed statuses included; 0 before the first tick."""
        return self.counts.completed / self.seconds if self.seconds > 0 else 0.0


class CpuShare(msgspec.Struct, frozen=True):
    """Per cent of all cores, as `sar -u` names and counts them."""

    user: float
    nice: float
    system: float
    iowait: float
    steal: float
    idle: float


class IoRates(msgspec.Struct, frozen=True):
    """As `sar -b`: transfers and 512-byte blocks a second."""

    tps: float
    rtps: float
    wtps: float
    bread: float
    bwrtn: float


class DiskRates(msgspec.Struct, frozen=True):
    """As `sar -d`: transfers and KiB a second, KiB a request, requests under way, ms a request, per cent busy."""

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
    """As `sar -n DEV`: packets and KiB a second; and errors and drops a second, both ways together."""

    name: str
    rxpck: float
    txpck: float
    rxkb: float
    txkb: float
    errors: float = 0.0
    drops: float = 0.0


class MemoryUse(msgspec.Struct, frozen=True):
    """As `free`, in bytes."""

    total: int
    used: int
    free: int
    shared: int
    buff_cache: int
    available: int


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
    """A host's figures at one sample, for its charts and for looking back. None where nothing can be said yet.

    `net` is all interfaces together but the loopback. `running` and `blocked` are tasks of the whole host. `rss` sums
    what each watched process has in memory, so that pages they share count once for each; `unshared` leaves out all
    that belongs to files or shared memory; `pss` counts each page once, by parts, and is None where it may not be read.
    `unseen`: at most so many processes came and went since the sample before without being seen.
    """

    t: float
    cpu: CpuShare | None = None
    io: IoRates | None = None
    net: NetRates | None = None
    memory: MemoryUse
    load: tuple[float, float, float]
    count: int = 0
    births: float | None = None
    deaths: float | None = None
    defunct: int = 0
    rss: int = 0
    unshared: int = 0
    pss: int | None = None
    unseen: int | None = None
    running: int = 0
    blocked: int = 0
    probe_cpu: float = 0.0
    round_trip: float = 0.0


class TailLine(msgspec.Struct, frozen=True, array_like=True):
    """A line as it came, not neutralised, and when."""

    t: float
    text: str


class TailPane(msgspec.Struct, frozen=True, kw_only=True):
    """What a tail has printed: the newest lines, newest last. `skipped` counts lines that were not kept at all."""

    command: str
    lines: tuple[TailLine, ...] = ()
    skipped: int = 0
    condition: Literal["waiting", "running", "ended"] = "waiting"
    detail: str = ""


class StatusPane(msgspec.Struct, frozen=True, kw_only=True):
    """What a status page said last, at `t`. `rates` are those of its counters, a second, since the time before."""

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


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one host. `seen` is when the last sample was taken, `since` when `condition` began.

    `cores`, `disks` and `nets` are of the newest interval, `processes` of the newest sample. `gap`: it was lost since
    that sample.
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
    tails: tuple[TailPane, ...] = ()
    pages: tuple[StatusPane, ...] = ()
    births: int = 0
    deaths: int = 0
    gap: bool = False
    parents: tuple[ParentProcess, ...] = ()

    @property
    def point(self) -> HostPoint | None:
        """The newest figures."""
        return self.points[-1] if self.points else None


class KnobState(msgspec.Struct, frozen=True, kw_only=True):
    """A knob and its value in force, as last read. `known` is False before the first reading."""

    knob: Knob
    value: str | None = None
    known: bool = False
    detail: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """All values it can be given, where they can be listed."""
        return self.knob.choices

    @property
    def range(self) -> str:
        """What it may be set to, in words; "" where anything that fits may stand there."""
        return self.knob.allowed

    @property
    def cost(self) -> str:
        """What a change of it costs: live, graceful, restart or remount."""
        return self.knob.price


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change from its request on. `outcome` is empty while it is under way; `ended` is when it was over.

    `stages` are how far it came, with the instant of each (see ChangeStage). `confirm_by` is until when a person must
    confirm it, or it undoes itself; None: nobody is waited for. `diff`, `cost`, `who` are as in ChangeBegun.
    """

    letter: str
    host: str
    settings: tuple[Setting, ...]
    begun: float
    undoes: str = ""
    ended: float | None = None
    outcome: str = ""
    detail: str = ""
    diff: str = ""
    cost: str = ""
    who: str = ""
    stages: Mapping[str, float] = MappingProxyType({})
    confirm_by: float | None = None

    @property
    def in_force(self) -> float | None:
        """From when on the server worked by it; None: it never did, or not yet."""
        return self.stages.get("in force", self.ended if self.outcome == "applied" else None)

    @property
    def label(self) -> str:
        """What was changed, as in `A MaxSpareServers 10 → 30`."""
        what = ", ".join(f"{s.knob} {s.old or 'unset'} → {s.new or 'unset'}" for s in self.settings)
        return f"{self.letter} {'undo ' + self.undoes + ': ' if self.undoes else ''}{what}"


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """A point on the timeline. `kind` is change, action, note, gap, restart or worker; `sign` its letter on charts."""

    t: float
    kind: str
    sign: str
    text: str


class ActionRun(msgspec.Struct, frozen=True, kw_only=True):
    """An action from its request on. `done` of `times` runs ended well; `ended` is None while it goes on."""

    number: int
    action: str
    host: str
    times: int
    begun: float
    ended: float | None = None
    done: int = 0
    detail: str = ""


class StudyState(msgspec.Struct, frozen=True, kw_only=True):
    """A study as far as it has come in this session: its runs, what was looked at, the steps that are done.

    `steps` are those of the whole study, `before` of them were done in earlier sessions.
    """

    study: Study
    steps: int
    before: int = 0
    runs: tuple[StudyRun, ...] = ()
    looks: tuple[StudyLook, ...] = ()
    done: tuple[StudyStepEnded, ...] = ()


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A session at the instant `t`. The empty State() is before anything happened."""

    t: float = 0.0
    started: SessionStarted | None = None
    ended: bool = False
    running: int | None = None
    runs: int = 0
    plans: Mapping[int, LoadPlan] = MappingProxyType({})
    segments: tuple[Segment, ...] = ()
    seconds: Sequence[LoadSecond] = ()
    hosts: Mapping[str, HostState] = MappingProxyType({})
    knobs: Mapping[str, KnobState] = MappingProxyType({})
    changes: tuple[Change, ...] = ()
    actions: tuple[ActionRun, ...] = ()
    markers: tuple[Marker, ...] = ()
    filling: tuple[Filling, ...] = ()
    study: StudyState | None = None

    @property
    def segment(self) -> Segment | None:
        """The row that load is being counted into, or the last one."""
        return self.segments[-1] if self.segments else None
