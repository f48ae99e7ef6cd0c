"""A synthetic, deterministic session: three runs, three changes, a lost host, hostile process titles."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import numpy as np
from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.histogram import Histogram
from cockpit.model.host.samples import (
    CpuCounters,
    DiskCounters,
    HostConfig,
    HostFacts,
    HostReading,
    IoCounters,
    MemCounters,
    NetCounters,
    ProcessCounters,
)
from cockpit.model.knobs import Knob, Setting
from cockpit.model.load.plan import LoadPlan

WALL = 1_767_261_600.0  # 2026-01-01 10:00:00 UTC
MIB = 1024 * 1024
# Seconds per tick; longer than in a live run, because tests fold all ticks.
TICK = 0.25
FACTS = HostFacts(hostname="web1", kernel="6.1.0", cpus=2, hz=100, page=4096)
FILE = "/etc/apache2/mods-available/mpm_prefork.conf"

HOSTILE = (
    "/usr/sbin/apache2 \x1b[31mred\x1b[0m -k start",
    "[red]not markup[/red] [bold",
    "/usr/sbin/apache2 日本語のタイトル 全角 -k start",
    "\u202egnp.exe\x07\x9b2J\n\nROOT",
)


def knobs() -> tuple[Knob, ...]:
    """Return three knobs of one file; the last allows only three values."""
    values = {"MinSpareServers": (), "MaxSpareServers": (), "MaxConnectionsPerChild": ("0", "10", "1000")}
    place = {"host": "web1", "file": FILE, "section": "IfModule mpm_prefork_module"}
    commands = {"test": "apachectl -t", "reload": "apachectl graceful"}
    return tuple(Knob(name=name, directive=name, values=each, **place, **commands) for name, each in values.items())


def plan(**settings: object) -> LoadPlan:
    """Return a plan with 20 connections and without keep-alive."""
    chosen: dict[str, object] = {"concurrency": 20, "requests": 10000, "keepalive": False, **settings}
    return LoadPlan(url="http://web1/hello.html", **chosen)  # type: ignore[arg-type]


@dataclass
class Server:
    """Counters of a prefork server as the probe reads them; `churn` is the number of workers replaced per second."""

    name: str
    random: random.Random
    workers: int = 12
    churn: float = 0.0
    busy: float = 0.02
    uptime: float = 86_400.0
    processes: list[ProcessCounters] = field(default_factory=list)
    titles: tuple[str, ...] = ()
    cpu_ticks: dict[str, float] = field(
        default_factory=lambda: {"user": 9e5, "system": 4e5, "idle": 1.6e7, "iowait": 9e3}
    )
    written: int = 812_000
    forks: int = 40_000
    pid: int = 2010
    due: float = 0.0
    comm: str = "apache2"
    command: str = "/usr/sbin/apache2 -k start"
    sent: float = 4e8

    def __post_init__(self) -> None:
        self.processes = [self._worker("Ss", self.command, 7200.0)]
        self.processes += [self._worker("S", title, 3 * 86_400.0) for title in self.titles]
        self.permanent = len(self.processes)
        self.processes += [self._worker("S", self.command, 600.0) for _ in range(self.workers)]

    def _worker(self, stat: str, command: str, age: float = 0.3) -> ProcessCounters:
        self.pid += self.random.randint(1, 3)
        self.forks += 1
        return ProcessCounters(
            pid=self.pid,
            ppid=2010,
            start=int((self.uptime - age) * FACTS.hz),
            stat=stat,
            comm=self.comm,
            utime=int(age) // 60,
            stime=int(age) // 90,
            threads=1,
            vsz=211 * MIB + self.random.randint(0, 4) * 4096,
            rss=11 * MIB + self.random.randint(0, 99) * 4096,
            shared=6 * MIB,
            command=command,
            user="www-data" if stat == "S" else "root",
            pss=3 * MIB,
        )

    def step(self, seconds: float) -> None:
        """Advance by `seconds`: CPU time and I/O counters grow, and workers are replaced."""
        self.uptime += seconds
        shares = {"user": 0.62 * self.busy, "system": 0.36 * self.busy, "iowait": 0.02 * self.busy}
        shares["idle"] = 1.0 - sum(shares.values())
        for kind, share in shares.items():
            self.cpu_ticks[kind] += share * seconds * FACTS.hz * FACTS.cpus
        self.written += int(self.random.uniform(60, 400) * seconds)
        self.sent += 9e6 * self.busy * seconds
        self.processes = [process for process in self.processes if not process.stat.startswith("Z")]
        self.due += self.churn * seconds
        permanent, workers = self.processes[: self.permanent], self.processes[self.permanent :]
        per_worker = self.busy * FACTS.cpus * FACTS.hz * seconds / max(1, len(workers))
        workers = [self._advanced(worker, per_worker) for worker in workers]
        while self.due >= 1 and workers:
            self.due -= 1
            exited = workers.pop(0)
            if self.due < 1:
                workers.append(replace(exited, stat="Z", command="", rss=0, shared=0, vsz=0))
            workers.append(self._worker("S", self.command))
        self.processes = [*permanent, *sorted(workers, key=lambda process: process.pid)]

    def _advanced(self, worker: ProcessCounters, ticks: float) -> ProcessCounters:
        used = int(ticks * self.random.uniform(0.6, 1.6))
        stat = "R" if used and self.random.random() < 0.3 else "S"
        return replace(worker, utime=worker.utime + used // 2, stime=worker.stime + used - used // 2, stat=stat)

    def reading(self, now: float) -> HostReading:
        cpu_ticks = {kind: int(ticks) for kind, ticks in self.cpu_ticks.items()}
        used = 620 * 1024 + int(900 * 1024 * self.busy) + 12 * 1024 * len(self.processes)
        total, caches = 3_915 * 1024, (80_000, 700_000, 60_000, 20_000)
        return HostReading(
            uptime=self.uptime,
            wall=WALL + now,
            cpu=CpuCounters(cpu_ticks["user"], 0, cpu_ticks["system"], cpu_ticks["idle"], cpu_ticks["iowait"], 0, 0, 0),
            memory=MemCounters(total, total - used - 900_000, total - used, *caches, 524_288, 524_288),
            io=IoCounters(120_400, self.written // 24, 0, 2_400_000, self.written),
            load=(round(self.busy * 2.1, 2), 0.61, 0.4),
            forks=self.forks,
            processes=tuple(self.processes),
            probe_cpu=0.0031,
            cores=self._cores(cpu_ticks),
            disks=self._disks(),
            nets=self._nets(),
            running=1 + round(3 * self.busy),
            counters=self._counters(),
            accept={80: round(40 * self.busy), 22: 0},
            backlog={80: 511, 22: 128},
        )

    def _counters(self) -> dict[str, int]:
        """Counters of each group of sar, without swap and memory pressure, as on an old kernel."""
        requests = int(self.sent) // 9000
        zero = "pgscan_kswapd pgscan_direct pgsteal_kswapd RAW.inuse FRAG.inuse io.some Tcp.AttemptFails Tcp.InErrs"
        return {
            **dict.fromkeys((*zero.split(), "SwapCached"), 0),
            "pgpgin": 1_200_000,
            "pgpgout": self.written // 2,
            "pgfault": 310 * self.forks,
            "pgmajfault": 80,
            "pgfree": 400 * self.forks,
            "ctxt": 9 * requests,
            "runnable": 2 + round(3 * self.busy),
            "tasks": 100 + len(self.processes),
            "sockets.used": 180,
            "TCP.inuse": 22,
            "TCP.tw": round(900 * self.busy),
            "UDP.inuse": 4,
            "cpu.some": int(2e3 * self.cpu_ticks["user"]),
            "Tcp.ActiveOpens": 12,
            "Tcp.PassiveOpens": requests,
            "Tcp.InSegs": 6 * requests,
            "Tcp.OutSegs": 5 * requests,
            "Tcp.RetransSegs": requests // 900,
            "Tcp.EstabResets": 3,
            "Tcp.OutRsts": 8,
            "TcpExt.ListenOverflows": requests // 300,
            "TcpExt.ListenDrops": requests // 300,
            "Slab": 90_000,
            "Active": 700_000,
            "Inactive": 500_000,
            "Dirty": 240,
            "Committed_AS": 1_900_000,
        }

    def _cores(self, cpu_ticks: dict[str, int]) -> tuple[CpuCounters, ...]:
        """Two cores; the first has 60% of the load."""
        total, cores = sum(cpu_ticks.values()) // FACTS.cpus, []
        for share in (0.6, 0.4):
            user, system, waited = (int(share * cpu_ticks[kind]) for kind in ("user", "system", "iowait"))
            cores.append(CpuCounters(user, 0, system, total - user - system - waited, waited, 0, 0, 0))
        return tuple(cores)

    def _disks(self) -> tuple[DiskCounters, ...]:
        writes = self.written // 24
        counters = (120_400, writes, 0, 2_400_000, self.written, 0, 88_000, 3 * writes, 0, 2 * writes, 3 * writes)
        return (DiskCounters("vda", *counters), DiskCounters("nvme1n1", *(0 for _ in counters)))

    def _nets(self) -> tuple[NetCounters, ...]:
        sent = int(self.sent)
        return (
            NetCounters("lo", 90_000, 900, 0, 0, 90_000, 900, 0, 0),
            NetCounters("eth0", sent // 6, sent // 900, 0, 0, sent, sent // 1100, 0, 0),
        )


@dataclass(frozen=True)
class Load:
    """Load of one run: responses/s, median (ms) and sigma of the log-normal latency, and the share of failures."""

    rate: float
    median: float
    tail: float
    failing: float = 0.0


BEFORE = Load(rate=1180, median=14.0, tail=0.75)
AFTER = Load(rate=1395, median=12.6, tail=0.42)


def session_started(hosts: int = 1) -> ev.SessionStarted:
    """Return the first event of a session with that many hosts."""
    configs = [HostConfig(name=f"web{n + 1}", ssh=f"root@web{n + 1}", processes=("apache2",)) for n in range(hosts)]
    return ev.SessionStarted(
        t=0.0,
        wall=WALL,
        version="0.1.0",
        name="spare-servers",
        question="Do more spare servers make Apache steadier?",
        target="http://web1/hello.html",
        hosts=tuple(configs),
        knobs=knobs(),
    )


def tick(run: int, start: float, load: Load, rng: np.random.Generator, **more: object) -> ev.Tick:
    """Return a tick of one worker over `TICK` seconds."""
    wave = 1 + 0.06 * math.sin(start / 3.1) + 0.03 * math.sin(start * 1.7)
    completed = int(rng.poisson(load.rate * wave * TICK))
    failed = int(completed * load.failing)
    times = (load.median * 1e6 * rng.lognormal(0.0, load.tail, completed)).astype(np.int64)
    values: dict[str, object] = {
        "sent": completed,
        "completed": completed,
        "statuses": {200: completed - failed, **({503: failed} if failed else {})},
        "bytes_received": completed * 358,
        "connections": 20,
        "cpu": 0.41 * TICK,
        "connect": Histogram.of(times // 40),
        "first_byte": Histogram.of(times - times // 20),
        "service": Histogram.of(times),
        "lag": Histogram.of(rng.integers(40_000, 240_000, 20)),
        **more,
    }
    return ev.Tick(t=round(start + TICK, 3), run=run, worker=0, start=round(start, 3), **values)  # type: ignore[arg-type]


def _change(
    t: float, letter: str, values: dict[str, tuple[str, str]], outcome: ev.ChangeOutcome, detail: str = ""
) -> Iterator[ev.AnyEvent]:
    settings = tuple(Setting(knob=name, old=old, new=new) for name, (old, new) in values.items())
    yield ev.ChangeBegun(t=t, change=letter, host="web1", settings=settings)
    yield ev.ChangeEnded(t=t + 1, change=letter, outcome=outcome, detail=detail)


@cache
def _all_events(hosts: int, hostile: bool) -> list[ev.AnyEvent]:
    return Scenario(hosts, hostile).all()


@dataclass
class Scenario:
    """Ordered events of the first 100 seconds of a session."""

    hosts: int = 1
    hostile: bool = False
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def events(self, until: float = 100.0) -> list[ev.AnyEvent]:
        """Return all events up to and including second `until`."""
        return [event for event in _all_events(self.hosts, self.hostile) if event.t <= until]

    def all(self) -> list[ev.AnyEvent]:
        """Generate all events, uncached."""
        events = [session_started(self.hosts), *self._runs(), *self._changes()]
        for at in range(self.hosts):
            events += self._host(f"web{at + 1}", at)
        return sorted(events, key=lambda event: event.t)

    def _runs(self) -> Iterator[ev.AnyEvent]:
        """Run 1 as configured; run 2 with change B and 3 s of saturation; run 3 with 40 connections."""
        yield from self._run(1, plan().without_secrets(), 5.0, 35.0, BEFORE, "completed")
        yield from self._run(2, plan(), 45.0, 78.0, AFTER, "stopped")
        failing = Load(rate=1310, median=25.0, tail=0.6, failing=0.02)
        yield from self._run(3, plan(concurrency=40), 90.0, 93.0, failing, "completed")

    def _run(
        self,
        run: int,
        load_plan: LoadPlan,
        start: float,
        end: float,
        load: Load,
        reason: Literal["completed", "stopped"],
    ) -> Iterator[ev.AnyEvent]:
        yield ev.RunStarted(t=start, run=run, plan=load_plan, addresses=("192.0.2.7",))
        for at in np.arange(start, end, TICK).tolist():
            saturated = {"cpu": 0.991 * TICK} if 60.0 <= at < 63.0 else {}
            yield tick(run, at, load, self.rng, **saturated)
        yield ev.RunEnded(t=end, run=run, reason=reason)

    def _changes(self) -> Iterator[ev.AnyEvent]:
        for name, value in (("MinSpareServers", "5"), ("MaxSpareServers", "10"), ("MaxConnectionsPerChild", "10")):
            yield ev.KnobRead(t=0.4, knob=name, host="web1", value=value)
        spare = {"MinSpareServers": ("5", "20"), "MaxSpareServers": ("10", "40")}
        yield from _change(39.0, "A", spare, "applied")
        yield from _change(69.0, "B", {"MaxConnectionsPerChild": ("10", "1000")}, "applied")
        detail = "apachectl -t: MinSpareServers requires one argument, a number"
        yield from _change(81.0, "C", {"MinSpareServers": ("20", "many")}, "rolled back", detail)
        yield ev.Note(t=85.0, text="asked Ann about the disk")

    def _host(self, name: str, at: int) -> list[ev.AnyEvent]:
        """One sample per second; the second host is lost from 50 to 66 s."""
        titles = HOSTILE if self.hostile else ()
        server = Server(name=name, random=random.Random(at), pid=2010 + 7000 * at, titles=titles)
        found: list[ev.AnyEvent] = [
            ev.HostChanged(t=0.05, host=name, condition="connecting"),
            ev.HostChanged(t=0.3, host=name, condition="up", facts=FACTS),
        ]
        if at == 1:
            found.append(ev.HostChanged(t=50.0, host=name, condition="lost", detail="connection reset by peer"))
            found.append(ev.HostChanged(t=66.2, host=name, condition="up", facts=FACTS))
        for second in range(100):
            now = second + 0.5 + at / 7
            server.busy, server.churn = self._activity(now, at)
            server.step(1.0)
            if at != 1 or not 49.9 < now < 66.2:
                found.append(ev.HostSample(t=round(now, 3), host=name, round_trip=0.004, reading=server.reading(now)))
        return found

    def _activity(self, now: float, at: int) -> tuple[float, float]:
        if at:
            return 0.08, 0.0
        if 5 < now < 35:
            return 0.78, 8.4
        if 45 < now < 78:
            return 0.86, 1.2 if now < 70 else 0.2
        return (0.7, 0.4) if 90 < now < 93 else (0.02, 0.0)
