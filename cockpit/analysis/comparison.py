"""Comparison of two sides: metrics, differences in load, settings and environment, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from cockpit.analysis.buckets import edges_for
from cockpit.analysis.plans import differences
from cockpit.analysis.verdicts.outcome import Verdict
from cockpit.analysis.verdicts.sides import Side
from cockpit.analysis.verdicts.verdict import judge_repeated_runs, judge_single_runs, judge_switch
from cockpit.analysis.windows import Window
from cockpit.analysis.words.timeline import segment_label
from cockpit.metrics.catalogue import CONNECTION_METRICS, STATISTICS, TLS_METRICS
from cockpit.metrics.values import TIMES_OF_PROCESSES, all_host_metrics, metric_value, segment_metrics
from cockpit.model.access import ACCESS_METRICS
from cockpit.model.counts import Counts
from cockpit.model.histogram import Histogram
from cockpit.model.state import Segment
from cockpit.model.status_metrics import PAGE_METRICS

_LOAD = ("rate", "completed", "failed", "errors", "bytes", "duration", "generator.cpu", "generator.lag_p99")
# The time of the server's processes, and counters of the kernel: why a segment differs, without a profile.
KERNEL_METRICS = (
    *TIMES_OF_PROCESSES,
    *(f"request.{name}" for name in ("run", "wait", "cswch", "fault", "proc")),
    *("tasks.cswch", "interrupts.soft", "tcp_sockets.estab", "tcp_sockets.orphaned", "sockets.tcp_tw"),
)
# Host metrics shown in text reports; JSON has all.
MAIN_HOST_METRICS = (
    *(f"cpu.{name}" for name in ("user", "system", "iowait", "steal", "idle")),
    *("io.tps", "io.bread", "io.bwrtn", "net.rxkb", "net.txkb", "net.errors"),
    *("memory.before.used", "memory.mean.used", "memory.after.used", "memory.mean.available", "load.1", "load.blocked"),
    *(f"processes.{name}" for name in ("mean", "spawned_per_s", "exited_per_s", "defunct", "rss", "unshared")),
    *("processes.before.rss", "processes.after.rss"),
    *KERNEL_METRICS,
    *(f"cgroup.{name}" for name in ("cpu", "quota", "throttled", "kbmemory", "kblimit", "scpu", "sio", "smem")),
    *ACCESS_METRICS,
    *PAGE_METRICS,
    "coverage",
)


class MetricPair(msgspec.Struct, frozen=True):
    """A metric of both sides, named as in thresholds; None: no data."""

    name: str
    before: float | None
    after: float | None

    @property
    def change(self) -> float | None:
        """Return the relative difference (0.1: 10% more); None if undefined."""
        if self.before is None or self.after is None or self.before <= 0:
            return None
        return self.after / self.before - 1


class Difference(msgspec.Struct, frozen=True):
    """A setting, version or machine that differs between the sides, as text."""

    name: str
    before: str
    after: str


class Distribution(msgspec.Struct, frozen=True):
    """Shares of responses (0 to 1) by latency bucket, with bucket `edges` in ns; all 0 for a side without responses."""

    edges: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of two sides. `load`, `settings` and `environment` are differences; `errors` counts failures by
    kind, `hosts` has metrics by host name. `verdicts` has one verdict, or one per pair of segments under the same
    load."""

    before: Side
    after: Side
    load: tuple[str, ...]
    settings: tuple[Difference, ...]
    environment: tuple[Difference, ...]
    metrics: tuple[MetricPair, ...]
    errors: tuple[MetricPair, ...]
    hosts: Mapping[str, tuple[MetricPair, ...]]
    verdicts: tuple[Verdict, ...]


def compare(before: Side, after: Side) -> Comparison:
    """Compare two sides. The caller decides by `load` whether they are comparable; versions of HTTP are."""
    first, second = before.result.plan, after.result.plan
    load = differences(first, replace(second, http=first.http, streams=first.streams))
    same_version = (first.http, first.streams) == (second.http, second.streams)
    secure = any(side.result.counts.handshakes for side in (before, after))
    names = (*_LOAD, *STATISTICS, *CONNECTION_METRICS, *(TLS_METRICS if secure else ()))
    hosts = dict.fromkeys((*before.result.hosts, *after.result.hosts))
    return Comparison(
        before=before,
        after=after,
        load=load,
        settings=_settings(before, after),
        environment=_environment(before, after),
        metrics=tuple(
            MetricPair(name, metric_value(before.result, name), metric_value(after.result, name)) for name in names
        ),
        errors=_errors(before, after),
        hosts={name: _host(name, before, after) for name in hosts},
        verdicts=_verdicts(before, after, load_may_differ=bool(load) or not same_version),
    )


def kernel_counters(host: str, before: Segment | None, after: Segment) -> tuple[MetricPair, ...]:
    """Return the KERNEL_METRICS of a host in a segment, beside those of its baseline if it has one."""
    first, second = ({} if side is None else segment_metrics(side, host) for side in (before, after))
    return tuple(MetricPair(name, first.get(name), second[name]) for name in KERNEL_METRICS if name in second)


