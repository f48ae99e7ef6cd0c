"""The part of fold for host feeds: conditions and samples."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.fold.other_load import claimed_cpu, claims_at, cpu_split
from cockpit.model.fold.restarts import mark_restarts
from cockpit.model.host import sar
from cockpit.model.host.rates import ReadingStep, memory_use, step_between
from cockpit.model.host.samples import HostFacts, HostReading, identity
from cockpit.model.host.state import GroupUse, HostPoint, HostState, HostWindow, ProcessRow
from cockpit.model.host.window import extend_window, idle_metrics, new_window
from cockpit.model.markers import GapMarker
from cockpit.model.series import LazySequence, replaced
from cockpit.model.state import Segment, State, mark, with_host, with_last_segment

# Seconds after a run in which the metrics of the idle host are updated; the last sample counts.
IDLE_AFTER = 5.0
# Maximum error of a sample's timestamp (s).
_UPTIME_SLACK = 1.0


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
        gap=host.gap or event.condition not in ev.CONNECTED,
    )
    state = with_host(state, changed)
    if host.condition in ev.CONNECTED and event.condition == ev.HostCondition.LOST:
        state = mark(state, GapMarker(t=event.t, host=event.host, detail=event.detail))
    return state


def host_sample(state: State, event: ev.HostSample) -> State:
    host = state.hosts.get(event.host)
    if host is None or host.facts is None:
        return state
    before = host.sample
    same_boot = before is not None and _continues(before, event)
    step = step_between(before.reading, event.reading, host.facts) if before and same_boot else None
    # After a gap the mean would cover the time in which the host was lost: leave it out of the charts.
    recent = None if host.gap else step
    claimed = claimed_cpu(host, event, step)
    claims = claims_at(state, claimed, event)
    split = cpu_split(claimed, event, recent, claims)
    point = replace(_point(recent, event), servers=split.servers, generator=split.generator, other=split.other)
    sampled = replace(
        claimed,
        claims=claims,
        sample=event,
        seen=event.t,
        points=replaced(host.points, len(host.points), (point,)),
        spawned=host.spawned + (step.spawned if step else 0),
        exited=host.exited + (step.exited if step else 0),
        gap=False,
    )
    sampled = with_rows(sampled, before.reading if before and same_boot else None, recent)
    widened = _widen_window(state, host, event, step, point)
    return mark_restarts(with_host(widened, sampled), event)


def with_rows(host: HostState, before: HostReading | None, step: ReadingStep | None) -> HostState:
    sample, facts = host.sample, host.facts
    if sample is None or facts is None:
        return host
    return replace(
        host,
        processes=LazySequence(lambda: process_rows(before, sample.reading, facts)),
        cores=step.cores if step else (),
        disks=tuple(disk for disk, _ in step.disks) if step else (),
        nets=step.nets if step else (),
        sar={**sar.levels(sample.reading), **(step.rates if step else {})},
    )


def recompute_rows(host: HostState, before: ev.HostSample | None, *, recent: bool) -> HostState:
    """Recompute the rows of a host from its kept sample and the sample `before`, as `host_sample` did.

    `recent`: the host was not lost between the two samples.
    """
    if before is None or host.sample is None or host.facts is None or not _continues(before, host.sample):
        return with_rows(host, None, None)
    step = step_between(before.reading, host.sample.reading, host.facts) if recent else None
    return with_rows(host, before.reading, step)


def _continues(before: ev.HostSample, now: ev.HostSample) -> bool:
    """Return whether both samples are of the same boot, so that their counters can be subtracted."""
    old, new = before.reading, now.reading
    rebooted = new.uptime < now.t - before.t - _UPTIME_SLACK
    return new.uptime > old.uptime and new.forks >= old.forks and not rebooted


def _point(step: ReadingStep | None, now: ev.HostSample) -> HostPoint:
    reading = now.reading
    processes = reading.processes
    return HostPoint(
        t=now.t,
        cpu=step.cpu if step else None,
        io=step.io if step else None,
        net=step.net if step else None,
        memory=memory_use(reading),
        load=reading.load,
        count=len(processes),
        spawned=step.spawned / step.seconds if step else None,
        exited=step.exited / step.seconds if step else None,
        unseen=max(0, step.forks - step.spawned) if step else None,
        defunct=sum([process.stat[:1] == "Z" for process in processes]),
        rss=sum([process.rss for process in processes]),
        unshared=sum([process.rss - process.shared for process in processes if process.rss > process.shared]),
        pss=reading.pss,
        threads=sum([process.threads for process in processes]),
        files=reading.counters.get("files.open"),
        running=reading.running,
        blocked=reading.blocked,
        probe_cpu=reading.probe_cpu,
        round_trip=now.round_trip,
        hidden=reading.hidden,
        group=_group(reading, step),
        speed=step.rates.get(sar.SPEED_METRIC) if step else None,
        wait=step.times.wait if step and step.times else None,
        busiest=step.times.busiest if step and step.times else None,
        accept=max(reading.accept.values(), default=None),
    )


def _group(reading: HostReading, step: ReadingStep | None) -> GroupUse | None:
    values = sar.group_values(reading, step.rates if step else {})
    known = {name: round(value, 3) for name, value in values.items() if name in GroupUse.__struct_fields__}
    return GroupUse(**known) if known else None


def process_rows(old: HostReading | None, new: HostReading, facts: HostFacts) -> tuple[ProcessRow, ...]:
    """Return rows in pid order; %CPU over the interval, or since the process started if that is shorter."""
    before = {identity(process): process for process in old.processes} if old else {}
    boot = new.wall - new.uptime
    rows = []
    for process in new.processes:
        age = max(0.0, new.uptime - process.start / facts.hz)
        earlier = before.get(identity(process))
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


def _widen_window(
    state: State, host: HostState, event: ev.HostSample, step: ReadingStep | None, point: HostPoint
) -> State:
    """Add the sample to the window of the last segment, up to the first sample after its end, so that the end is
    covered. Later samples update the metrics of the idle host."""
    segment = state.segment
    if segment is None:
        return state
    window = segment.hosts.get(event.host)
    if segment.end is not None and (window is None or window.last.t >= segment.end):
        if window is None or not _is_idle_after(state, segment.end, host, event):
            return state
        return _with_last_window(state, segment, event.host, replace(window, after=idle_metrics(point)))
    if window is None or not host.points:
        window = new_window(event)
    else:
        window = extend_window(window, event, step, (host.points[-1], point), gap=host.gap)
    return _with_last_window(state, segment, event.host, window)


def _is_idle_after(state: State, end: float, host: HostState, event: ev.HostSample) -> bool:
    """Return whether the sample's interval is within `IDLE_AFTER` seconds after the end of the run."""
    since = host.points[-1].t if host.points else 0.0
    return state.running is None and not host.gap and since >= end and event.t <= end + IDLE_AFTER


def _with_last_window(state: State, segment: Segment, name: str, window: HostWindow) -> State:
    return with_last_segment(state, replace(segment, hosts={**segment.hosts, name: window}))
