"""The part of fold that turns ticks into seconds and segments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model import generators as ge
from cockpit.model.counts import HISTOGRAMS, Counts, Group, LoadCounts, LogCounts, add, total
from cockpit.model.fold.generators import generator_tick
from cockpit.model.histogram import EMPTY
from cockpit.model.host.state import HostPoint, HostState, HostWindow
from cockpit.model.host.window import new_window
from cockpit.model.load.plan import LoadPlan
from cockpit.model.load.seconds import LogSecond, OpenSecond, WorkerSecond, load_second
from cockpit.model.markers import LoadMarker
from cockpit.model.series import replaced
from cockpit.model.state import Change, InFlight, Segment, SegmentBasis, State, mark, with_last_segment
from cockpit.model.tick import Tick

# A worker is the bottleneck if its CPU use plus CPU wait reaches this share of a core, or its p99 lag this time (s).
SATURATED_CPU = 0.95
SATURATED_LAG = 0.010
# A worker with requests in flight is silent after this time (s) without a response.
SILENCE = 0.25

# Open seconds: ticks of a second may arrive until two seconds later.
_FILLING = 3
# Of users' traffic: the counts of a log arrive late after a pause of its host's connection, or the loss of the host.
_FILLING_OF_LOGS = 12
# Decimal places of a worker's shares: 0.01%.
_SHARE_DIGITS = 4


def run_started(state: State, event: ev.RunStarted) -> State:
    changes = _changes_since(state, state.segments[-1].changes_until if state.segments else 0)
    warmup = event.plan.warmup > 0
    segment = Segment(
        number=len(state.segments) + 1,
        run=event.run,
        plan=_plan_of(event.plan, 0),
        basis=_basis(state, changes, event.plan),
        labelled_by="warmup" if warmup else _labelled_by(event.plan),
        changes=tuple(change.letter for change in changes),
        changes_until=len(state.changes),
        warmup=warmup,
        warnings=event.warnings,
        addresses=event.addresses,
        totals=event.totals,
        start=event.t,
        last=event.t,
        hosts=_open_windows(state, idle_since=state.segment.end if state.segment else 0.0),
    )
    return replace(
        state,
        running=event.run,
        runs=max(state.runs, event.run),
        plans={**state.plans, event.run: event.plan},
        segments=(*state.segments, segment),
        in_flight={},
        machines=event.machines,
    )


def load_adjusted(state: State, event: ev.LoadAdjusted) -> State:
    current = state.segment
    if current is None or current.run != event.run:
        return state
    altered = {"concurrency": event.concurrency or current.plan.concurrency, "rate": event.rate or current.plan.rate}
    plan = replace(current.plan, ramp_to=event.ramp_to, **altered)
    if state.running_capacity is not None:
        return with_last_segment(state, replace(current, plan=plan))
    changed = {"plan": plan, "labelled_by": "load"}
    marked = mark(state, LoadMarker(t=event.t, before=current.plan, after=plan))
    if not current.counts.sent:
        return with_last_segment(marked, replace(current, **changed))
    return _continued(marked, current, event.t, changes=(), warnings=(), addresses=(), losses=(), **changed)


def tick(state: State, event: Tick) -> State:
    counts = _counts(event, state.plans.get(event.run))
    state = _count_into_segment(_next_level(state, event), event, counts)
    if event.run == state.running:
        waiting = InFlight(requests=event.in_flight, oldest=event.oldest, silence=event.silence)
        state = replace(state, in_flight={**state.in_flight, event.worker: waiting})
    plan = state.plans.get(event.run)
    return generator_tick(_count_into_second(state, event, _second_counts(counts, plan), plan), event)


def run_ended(state: State, event: ev.RunEnded) -> State:
    segments = tuple(
        replace(segment, end=segment.end or event.t, reason=event.reason, detail=event.detail)
        if segment.run == event.run
        else segment
        for segment in state.segments
    )
    return replace(state, running=None, segments=segments, extension=None, in_flight={})


def worker_lost(state: State, event: ge.WorkerLost) -> State:
    segments = tuple(
        replace(segment, losses=(*segment.losses, event))
        if segment.run == event.run and (segment.end is None or segment.end > event.t)
        else segment
        for segment in state.segments
    )
    return replace(state, segments=segments)


def split_segment(state: State, change: Change) -> State:
    """Start a new segment of the active run because a change became active."""
    current = state.segment
    if state.running is None or current is None or change.ended is None:
        return state
    return _continued(
        state,
        current,
        change.ended,
        basis=SegmentBasis(kind="changes", changes=(change.name,)),
        labelled_by=_labelled_by(state.plans[current.run]),
        changes=(change.letter,),
        changes_until=len(state.changes),
        warnings=(),
        addresses=(),
        losses=(),
        round=0,
    )


def cut(state: State, t: float) -> State:
    """Start a new segment of the active run at `t`, so that the time range after `t` can be measured separately."""
    current = state.segment
    if state.running is None or current is None or not current.start < t:
        return state
    return _continued(state, current, t, changes=())


def cut_for(state: State, run: int, t: float, basis: SegmentBasis, **changed: Any) -> State:
    """Start a new segment of `run` at `t`, labelled by `basis`; without the active run, return the state unchanged."""
    if state.running != run or state.segment is None:
        return state
    following = cut(state, t)
    segment = replace(following.segments[-1], basis=basis, labelled_by="basis", **changed)
    return with_last_segment(following, segment)


def _continued(state: State, current: Segment, t: float, **changed: Any) -> State:
    """End the last segment at `t` and start the next: a copy with empty counts and the fields in `changed`."""
    following = replace(
        current,
        number=current.number + 1,
        start=t,
        last=t,
        counted=None,
        counts=Counts(),
        hosts=_open_windows(state),
        saturated_worker_seconds=0.0,
        worker_cpu={},
        worker_wait={},
        worker_silence={},
        logs={},
        **changed,
    )
    ended = with_last_segment(state, replace(current, end=t))
    return replace(ended, segments=(*ended.segments, following))


def bottlenecks(tick: Tick) -> tuple[bool, bool]:
    """Return whether the worker's CPU was the bottleneck in this tick, and whether its lag was."""
    span = tick.t - tick.start
    busy = span > 0 and (tick.cpu + tick.cpu_wait) / span >= SATURATED_CPU
    return busy, span > 0 and tick.lag.max >= SATURATED_LAG <= tick.lag.percentile(99)


