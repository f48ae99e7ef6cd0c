"""A run as one result, and its metrics by the names that thresholds, tables and JSON use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from cockpit.model.fold_load import add
from cockpit.model.histogram import Histogram
from cockpit.model.host_figures import HOST_FIGURES, host_figures, is_host_figure
from cockpit.model.host_state import HostWindow
from cockpit.model.host_window import joined
from cockpit.model.load import LoadPlan
from cockpit.model.state import Counts, Segment, State

__all__ = [
    "HOST_FIGURES",
    "LATENCIES",
    "RunResult",
    "figure",
    "host_figures",
    "is_figure",
    "is_host_figure",
    "is_latency",
    "latency",
    "latency_figure",
    "rows_result",
    "run_result",
    "runs_result",
]
LATENCIES = ("service", "response", "connect", "first_byte")
# Latencies that tables show.
PERCENTILES = ("p50", "p90", "p99", "p99.9", "max")
_PERCENTILE = re.compile(r"p(\d{1,2}(?:[._]\d{1,3})?|100)")


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """All segments of one run, without its warm-up. `saturated` is seconds in which the generator was the
    bottleneck, `warmup` seconds that are not counted."""

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
    saturated: float
    partial: str
    reason: str
    detail: str

    @property
    def rate(self) -> float:
        """Replies a second; 0 when nothing was measured."""
        return self.counts.completed / self.seconds if self.seconds > 0 else 0.0

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
        """The largest share of the time that a worker was ready to run and had no CPU."""
        return max(self.worker_wait.values(), default=0.0) / self.seconds if self.seconds > 0 else 0.0


def run_result(state: State, run: int) -> RunResult | None:
    """The result of a run, finished or not; None when there is no such run."""
    of_run = [segment for segment in state.segments if segment.run == run]
    if not of_run:
        return None
    # A run that ended in its warm-up has nothing else to show.
    segments = [segment for segment in of_run if not segment.warmup] or of_run
    seconds = segments[-1].last - segments[0].start
    warmup = sum(segment.seconds for segment in of_run if segment.warmup and segment not in segments)
    result = rows_result(segments, state.plans[run], seconds, warmup)
    return msgspec.structs.replace(result, warnings=of_run[0].warnings, addresses=of_run[0].addresses)


def runs_result(results: Sequence[RunResult]) -> RunResult:
    """Several runs of one load as one result; at least one run."""
    if len(results) == 1:
        return results[0]
    segments = [segment for result in results for segment in result.segments]
    seconds, warmup = (sum(getattr(result, name) for result in results) for name in ("seconds", "warmup"))
    whole = rows_result(segments, results[0].plan, seconds, warmup)
    failed = next((result for result in results if result.reason == "failed"), results[-1])
    return msgspec.structs.replace(
        whole,
        warnings=_once(result.warnings for result in results),
        addresses=_once(result.addresses for result in results),
        reason=failed.reason,
        detail=failed.detail,
    )


def rows_result(segments: Sequence[Segment], plan: LoadPlan, seconds: float, warmup: float = 0.0) -> RunResult:
    """Rows of the runs table as one result, `seconds` long; at least one row."""
    counts = Counts()
    for segment in segments:
        counts = add(counts, segment.counts)
    return RunResult(
        run=segments[0].run,
        plan=plan,
        counts=counts,
        seconds=seconds,
        hosts=_merged_windows(segments),
        segments=tuple(segments),
        warmup=warmup,
        altered=any(segment.altered for segment in segments),
        warnings=_once(segment.warnings for segment in segments),
        addresses=_once(segment.addresses for segment in segments),
        worker_cpu=_summed(segment.worker_cpu for segment in segments),
        worker_wait=_summed(segment.worker_wait for segment in segments),
        saturated=sum(segment.saturated for segment in segments),
        partial="; ".join(sorted({segment.partial for segment in segments if segment.partial})),
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


def _merged_windows(segments: Sequence[Segment]) -> dict[str, HostWindow]:
    merged: dict[str, HostWindow] = {}
    for segment in segments:
        for name, window in segment.hosts.items():
            before = merged.get(name)
            merged[name] = joined(before, window) if before else window
    return merged


def latency(counts: Counts, name: str) -> Histogram:
    """The histogram of that name; response time under closed load is the service time."""
    histogram: Histogram = getattr(counts, name)
    return counts.service if name == "response" and not histogram.count else histogram


def figure(result: RunResult, name: str) -> float | None:
    """Return a metric by name: `rate`, `p99.9`, `connect.p50`, `web1.cpu.idle`. None without data.

    Latencies in seconds, rates per second, CPU per cent, memory bytes. Raises KeyError for an unknown name.
    """
    head, _, rest = name.partition(".")
    if name in _PLAIN:
        return _PLAIN[name](result)
    if head in LATENCIES and is_latency(rest):
        return latency_figure(latency(result.counts, head), rest)
    if is_latency(name):
        return latency_figure(latency(result.counts, "response"), name)
    if is_host_figure(rest):
        window = result.hosts.get(head)
        return host_figures(window, result.seconds).get(rest) if window and window.seconds > 0 else None
    raise KeyError(name)


def is_figure(name: str) -> bool:
    """Return whether `figure` has the name, for any host."""
    head, _, rest = name.partition(".")
    return name in _PLAIN or is_latency(name) or (head in LATENCIES and is_latency(rest)) or is_host_figure(rest)


def is_latency(name: str) -> bool:
    """Return whether the name is a latency statistic: p50, p99.9, mean, max, min."""
    return name in ("mean", "max", "min") or _PERCENTILE.fullmatch(name) is not None


def latency_figure(histogram: Histogram, name: str) -> float | None:
    """Return a latency statistic in seconds; None without data. Raises KeyError for an unknown name."""
    if not histogram.count:
        return None
    match = _PERCENTILE.fullmatch(name)
    if match:
        return histogram.percentile(float(match[1].replace("_", ".")))
    return {"mean": histogram.mean, "max": histogram.max, "min": histogram.min}[name]


_PLAIN: dict[str, Callable[[RunResult], float]] = {
    "rate": lambda result: result.rate,
    "completed": lambda result: result.counts.completed,
    "sent": lambda result: result.counts.sent,
    "failed": lambda result: result.counts.failed,
    "failed.share": lambda result: 100 * result.counts.failed / max(1, result.counts.ended),
    "errors": lambda result: sum(result.counts.errors.values()),
    "duration": lambda result: result.seconds,
    "bytes": lambda result: result.counts.bytes_received,
    "generator.cpu": lambda result: 100 * result.generator_cpu,
    "generator.lag_p99": lambda result: result.counts.lag.percentile(99),
}
