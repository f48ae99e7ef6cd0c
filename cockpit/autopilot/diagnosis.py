"""Bottlenecks of a server under load, from the metrics of a run, and the knobs that affect them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from cockpit.metrics.results import RunResult
from cockpit.metrics.values import host_metrics
from cockpit.model.host.rates import cpu_share
from cockpit.model.knobs import Knob
from cockpit.model.state import State

# Utilization (%) from which one CPU, and all CPUs of a host, count as busy; available memory (%) that counts as short.
_CORE_BUSY, _HOST_BUSY, _MEMORY_SHORT = 95.0, 90.0, 10.0
# Minimum share of the time (%) in which tasks wait for a CPU; in which they wait for a disk or a cgroup is throttled.
_CPU_WAIT, _WAIT = 50.0, 10.0
# Minimum rates (/s) of spawned processes and of accept queue overflows.
_SPAWNED, _OVERFLOWS = 1.0, 0.5
# Minimum share of busy workers, and of the time in which the generator is the bottleneck.
_WORKERS_BUSY, _GENERATOR_BOUND = 0.95, 0.1


class BottleneckKind(StrEnum):
    """Bottlenecks, in the order in which to remove them."""

    GENERATOR = "the load generator"
    OVERFLOWS = "the accept queue overflows"
    WORKERS = "all workers are busy"
    QUEUED = "requests wait for a process"
    CHURN = "processes are spawned continuously"
    QUOTA = "the CPU quota of its cgroup"
    MEMORY = "memory is short"
    DISK = "tasks wait for the disk"
    CORE = "one CPU is busy, others are not"
    CPU = "all CPUs are busy"
    NOTHING = "none found"


# Settings that affect each bottleneck, in lower case.
_WORKERS = (
    *("maxrequestworkers", "serverlimit", "threadsperchild", "startservers", "minsparethreads", "maxsparethreads"),
    *("pm", "pm.max_children", "pm.start_servers", "pm.min_spare_servers", "pm.max_spare_servers"),
    *("worker_connections", "worker_processes", "maxconn", "nbthread", "maxthreads", "minsparethreads", "acceptcount"),
    *("workers", "threads", "worker_class", "server.max-connections", "server.max-worker", "max_connections"),
    *("keepalivetimeout", "keepalive_timeout", "server.max-keep-alive-idle", "timeout http-keep-alive", "keepalive"),
    *("thread_pool_min", "thread_pool_max", "thread_pools"),
)
_SPARE = (
    *("startservers", "minspareservers", "maxspareservers", "minsparethreads", "maxsparethreads"),
    *("maxconnectionsperchild", "maxrequestsperchild", "mpm", "pm", "pm.max_requests", "pm.min_spare_servers"),
    *("pm.start_servers", "pm.max_spare_servers", "thread_cache_size", "max_requests"),
)
_QUEUE = ("listenbacklog", "net.core.somaxconn", "net.ipv4.tcp_max_syn_backlog", "acceptcount", "backlog")
_MEMORY = (
    *("maxrequestworkers", "pm.max_children", "workers", "maxconnectionsperchild", "pm.max_requests", "cache_mem"),
    *("innodb_buffer_pool_size", "vm.swappiness", "java_opts", "threadsperchild", "max_connections"),
)
_DISK = (
    *("access_log", "open_file_cache", "proxy_cache", "cache", "cache_dir", "cache_mem", "sendfile", "enablesendfile"),
    *("innodb_buffer_pool_size", "innodb_flush_log_at_trx_commit", "table_open_cache", "atime"),
)
_COST = (
    *("keepalive", "keepalivetimeout", "maxkeepaliverequests", "keepalive_timeout", "keepalive_requests", "mpm"),
    *("gzip", "gzip_comp_level", "deflatecompressionlevel", "encode", "hostnamelookups", "allowoverride", "sendfile"),
    *("enablesendfile", "enablemmap", "opcache.enable", "opcache.jit", "opcache.validate_timestamps", "worker_class"),
    *("tcp_nopush", "open_file_cache", "access_log", "server.event-handler", "proxy_cache", "cache", "default_ttl"),
)
_SPREAD = ("worker_processes", "nbthread", "workers", "server.max-worker", "threads", "worker_class", "mpm")
_AFFECTED_BY: dict[BottleneckKind, tuple[str, ...]] = {
    BottleneckKind.OVERFLOWS: (*_QUEUE, *_WORKERS),
    BottleneckKind.WORKERS: _WORKERS,
    BottleneckKind.QUEUED: _WORKERS,
    BottleneckKind.CHURN: _SPARE,
    BottleneckKind.MEMORY: _MEMORY,
    BottleneckKind.DISK: _DISK,
    BottleneckKind.CORE: _SPREAD,
    BottleneckKind.CPU: _COST,
    BottleneckKind.QUOTA: _COST,
    BottleneckKind.NOTHING: (*_WORKERS, *_COST),
}
# Metrics of status pages: busy and idle workers; requests queued for a worker.
_BUSY = (("apache.busy", "apache.idle"), ("lighttpd.busy", "lighttpd.idle"), ("php-fpm.active", "php-fpm.idle"))
_QUEUED = ("php-fpm.queued", "haproxy.queued")


class Bottleneck(msgspec.Struct, frozen=True):
    """A bottleneck on a host ("": the generator's machine), its evidence as text, and the knobs that affect it."""

    limit: BottleneckKind
    host: str
    evidence: str
    knobs: tuple[str, ...] = ()


def find_bottlenecks(result: RunResult, during: Sequence[State], knobs: Sequence[Knob]) -> list[Bottleneck]:
    """Return the bottlenecks of a run, at least one (NOTHING). `during`: states during the run, the first and the last
    of which bound the use of each CPU."""
    bottlenecks = [Bottleneck(*each) for each in _of_generator(result)]
    for name, window in result.hosts.items():
        metrics = host_metrics(window, result.seconds)
        cores = _core_use(during, name)
        bottlenecks += [Bottleneck(limit, name, words) for limit, words in host_bottlenecks(metrics, cores)]
    bottlenecks = bottlenecks or [
        Bottleneck(BottleneckKind.NOTHING, "", "no queue, CPU, memory or disk is at its limit")
    ]
    order = list(BottleneckKind)
    bottlenecks.sort(key=lambda each: order.index(each.limit))
    return [replace(each, knobs=_affecting(each, knobs)) for each in bottlenecks]


def _core_use(during: Sequence[State], host: str) -> list[float]:
    """Return the use of each CPU of a host (%) between the first and the last of the states."""
    samples = [known.sample for state in during if (known := state.hosts.get(host)) and known.sample]
    shares = map(cpu_share, samples[0].reading.cores, samples[-1].reading.cores) if samples else ()
    return [100 - share.idle - share.iowait for share in shares if share is not None]


def suggested_knobs(bottlenecks: Sequence[Bottleneck]) -> tuple[str, ...]:
    """Return the knobs that affect any of the bottlenecks, those of the first bottleneck first."""
    return tuple(dict.fromkeys(name for each in bottlenecks for name in each.knobs))


def _affecting(bottleneck: Bottleneck, knobs: Sequence[Knob]) -> tuple[str, ...]:
    names = _AFFECTED_BY.get(bottleneck.limit, ())
    of_host = [knob for knob in knobs if bottleneck.host in ("", knob.host)]
    return tuple(
        knob.name for knob in of_host if {knob.name.lower(), knob.directive.lower(), knob.key.lower()} & set(names)
    )


def _of_generator(result: RunResult) -> Iterator[tuple[BottleneckKind, str, str]]:
    if result.seconds > 0 and result.saturated / result.seconds >= _GENERATOR_BOUND:
        share = result.saturated / result.seconds
        yield (
            BottleneckKind.GENERATOR,
            "",
            f"its CPU was the bottleneck for {share:.0%} of the time; add load processes or machines",
        )


def host_bottlenecks(metrics: Mapping[str, float], cores: Sequence[float]) -> Iterator[tuple[BottleneckKind, str]]:
    """Yield the bottlenecks of a host with their evidence. `metrics` are over a run; `cores`: use of each CPU (%)."""
    if (overflows := metrics.get("listen.ListenOverflows", 0.0)) >= _OVERFLOWS:
        yield BottleneckKind.OVERFLOWS, f"{overflows:.1f} connections/s found the accept queue full"
    for busy, idle in _BUSY:
        if busy in metrics and metrics[busy] >= _WORKERS_BUSY * (metrics[busy] + metrics.get(idle, 0.0)) > 0:
            yield (
                BottleneckKind.WORKERS,
                f"{metrics[busy]:.0f} busy, {metrics.get(idle, 0.0):.0f} idle ({busy.partition('.')[0]})",
            )
    for name in _QUEUED:
        if metrics.get(name, 0.0) >= 1:
            yield BottleneckKind.QUEUED, f"{metrics[name]:.0f} on average ({name})"
    if (spawned := metrics.get("processes.spawned_per_s", 0.0)) >= _SPAWNED:
        yield BottleneckKind.CHURN, f"{spawned:.1f} spawned/s"
    if metrics.get("swapping.pswpin", 0.0) + metrics.get("swapping.pswpout", 0.0) > 0:
        yield BottleneckKind.MEMORY, "pages are swapped in or out"
    elif "memory.available" in metrics and 100 * metrics["memory.available"] < _MEMORY_SHORT * metrics["memory.total"]:
        yield BottleneckKind.MEMORY, f"{100 * metrics['memory.available'] / metrics['memory.total']:.0f}% available"
    elif metrics.get("cgroup.memory", 0.0) > 100 - _MEMORY_SHORT:
        yield BottleneckKind.MEMORY, f"its cgroup uses {metrics['cgroup.memory']:.0f}% of its limit"
    if (throttled := metrics.get("cgroup.throttled", 0.0)) >= _WAIT:
        quota = f", quota {metrics['cgroup.quota'] / 100:.3g} CPUs" if "cgroup.quota" in metrics else ""
        yield BottleneckKind.QUOTA, f"throttled in {throttled:.0f}% of the periods{quota}"
    if max(metrics.get("pressure.sio", 0.0), metrics.get("cpu.iowait", 0.0)) >= _WAIT:
        yield (
            BottleneckKind.DISK,
            f"{max(metrics.get('pressure.sio', 0.0), metrics.get('cpu.iowait', 0.0)):.0f}% of the time",
        )
    yield from _of_cpu(metrics, cores)


def _of_cpu(metrics: Mapping[str, float], cores: Sequence[float]) -> Iterator[tuple[BottleneckKind, str]]:
    if "cpu.idle" not in metrics:
        return
    busy = 100 - metrics["cpu.idle"] - metrics.get("cpu.iowait", 0.0)
    waits = metrics.get("pressure.scpu", 0.0)
    if busy >= _HOST_BUSY:
        yield BottleneckKind.CPU, f"{busy:.0f}% busy"
    elif waits >= _CPU_WAIT:
        yield (
            BottleneckKind.CPU,
            f"tasks waited for a CPU for {waits:.0f}% of the time while {100 - busy:.0f}% was idle, because of a quota",
        )
    elif len(cores) > 1 and max(cores) >= _CORE_BUSY:
        yield BottleneckKind.CORE, f"busiest CPU {max(cores):.0f}%, all CPUs {busy:.0f}%"
