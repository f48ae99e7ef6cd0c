"""Results of runs: the sum of their segments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from cockpit.model.counts import Counts, LogCounts, add, log_rate
from cockpit.model.generators import WorkerLost
from cockpit.model.histogram import Histogram
from cockpit.model.host.state import HostWindow
from cockpit.model.host.window import join_windows
from cockpit.model.load.plan import LoadPlan, RunTotals
from cockpit.model.state import Segment, State


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The sum of all segments of a run, without its warm-up. `saturated`: seconds in which the generator was the
    bottleneck; `stalled`: seconds without any response while requests were in flight; `warmup`: length of the warm-up
    (s)."""

    run: int
    plan: LoadPlan
    counts: Counts
    seconds: float
    hosts: Mapping[str, HostWindow]
    segments: tuple[Segment, ...] = ()
    warmup: float = 0.0
    altered: bool = False
    warnings: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    worker_cpu: Mapping[int, float] = {}
    worker_wait: Mapping[int, float] = {}
    logs: Mapping[str, LogCounts] = {}
    saturated: float
    stalled: float
    losses: tuple[WorkerLost, ...]
    reason: str
    detail: str

    @property
    def totals(self) -> RunTotals | None:
        """The source of metrics that were imported from a summary; of several runs, the first such source."""
        return next((segment.totals for segment in self.segments if segment.totals is not None), None)

    @property
    def rate(self) -> float:
        """Responses/s; 0 if nothing was measured. Of users' traffic: while logs were read."""
        return log_rate(self.logs, self.seconds) if self.logs else self.per_s(self.counts.completed)

    def per_s(self, count: int) -> float:
        """Return a count of the run per second; 0 if nothing was measured."""
        return count / self.seconds if self.seconds > 0 else 0.0

    @property
    def generator(self) -> tuple[float, ...]:
        """CPU of each worker by number, 1.0 is a whole core."""
        return tuple(cpu / self.seconds for cpu in self.worker_cpu.values()) if self.seconds > 0 else ()

    @property
    def generator_cpu(self) -> float:
        """CPU of the busiest worker, 1.0 is a whole core."""
        return max(self.generator, default=0.0)

    @property
    def cpu_wait(self) -> float:
        """The largest share of the time in which a worker was runnable and waited for a CPU."""
        return max(self.worker_wait.values(), default=0.0) / self.seconds if self.seconds > 0 else 0.0


def run_result(state: State, run: int) -> RunResult | None:
    """Return the result of a run, finished or not; None if there is no such run."""
    all_segments = [segment for segment in state.segments if segment.run == run]
    if not all_segments:
        return None
    # A run that ended during its warm-up has no other segment.
    segments = [segment for segment in all_segments if not segment.warmup] or all_segments
    seconds = segments[-1].last - segments[0].start
    warmup = sum(segment.seconds for segment in all_segments if segment.warmup and segment not in segments)
    result = segments_result(segments, state.plans[run], seconds, warmup)
    first = all_segments[0]
    return msgspec.structs.replace(result, warnings=first.warnings, addresses=first.addresses)


def all_results(state: State) -> list[RunResult]:
    """Return the results of all runs so far."""
    results = (run_result(state, run) for run in range(1, state.runs + 1))
    return [result for result in results if result is not None]


def runs_result(results: Sequence[RunResult]) -> RunResult:
    """Return several runs (at least one) with the same load as one result."""
    if len(results) == 1:
        return results[0]
    segments = [segment for result in results for segment in result.segments]
    seconds, warmup = (sum(getattr(result, name) for result in results) for name in ("seconds", "warmup"))
    whole = segments_result(segments, results[0].plan, seconds, warmup)
    early = (result for reason in ("failed", "stopped") for result in results if result.reason == reason)
    worst = next(early, results[-1])
    return msgspec.structs.replace(
        whole,
        warnings=_once(result.warnings for result in results),
        addresses=_once(result.addresses for result in results),
        reason=worst.reason,
        detail=worst.detail,
    )


def segments_result(segments: Sequence[Segment], plan: LoadPlan, seconds: float, warmup: float = 0.0) -> RunResult:
    """Return segments (at least one) as one result, `seconds` long."""
    counts = Counts()
    for segment in segments:
        counts = add(counts, segment.counts)
    loads = {(segment.stage, segment.plan.concurrency, segment.plan.rate, segment.plan.ramp_to) for segment in segments}
    return RunResult(
        run=segments[0].run,
        plan=plan,
        counts=counts,
        seconds=seconds,
        hosts=_merged_windows(segments),
        segments=tuple(segments),
        warmup=warmup,
        altered=len(loads) > len({segment.stage for segment in segments}),
        warnings=_once(segment.warnings for segment in segments),
        addresses=_once(segment.addresses for segment in segments),
        worker_cpu=_summed(segment.worker_cpu for segment in segments),
        worker_wait=_summed(segment.worker_wait for segment in segments),
        saturated=sum(segment.saturated for segment in segments),
        stalled=sum(segment.stalled for segment in segments),
        losses=tuple(dict.fromkeys(loss for segment in segments for loss in segment.losses)),
        logs=_merged_logs(segments),
        reason=segments[-1].reason,
        detail=segments[-1].detail,
    )


def _once(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for texts in lists for text in texts))


def _summed(tables: Iterable[Mapping[int, float]]) -> dict[int, float]:
    total: dict[int, float] = {}
    for table in tables:
        for key, value in table.items():
            total[key] = total.get(key, 0.0) + value
    return dict(sorted(total.items()))


def _merged_logs(segments: Sequence[Segment]) -> dict[str, LogCounts]:
    merged: dict[str, LogCounts] = {}
    for segment in segments:
        for host, log in segment.logs.items():
            merged[host] = add(merged.get(host, LogCounts()), log)
    return merged


def _merged_windows(segments: Sequence[Segment]) -> dict[str, HostWindow]:
    merged: dict[str, HostWindow] = {}
    for segment in segments:
        for name, window in segment.hosts.items():
            before = merged.get(name)
            merged[name] = join_windows(before, window) if before else window
    return merged


def latency(counts: Counts, name: str) -> Histogram:
    """Return a histogram by name; the response time of closed load is the service time."""
    histogram: Histogram = getattr(counts, name)
    return counts.service if name == "response" and not histogram.count else histogram
