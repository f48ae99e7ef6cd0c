"""The part of fold that turns host readings into shares, rates, process rows and churn."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.hosts import CpuCounters, HostFacts, HostReading, ProcessCounters
from cockpit.model.markers import mark
from cockpit.model.state import (
    CpuShare,
    HostPoint,
    HostWindow,
    IoRates,
    Marker,
    MemoryUse,
    ProcessRow,
    Segment,
    State,
)

KIB = 1024


def host_changed(state: State, event: ev.HostChanged) -> State:
    host = state.hosts.get(event.host)
    if host is None:
        return state
    changed = replace(
        host,
        condition=event.condition,
        since=event.t if event.condition != host.condition else host.since,
        detail=event.detail,
        facts=event.facts or host.facts,
    )
    state = replace(state, hosts={**state.hosts, event.host: changed})
    if host.condition == "up" and event.condition == "lost":
        gap = Marker(t=event.t, kind="gap", sign="!", text=f"{event.host} lost: {event.detail}")
        state = mark(state, gap)
    return state


def host_sample(state: State, event: ev.HostSample) -> State:
    host = state.hosts.get(event.host)
    if host is None or host.facts is None:
        return state
    before = host.sample if _continues(host.sample, event) else None
    point = _point(before, event, host.facts)
    births, deaths = churn(before.reading, event.reading) if before else (0, 0)
    sampled = replace(
        host,
        sample=event,
        seen=event.t,
        points=(*host.points, point),
        processes=process_rows(before.reading if before else None, event.reading, host.facts),
        births=host.births + births,
        deaths=host.deaths + deaths,
    )
    state = replace(state, hosts={**state.hosts, event.host: sampled})
    return _widen_window(state, event, births, deaths, point.defunct)


def _continues(before: ev.HostSample | None, now: ev.HostSample) -> bool:
    """Whether the two samples are of one boot, so that their counters can be subtracted."""
    if before is None:
        return False
    old, new = before.reading, now.reading
    return new.uptime > old.uptime and new.forks >= old.forks and sum_of(new.cpu) >= sum_of(old.cpu)


def sum_of(counters: CpuCounters) -> int:
    """All time a cpu line counts; guest time is in user and nice already."""
    fields = (counters.user, counters.nice, counters.system, counters.idle)
    return sum(fields) + counters.iowait + counters.irq + counters.softirq + counters.steal


def _point(before: ev.HostSample | None, now: ev.HostSample, facts: HostFacts) -> HostPoint:
    reading = now.reading
    births, deaths = churn(before.reading, reading) if before else (0, 0)
    seconds = reading.uptime - before.reading.uptime if before else 0.0
    return HostPoint(
        t=now.t,
        cpu=cpu_share(before.reading, reading) if before else None,
        io=io_rates(before.reading, reading) if before else None,
        memory=memory_use(reading),
        load=reading.load,
        count=len(reading.processes),
        births=births / seconds if before else None,
        deaths=deaths / seconds if before else None,
        defunct=sum(process.stat.startswith("Z") for process in reading.processes),
        rss=sum(process.rss for process in reading.processes),
        unshared=sum(max(0, process.rss - process.shared) for process in reading.processes),
        probe_cpu=reading.probe_cpu,
        round_trip=now.round_trip,
    )


def cpu_share(old: HostReading, new: HostReading) -> CpuShare | None:
    """CPU between two readings as `sar -u` has it; None when no clock tick passed. Irq time is in system."""
    total = sum_of(new.cpu) - sum_of(old.cpu)
    if total <= 0:
        return None

    def share(*names: str) -> float:
        spent: int = sum(getattr(new.cpu, name) - getattr(old.cpu, name) for name in names)
        return max(0.0, 100 * spent / total)

    return CpuShare(
        user=share("user"),
        nice=share("nice"),
        system=share("system", "irq", "softirq"),
        iowait=share("iowait"),
        steal=share("steal"),
        idle=share("idle"),
    )


def io_rates(old: HostReading, new: HostReading) -> IoRates | None:
    """I/O between two readings as `sar -b` has it; None when a counter fell (a disk went away)."""
    seconds = new.uptime - old.uptime
    names = ("reads", "writes", "discards", "sectors_read", "sectors_written")
    deltas = [getattr(new.io, name) - getattr(old.io, name) for name in names]
    if seconds <= 0 or min(deltas) < 0:
        return None
    reads, writes, discards, read, written = (delta / seconds for delta in deltas)
    return IoRates(tps=reads + writes + discards, rtps=reads, wtps=writes, bread=read, bwrtn=written)


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
    )


def churn(old: HostReading, new: HostReading) -> tuple[int, int]:
    """(births, deaths) between two readings: processes told apart by pid and start time.

    One that became defunct has died, although its row is still there.
    """
    lived = {_identity(process) for process in old.processes if not process.stat.startswith("Z")}
    known = {_identity(process) for process in old.processes}
    living = {_identity(process) for process in new.processes if not process.stat.startswith("Z")}
    there = {_identity(process) for process in new.processes}
    born = there - known
    # A newcomer that is defunct already was born and has died.
    return len(born), len(lived - living) + len(born - living)


def _identity(process: ProcessCounters) -> tuple[int, int]:
    return process.pid, process.start


def process_rows(old: HostReading | None, new: HostReading, facts: HostFacts) -> tuple[ProcessRow, ...]:
    """Rows in pid order; %CPU over the interval, or since the process began where it is younger than that."""
    before = {_identity(process): process for process in old.processes} if old else {}
    boot = new.wall - new.uptime
    rows = []
    for process in new.processes:
        age = max(0.0, new.uptime - process.start / facts.hz)
        earlier = before.get(_identity(process))
        used = process.utime + process.stime
        span = age
        if earlier and old:
            used -= earlier.utime + earlier.stime
            span = new.uptime - old.uptime
        rows.append(
            ProcessRow(
                process=process,
                cpu=100 * max(0, used) / facts.hz / span if span > 0 else 0.0,
                started=boot + process.start / facts.hz,
                age=age,
                new=old is not None and earlier is None,
            )
        )
    return tuple(rows)


def _widen_window(state: State, event: ev.HostSample, births: int, deaths: int, defunct: int) -> State:
    """Counts the sample into the last row: while it goes on, and once more after its end, so that it is covered."""
    segment = state.segment
    if segment is None:
        return state
    window = segment.hosts.get(event.host)
    if segment.end is not None and (window is None or window.last.t >= segment.end):
        return state
    if window is None or not _continues(window.first, event):
        window = HostWindow(first=event, last=event)
    else:
        window = replace(
            window,
            last=event,
            births=window.births + births,
            deaths=window.deaths + deaths,
            most_defunct=max(window.most_defunct, defunct),
        )
    widened = _with_window(segment, event.host, window)
    return replace(state, segments=(*state.segments[:-1], widened))


def _with_window(segment: Segment, name: str, window: HostWindow) -> Segment:
    return replace(segment, hosts={**segment.hosts, name: window})
