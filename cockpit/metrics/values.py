"""Values of metrics of a result, by the names in thresholds, tables and JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import msgspec

from cockpit.metrics.catalogue import PROCESS_METRICS, REQUEST_METRICS, latency_parts, percent_of
from cockpit.metrics.results import RunResult, latency
from cockpit.model.access import ACCESS_METRICS
from cockpit.model.histogram import Histogram
from cockpit.model.host import sar
from cockpit.model.host.rates import memory_use
from cockpit.model.host.state import CpuShare, DiskRates, HostWindow, IoRates, MemoryUse, NetRates
from cockpit.model.host.window import closing_io, means, opening_io
from cockpit.model.state import Segment
from cockpit.model.status_metrics import PAGE_METRICS
from cockpit.servers.registry import STATUS_PAGES


def metric_value(result: RunResult, name: str) -> float | None:
    """Return a metric by name: `rate`, `p99.9`, `connect.p50`, `web1.cpu.idle`. None without data.

    Latencies in seconds, rates per second, CPU per cent, memory bytes. Raises KeyError for an unknown name.
    """
    head, _, rest = name.partition(".")
    if name in RUN_METRICS:
        return RUN_METRICS[name](result)
    if parts := latency_parts(name):
        return latency_value(latency(result.counts, parts[0]), parts[1])
    if is_host_metric(rest):
        window = result.hosts.get(head)
        return host_metrics(window, result.seconds, result.rate).get(rest) if window and window.seconds > 0 else None
    raise KeyError(name)


def is_metric(name: str) -> bool:
    """Return whether `metric_value` knows the name, for any host."""
    return name in RUN_METRICS or latency_parts(name) is not None or is_host_metric(name.partition(".")[2])


def latency_value(histogram: Histogram, name: str) -> float | None:
    """Return a latency statistic in seconds; None without data. Raises KeyError for an unknown name."""
    if not histogram.count:
        return None
    if name in ("mean", "max", "min"):
        value: float = getattr(histogram, name)
        return value
    if (percent := percent_of(name)) is None:
        raise KeyError(name)
    return histogram.percentile(percent)


# Metrics of runs, without latencies.
RUN_METRICS: dict[str, Callable[[RunResult], float]] = {
    "rate": lambda result: result.rate,
    "completed": lambda result: result.counts.completed,
    "sent": lambda result: result.counts.sent,
    "failed": lambda result: result.counts.failed,
    "failed.share": lambda result: 100 * result.counts.failed / max(1, result.counts.ended),
    "errors": lambda result: sum(result.counts.errors.values()),
    "tls.full": lambda result: result.per_s(sum(result.counts.full_handshakes.values())),
    "tls.resumed": lambda result: result.per_s(sum(result.counts.resumed_handshakes.values())),
    "duration": lambda result: result.seconds,
    "bytes": lambda result: result.counts.bytes_received,
    "bytes.per_response": lambda result: result.counts.bytes_received / max(1, result.counts.completed),
    "generator.cpu": lambda result: 100 * result.generator_cpu,
    "generator.lag_p99": lambda result: result.counts.lag.percentile(99),
}


def _names(group: str, struct: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(f"{group}.{name.rstrip('_')}" for name in struct.__struct_fields__ if name != "name")


_SAR_GROUPS = (*(group.name for group in sar.GROUPS), sar.ACCEPT)
_ENDS = ("processes", "request", "coverage", "access", *STATUS_PAGES)
# Groups of metrics of the watched processes.
_OF_PROCESSES = ("processes.", "request.")
_GROUPS = ("cpu", "io", "disk", "net", "memory", "load", *_SAR_GROUPS, *_ENDS)
_IO_PARTS = ("io.start", "io.end")
# Metrics of the idle host before and after a run.
_IDLE = tuple(
    f"{group}.{when}.{name.partition('.')[2]}"
    for when in ("before", "after")
    for group, names in (
        ("cpu", _names("cpu", CpuShare)),
        ("memory", _names("memory", MemoryUse)),
        ("processes", ("processes.count", "processes.rss", "processes.pss")),
    )
    for name in names
)
_MEANS = (
    *_names("cpu", CpuShare),
    "cpu.other",
    "cpu.busy",
    *_names("io", IoRates),
    *_names("net", NetRates),
    *_names("memory.mean", MemoryUse),
    *(f"load.{name}" for name in ("1", "5", "15", "running", "blocked")),
    *(f"processes.{name}" for name in ("mean", "rss", "unshared", "pss", "user", "system")),
)
# Metrics of processes that are in two samples; unknown if these used less than this share of the CPU of all of them.
TIMES_OF_PROCESSES = tuple(
    f"processes.{name}" for name in ("running", "waiting", "sleeping", "blocked", "cswch", "involuntary")
)
_SEEN = 0.9
# Metrics per response, and the rates from which they are.
_PER_REQUEST = {"request.cswch": "processes.cswch", "request.fault": "paging.fault", "request.proc": "tasks.proc"}
# All names except those of single disks and interfaces, which are `disk.sda.util`, `net.eth0.rxkb`.
HOST_METRICS = dict.fromkeys(
    (
        *_MEANS,
        *(name for part in _IO_PARTS for name in _names(part, IoRates)),
        *_names("memory", MemoryUse),
        *_names("memory.start", MemoryUse),
        *_IDLE,
        *PROCESS_METRICS,
        *REQUEST_METRICS,
        *sar.METRICS,
        "coverage",
        *ACCESS_METRICS,
        *PAGE_METRICS,
    )
)


def _either(names: Iterable[str]) -> str:
    return "|".join(name.rpartition(".")[2] for name in names)


_SINGLE = re.compile(rf"disk\..+\.(?:{_either(_names('', DiskRates))})|net\..+\.(?:{_either(_names('', NetRates))})")


def is_host_metric(name: str) -> bool:
    """Return whether the name is a host metric, with any disk, interface or port."""
    return name in HOST_METRICS or _SINGLE.fullmatch(name) is not None or sar.is_accept_queue(name)


def host_metrics(window: HostWindow, seconds: float = 0.0, rate: float = 0.0) -> dict[str, float]:
    """Return the metrics of a host over a window; metrics without data are left out.

    `cpu.other`: programs other than the watched processes and cockpit; `cpu.busy`: not idle. `memory.X`: at the end,
    `memory.start.X`: at the start, `memory.mean.X`: mean; bytes. `GROUP.before.X` and `GROUP.after.X`: idle host before
    and after the run. `io.start` and `io.end`: the first and the last 5 s, or halves of a shorter window.
    `processes.count`: at the end; `spawned`, `exited`, `unseen`: over the window; `defunct`: maximum; `mean`, `rss`,
    `unshared` and `pss`: means; `rss_each` and `unshared_each`: per process; `user`, `system` and their sum `cpu`: per
    cent of one core. `coverage`: per cent of the window, or of `seconds` if that is longer, in which the host was
    sampled without a gap. `request.X`: per response, at this `rate` (responses/s) of the window; left out at 0. All
    `processes.` metrics are left out if /proc hides processes, because counts of the visible
    processes would be wrong. All `memory.` metrics are left out if an imported file has none, `available` if the host
    does not report it.
    """
    mean = means(window)
    metrics = {name: mean[name] for name in (*_MEANS, *mean) if name in mean}
    if "cpu.other" in metrics:
        metrics["cpu.other"] = min(100.0, max(0.0, metrics["cpu.other"]))
    for part, rates in zip(_IO_PARTS, (opening_io(window), closing_io(window)), strict=True):
        metrics |= _values(part, rates) if rates else {}
    if "cpu.idle" in metrics:
        metrics["cpu.busy"] = 100 - metrics["cpu.idle"]
    metrics |= _values("memory", memory_use(window.last.reading))
    metrics |= _values("memory.start", memory_use(window.first.reading))
    metrics |= _idle("before", window.before) | _idle("after", window.after)
    metrics |= _processes(window) | _per_process(metrics)
    if metrics.get("processes.cpu", 0.0) < _SEEN * metrics.get("processes.cpu_tree", 0.0):
        metrics = {name: value for name, value in metrics.items() if name not in TIMES_OF_PROCESSES}
    metrics |= _per_request(metrics, rate) if rate > 0 else {}
    metrics["coverage"] = _coverage(window, seconds)
    if processes_hidden(window):
        metrics = {name: value for name, value in metrics.items() if not name.startswith(_OF_PROCESSES)}
    if not window.last.reading.memory.total:
        metrics = {name: value for name, value in metrics.items() if not name.startswith("memory.")}
    return dict(sorted(metrics.items(), key=_host_order))


def all_host_metrics(result: RunResult) -> dict[str, dict[str, float]]:
    """Return the metrics of each host that was sampled during the run, by host."""
    windows = result.hosts.items()
    return {name: host_metrics(window, result.seconds, result.rate) for name, window in windows if window.seconds > 0}


def segment_metrics(segment: Segment, host: str) -> dict[str, float]:
    """Return the metrics of a host in a segment; empty if it was not sampled."""
    window = segment.hosts.get(host)
    return host_metrics(window, segment.seconds, segment.rate) if window and window.seconds > 0 else {}


def _idle(when: str, idle: Mapping[str, float]) -> dict[str, float]:
    parts = ((name.partition("."), value) for name, value in idle.items())
    return {f"{group}.{when}.{rest}": value for (group, _, rest), value in parts}


def processes_hidden(window: HostWindow) -> bool:
    """Return whether /proc hid processes of other users from the probe (hidepid)."""
    return window.first.reading.hidden or window.last.reading.hidden


def _host_order(metric: tuple[str, float]) -> int:
    """Return the sort key of a metric, by its group only."""
    return _GROUPS.index(metric[0].partition(".")[0])


def _values(group: str, struct: msgspec.Struct) -> dict[str, float]:
    values = ((name, getattr(struct, name)) for name in struct.__struct_fields__)
    return {f"{group}.{name}": float(value) for name, value in values if value is not None}


def _processes(window: HostWindow) -> dict[str, float]:
    return {
        "processes.count": window.count,
        "processes.spawned": window.spawned,
        "processes.exited": window.exited,
        "processes.spawned_per_s": window.spawned / window.seconds if window.seconds > 0 else 0.0,
        "processes.exited_per_s": window.exited / window.seconds if window.seconds > 0 else 0.0,
        "processes.defunct": window.most_defunct,
        "processes.unseen": window.unseen,
    }


def _per_process(metrics: dict[str, float]) -> dict[str, float]:
    """Return the CPU of the watched processes, and their memory per process."""
    derived = {}
    if "processes.user" in metrics:
        derived["processes.cpu"] = metrics["processes.user"] + metrics["processes.system"]
    if metrics.get("processes.mean"):
        for name in ("rss", "unshared"):
            derived[f"processes.{name}_each"] = metrics[f"processes.{name}"] / metrics["processes.mean"]
    return derived


def _per_request(metrics: dict[str, float], rate: float) -> dict[str, float]:
    """Return the CPU time (s) of the watched processes per response, the time (s) in which they waited for a CPU,
    and counters per response."""
    derived = {name: metrics[of] / rate for name, of in _PER_REQUEST.items() if of in metrics}
    if "processes.cpu_tree" in metrics:
        derived["request.run"] = metrics["processes.cpu_tree"] / 100 / rate
        if metrics.get("processes.running"):
            derived["request.wait"] = (
                derived["request.run"] * metrics["processes.waiting"] / metrics["processes.running"]
            )
    return derived


def _coverage(window: HostWindow, seconds: float) -> float:
    span = max(seconds, window.last.t - window.first.t)
    # At most 100: the clocks of the host and of the cockpit differ slightly.
    return min(100.0, round(100 * window.covered / span, 1)) if span > 0 else 0.0