def saturated(tick: Tick) -> bool:
    return any(bottlenecks(tick))


def silent(tick: Tick) -> bool:
    """Return whether the worker has waited for a response for `SILENCE` seconds or more."""
    return min(tick.silence, tick.oldest) >= SILENCE


def _silence(tick: Tick) -> float:
    """Return the silent seconds that a silent tick adds: its length; for the first silent tick the whole wait."""
    waited, span = min(tick.silence, tick.oldest), tick.t - tick.start
    return waited if waited - span < SILENCE else span


def _open_windows(state: State, idle_since: float | None = None) -> dict[str, HostWindow]:
    """Return a new window for each host that is up, with idle metrics if its last interval started at `idle_since` or
    later (None: under load)."""
    return {
        name: new_window(host.sample, _idle_point(host, idle_since))
        for name, host in state.hosts.items()
        if host.sample is not None and host.condition == ev.HostCondition.UP
    }


def _idle_point(host: HostState, since: float | None) -> HostPoint | None:
    points = host.points[-2:]
    idle = since is not None and len(points) == 2 and points[0].t >= since and not host.gap
    return points[1] if idle else None


def _changes_since(state: State, known: int) -> tuple[Change, ...]:
    return tuple(change for change in state.changes[known:] if _is_active(change))


def _is_active(change: Change) -> bool:
    """Return whether the change is active, though it may still wait for confirmation."""
    return change.outcome == "applied" or (not change.outcome and change.active_since is not None)


def _basis(state: State, changes: tuple[Change, ...], plan: LoadPlan) -> SegmentBasis:
    if changes:
        return SegmentBasis(kind="changes", changes=tuple(change.name for change in changes))
    if plan.variants:
        return SegmentBasis(kind="variants", variants=tuple(variant.name for variant in plan.variants))
    return SegmentBasis(kind="again" if state.segments else "baseline")