def distribution(before: Histogram, after: Histogram, most: int) -> Distribution:
    """Return both distributions over the same buckets, at most `most`."""
    edges = edges_for(Histogram.merged((before, after)), most)
    shares = [
        tuple(count / part.count if part.count else 0.0 for count in part.between(edges)) if edges else ()
        for part in (before, after)
    ]
    return Distribution(edges, shares[0], shares[1])


def _verdicts(before: Side, after: Side, load_may_differ: bool) -> tuple[Verdict, ...]:
    label = segment_label(after.segments[0]) if before.state is after.state else ""
    judge = judge_switch if _are_of_one_run(before, after) else judge_single_runs
    if len(before.segments) == len(after.segments) == 1:
        return (judge(before.windows[0], after.windows[0], label, load_may_differ),)
    if _has_repeats(before) and _has_repeats(after) and not load_may_differ:
        first, second = ([[window] for window in side.windows] for side in (before, after))
        return (judge_repeated_runs(first, second, label),)
    pairs = list(_pairs_by_load(before, after))
    if pairs:
        return tuple(judge(first, second, segment_label(second.segments[0])) for first, second in pairs)
    return (judge(_longest_window(before), _longest_window(after), label, load_may_differ),)


def _are_of_one_run(before: Side, after: Side) -> bool:
    return before.state is after.state and len({segment.run for segment in (*before.segments, *after.segments)}) == 1


def _has_repeats(side: Side) -> bool:
    return len(side.segments) > 1 and len({segment.run for segment in side.segments}) == len(side.segments)


def _pairs_by_load(before: Side, after: Side) -> Iterable[tuple[Window, Window]]:
    """Yield pairs of segments of both sides under the same load, in order; each segment is used once."""
    left = list(after.windows)
    for earlier in before.windows:
        second = next((window for window in left if not differences(earlier.plan, window.plan)), None)
        if second is not None:
            left.remove(second)
            yield earlier, second


def _longest_window(side: Side) -> Window:
    return max(side.windows, key=lambda window: len(window.seconds))


def _settings(before: Side, after: Side) -> tuple[Difference, ...]:
    first, second = (
        {knob: "unset" if value is None else value for knob, value in side.knobs.items()} for side in (before, after)
    )
    return _differing(sorted({*first, *second}), first, second, "not read")


def _environment(before: Side, after: Side) -> tuple[Difference, ...]:
    first, second = _environment_of(before), _environment_of(after)
    return _differing(dict.fromkeys((*first, *second)), first, second, "none")


def _differing(
    names: Iterable[str], first: Mapping[str, str], second: Mapping[str, str], missing: str
) -> tuple[Difference, ...]:
    pairs = (Difference(name, first.get(name, missing), second.get(name, missing)) for name in names)
    return tuple(each for each in pairs if each.before != each.after)


def _environment_of(side: Side) -> dict[str, str]:
    started, plan = side.state.started, side.result.plan
    environment = {"cockpit": started.version, **started.environment} if started else {}
    streams = f", {plan.streams} streams per connection" if plan.http2 else ""
    environment["protocol"] = f"HTTP/{plan.http}{streams}"
    environment |= {"target": ", ".join(_addresses(side)) or "unknown", "load processes": str(plan.workers)}
    if negotiated := side.result.counts.handshakes:
        environment["TLS"] = "; ".join(sorted(parameters.words for parameters in negotiated))
    for name, host in side.state.hosts.items():
        if host.facts:
            environment |= {f"{name} kernel": host.facts.kernel, f"{name} CPUs": str(host.facts.cpus)}
    return environment


def _addresses(side: Side) -> dict[str, None]:
    """Return the addresses of the target, resolved at the start of a run and the same for all its segments."""
    runs = {segment.run for segment in side.segments}
    return dict.fromkeys(
        address for segment in side.state.segments if segment.run in runs for address in segment.addresses
    )


def _errors(before: Side, after: Side) -> tuple[MetricPair, ...]:
    first, second = (failures_by_kind(side.result.counts) for side in (before, after))
    return tuple(MetricPair(kind, first.get(kind, 0), second.get(kind, 0)) for kind in sorted({*first, *second}))


def failures_by_kind(counts: Counts) -> dict[str, int]:
    """Return the errors, unexpected responses, and statuses of 400 or above, by kind."""
    refused = {f"status {status}": count for status, count in counts.statuses.items() if status >= 400}
    return {**counts.errors, **{f"unexpected {kind}": n for kind, n in counts.unexpected.items()}, **refused}


def _host(name: str, before: Side, after: Side) -> tuple[MetricPair, ...]:
    first, second = (all_host_metrics(side.result).get(name, {}) for side in (before, after))
    return tuple(
        MetricPair(key, first.get(key), second.get(key)) for key in MAIN_HOST_METRICS if key in first or key in second
    )