def _labelled_by(plan: LoadPlan) -> Literal["basis", "load"]:
    return "load" if plan.stages or plan.http2 else "basis"


def _plan_of(plan: LoadPlan, stage: int) -> LoadPlan:
    if not plan.stages:
        return plan
    level = plan.stages[min(stage, len(plan.stages) - 1)]
    concurrency = level.concurrency or plan.concurrency
    return replace(plan, concurrency=concurrency, rate=level.rate, ramp_to=level.ramp_to, duration=level.duration)


def _counts(tick: Tick, plan: LoadPlan | None) -> Counts:
    shared = {name: getattr(tick, name) for name in LoadCounts.__struct_fields__}
    return Counts(refused=_refused(tick, plan), **shared)


def _refused(tick: Tick, plan: LoadPlan | None) -> int:
    """Return the number of responses with status 400 or higher to requests without an expectation; of users' requests
    only those that the server failed."""
    if plan is not None and plan.traffic:
        return sum(count for status, count in tick.statuses.items() if status >= 500)
    if plan is None or not plan.mix or plan.variants:
        return 0 if plan is not None and _expects(plan) else _from_400(tick.statuses)
    names = [request.name for request in plan.mix if request.expect is None]
    return sum(_from_400(tick.groups[name].statuses) for name in names if name in tick.groups)


def _expects(plan: LoadPlan) -> bool:
    return any(request.expect is not None for request in plan.mix or (plan,))


def _from_400(statuses: dict[int, int]) -> int:
    return sum(count for status, count in statuses.items() if status >= 400)


def _next_level(state: State, tick: Tick) -> State:
    """Start a new segment if the tick is the first of its load level, or the first after the warm-up."""
    last = state.segment
    if last is None or last.run != tick.run or _level(tick) <= _level(last):
        return state
    # A load that was altered during the warm-up stays.
    warmed_up = last.warmup and tick.stage == last.stage
    return _continued(
        state,
        last,
        tick.start,
        plan=last.plan if warmed_up else _plan_of(state.plans[tick.run], tick.stage),
        labelled_by=_labelled_by(state.plans[tick.run]),
        changes=last.changes if last.warmup else (),
        stage=tick.stage,
        warmup=tick.warmup,
    )


def _level(of: Tick | Segment) -> tuple[bool, int]:
    return not of.warmup, of.stage


def segment_of(state: State, tick: Tick) -> int | None:
    """Return the index of the segment in which the tick started (a change does not split a tick); None: unknown
    run."""
    segments = enumerate(state.segments)
    same_level = [at for at, segment in segments if segment.run == tick.run and _level(segment) == _level(tick)]
    started = [at for at in same_level if state.segments[at].start <= tick.start]
    return started[-1] if started else next(iter(same_level), None)


def _count_into_segment(state: State, tick: Tick, counts: Counts) -> State:
    at = segment_of(state, tick)
    if at is None:
        return state
    segment = state.segments[at]
    lost = tick.t - tick.start if saturated(tick) else 0.0
    counted = replace(
        segment,
        counts=add(segment.counts, counts),
        last=max(segment.last, tick.t),
        # The first ticks may start later: those that a cut falls into count in the segment before.
        counted=tick.start if segment.counted is None else min(segment.counted, tick.start),
        saturated_worker_seconds=total(segment.saturated_worker_seconds, lost),
        worker_cpu=_plus(segment.worker_cpu, tick.worker, tick.cpu),
        worker_wait=_plus(segment.worker_wait, tick.worker, tick.cpu_wait),
        worker_silence=_plus(segment.worker_silence, tick.worker, _silence(tick))
        if silent(tick)
        else segment.worker_silence,
        logs=_log_counts(segment, tick),
    )
    return replace(state, segments=(*state.segments[:at], counted, *state.segments[at + 1 :]))


def _log_counts(segment: Segment, tick: Tick) -> Mapping[str, LogCounts]:
    """Return the counts of each host's log with those of a tick; each worker reads one log."""
    if tick.worker >= len(segment.plan.traffic):
        return segment.logs
    host = segment.plan.traffic[tick.worker].host
    return {**segment.logs, host: add(segment.logs.get(host, LogCounts()), LogCounts.of(tick))}


def _plus(table: Mapping[int, float], worker: int, seconds: float) -> dict[int, float]:
    return {**table, worker: total(table.get(worker, 0.0), seconds)}


def _count_into_second(state: State, tick: Tick, counts: Counts, plan: LoadPlan | None) -> State:
    """Add a tick to the second that contains the middle of its interval, or to the oldest open second."""
    second = int((tick.start + tick.t) / 2)
    open_seconds = {filling.second: filling for filling in state.filling}
    if open_seconds and second < min(open_seconds):
        second = min(open_seconds)
    filled = _fill(open_seconds.get(second), second, tick, counts)
    if plan is not None and len(plan.traffic) > 1:
        filled = _with_log(filled, tick.worker, counts)
    if state.generator is not None:
        filled = replace(filled, other=state.generator.other, idle=state.generator.idle)
    open_seconds[second] = filled
    filling = tuple(open_seconds[key] for key in sorted(open_seconds))
    kept = _FILLING_OF_LOGS if plan is not None and plan.traffic else _FILLING
    closed = tuple(map(load_second, filling[:-kept]))
    if closed:
        state = replace(state, closed_seconds=replaced(state.closed_seconds, len(state.closed_seconds), closed))
    return replace(state, filling=filling[-kept:])


def _fill(filling: OpenSecond | None, second: int, tick: Tick, counts: Counts) -> OpenSecond:
    span = tick.t - tick.start
    lost = span if saturated(tick) else 0.0
    before = filling or OpenSecond(second=second, start=tick.start, end=tick.t, counts=Counts())
    worker = _worker_second(before.workers.get(tick.worker) or WorkerSecond(), tick, span)
    return OpenSecond(
        second=second,
        start=min(before.start, tick.start),
        end=max(before.end, tick.t),
        counts=add(before.counts, counts),
        workers={**before.workers, tick.worker: worker},
        span=total(before.span, span),
        saturated=total(before.saturated, lost),
        pause=max(before.pause, tick.pause),
    )


def _with_log(filling: OpenSecond, worker: int, counts: Counts) -> OpenSecond:
    known = filling.workers[worker]
    completed, failed, unread = known.log or LogSecond(0, 0)
    log = LogSecond(completed + counts.completed, failed + counts.failed, unread + counts.unread)
    return replace(filling, workers={**filling.workers, worker: replace(known, log=log)})


def _worker_second(before: WorkerSecond, tick: Tick, span: float) -> WorkerSecond:
    known, cpu, waited = total(before.span, span), total(before.cpu, tick.cpu), total(before.waited, tick.cpu_wait)
    return WorkerSecond(
        span=known,
        cpu=cpu,
        waited=waited,
        share=round(cpu / known, _SHARE_DIGITS) if known else 0.0,
        wait=round(waited / known, _SHARE_DIGITS) if known else 0.0,
        connections=tick.connections,
        in_flight=tick.in_flight,
        log=before.log,
    )


def _second_counts(counts: Counts, plan: LoadPlan | None) -> Counts:
    """Return only the counts that the metrics of a second need, with coarse latencies, and those of variants."""
    unused: dict[str, Any] = {name: EMPTY for name in HISTOGRAMS if name != "lag"}
    unused[counts.latency_name] = counts.latency.coarse()
    variants = counts.groups if plan is not None and plan.variants else {}
    groups = {name: _variant_counts(group, plan) for name, group in variants.items()}
    return replace(counts, groups=groups, statuses={}, **unused)


def _variant_counts(group: Group, plan: LoadPlan | None) -> Group:
    """Return the counts of a variant with coarse latencies, and only those statuses that count as failed."""
    failed = {} if plan is None or _expects(plan) else {code: n for code, n in group.statuses.items() if code >= 400}
    return replace(group, statuses=failed, service=group.service.coarse(), response=group.response.coarse())
