"""The catalogue of metrics: name, unit, title, definition, and how a metric of a second or sample is read. Pure.

Tables, charts, exports, thresholds and comparisons use these entries. A new metric of hosts needs an entry here, and
its value in the probe's readings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import NamedTuple

from cockpit.metrics.units import (
    BLOCKS,
    BYTES,
    COUNT,
    FLAG,
    KIBIBYTES,
    KIBIBYTES_PER_S,
    LATENCY,
    MS,
    NUMBER,
    PACKETS,
    PERCENT,
    RATE,
    SPAN,
    Unit,
)
from cockpit.model.host import sar
from cockpit.model.host.state import HostPoint
from cockpit.model.load.seconds import LoadSecond

# Latency statistics in tables, and in comparisons and exports.
PERCENTILES = ("p50", "p90", "p99", "p99.9", "max")
STATISTICS = ("min", "mean", "p50", "p75", "p90", "p95", "p99", "p99.9", "max")
# Histograms, with definitions of their values.
LATENCIES = {
    "service": "time from the first byte sent (or the start of the connect) to the last byte read",
    "response": "time from the intended send time to the last byte read: a user's wait, including queues",
    "connect": "time to establish a connection, without the TLS handshake",
    "tls": "time of a full TLS handshake",
    "tls_resumed": "time of a TLS handshake that resumed a session",
    "first_byte": "time from the first byte sent (or the start of the connect) to the first byte of the response",
    "head_of_line": "time between the first and the last byte of an HTTP/2 response between whose parts the connection "
    "carried parts of others; responses that arrive at once are not in it",
}
# Metrics of connections, and of TLS handshakes, in comparisons and exports.
CONNECTION_METRICS = ("connect.p50", "connect.p99", "first_byte.p50", "first_byte.p99")
TLS_METRICS = ("tls.full", "tls.resumed", "tls.p50", "tls.p99", "tls_resumed.p50", "tls_resumed.p99")
_PERCENTILE = re.compile(r"p(\d{1,2}(?:[._]\d{1,3})?|100)")


class Metric(NamedTuple):
    """A metric. `name`: as in thresholds, of a host without the host's name; `title`: of a column, as in sar and free;
    `help`: its definition, without a period; `gauge`: the name of its gauge without group and unit, "" if it has none;
    `long`: its title beside a host's name, "" if it has only a name; `second` and `sample`: read it from a second of
    load, or from a sample of a host."""

    name: str
    unit: Unit = NUMBER
    title: str = ""
    help: str = ""
    gauge: str = ""
    long: str = ""
    second: Callable[[LoadSecond], float] | None = None
    sample: Callable[[HostPoint], float | None] | None = None

    @property
    def column(self) -> str:
        """The name of its column, which ends with the unit."""
        end = self.unit.column
        return self.name if not end or self.name.endswith(f"_{end}") else f"{self.name}_{end}"


def is_latency(name: str) -> bool:
    """Return whether the name is a latency statistic: p50, p99.9, mean, max, min."""
    return name in ("mean", "max", "min") or _PERCENTILE.fullmatch(name) is not None


def latency_parts(name: str) -> tuple[str, str] | None:
    """Return the histogram and the statistic of a latency: p99 is (response, p99), connect.p50 (connect, p50); None:
    not a latency."""
    head, _, rest = name.partition(".")
    parts = (head, rest) if head in LATENCIES else ("response", name)
    return parts if is_latency(parts[1]) else None


def percent_of(name: str) -> float | None:
    """Return the percentile of a latency statistic: 99.9 for p99_9 and service.p99.9; None: not a percentile."""
    match = _PERCENTILE.fullmatch(name.removeprefix("response.").removeprefix("service."))
    if match:
        return float(match[1].replace("_", "."))
    return {"min": 0.0, "max": 100.0}.get(name)


# Metrics of load; those with a gauge are metrics of each second, too.
_LOAD = (
    Metric("covered", SPAN, "", "part of the second with load", "covered"),
    Metric("completed", COUNT, "", "complete responses", "completed"),
    Metric("rate", RATE, "req/s", "complete responses", "responses"),
    Metric("failed", COUNT, "", "failed requests", "failed"),
    Metric("errors", COUNT, "", "requests without a complete response", "errors"),
    Metric("queued", COUNT, "", "requests that were queued at the limit in flight", "queued"),
    Metric("p50", LATENCY, "", "half of the responses took at most this long", "p50"),
    Metric("p99", LATENCY, "", "99% of the responses took at most this long", "p99"),
    Metric("max", LATENCY, "", "the slowest response", "max"),
    Metric("connections", COUNT, "", "open connections", "connections"),
    Metric("in_flight", COUNT, "", "requests without a complete response at the end of the second", "in_flight"),
    Metric("tls.full", RATE, "TLS full", "full TLS handshakes", "tls_full_handshakes"),
    Metric("tls.resumed", RATE, "TLS resumed", "TLS handshakes that resumed a session", "tls_resumed_handshakes"),
    Metric("stalled", FLAG, "", "1: requests were in flight and none was completed", "stalled"),
    Metric("generator.cpu", PERCENT, "gen %cpu", "CPU of the generator's busiest worker, of one core", "generator_cpu"),
    Metric("generator.cpu_wait", PERCENT, "", "time in which a worker waited for a CPU", "generator_cpu_wait"),
    Metric("generator.lag_p99", LATENCY, "", "99th percentile of the delay in sending requests", "generator_lag_p99"),
    Metric("generator.saturated", FLAG, "", "1: the load generator was the bottleneck", "generator_saturated"),
    Metric("capacity", RATE, "", "highest arrival rate that holds the limits of a search"),
    Metric("sent", COUNT, "", "requests sent"),
    Metric("failed.share", PERCENT, "", "failed requests: no complete response, or an unexpected one"),
    Metric("bytes", BYTES, "", "bytes received"),
    Metric("bytes.per_response", NUMBER, "bytes/resp", "bytes received per complete response"),
    Metric("duration", SPAN, "", "length of the run without its warm-up"),
)
# Metrics of hosts, besides those of sar.
_HOST = (
    Metric("cpu.user", PERCENT, "%user", "CPU time in user mode, of all cores", "cpu_user"),
    Metric("cpu.nice", PERCENT, "%nice", "CPU time in user mode with low priority, of all cores", "cpu_nice"),
    Metric("cpu.system", PERCENT, "%system", "CPU time in the kernel, of all cores", "cpu_system"),
    Metric("cpu.iowait", PERCENT, "%iowait", "idle CPU time while I/O was pending, of all cores", "cpu_iowait"),
    Metric(
        "cpu.steal", PERCENT, "%steal", "CPU time that the hypervisor gave to other guests, of all cores", "cpu_steal"
    ),
    Metric("cpu.idle", PERCENT, "%idle", "idle CPU time, of all cores", "cpu_idle"),
    Metric(
        "cpu.other",
        PERCENT,
        "%others",
        "CPU time of programs other than the watched servers and cockpit, and stolen time, of all cores",
        "cpu_other",
    ),
    Metric("cpu.busy", PERCENT, "%busy", "CPU time that was not idle", long="CPU"),
    Metric("cpu.per_request", LATENCY, "CPU/request", "CPU time of the machine per response", long="CPU/request"),
    Metric("memory.total", BYTES, "total", "memory: all", "memory_total"),
    Metric("memory.used", BYTES, "used", "memory: used by programs and the kernel", "memory_used", long="memory"),
    Metric("memory.free", BYTES, "free", "memory: unused", "memory_free"),
    Metric("memory.shared", BYTES, "shared", "memory: shared memory and tmpfs", "memory_shared"),
    Metric("memory.buff_cache", BYTES, "buff/cache", "memory: buffers and page cache", "memory_buff_cache"),
    Metric("memory.available", BYTES, "available", "memory: available without swapping", "memory_available"),
    Metric("memory.buffers", BYTES, "buffers"),
    Metric("memory.cache", BYTES, "cache"),
    Metric("memory.swap_total", BYTES, "swap"),
    Metric("memory.swap_used", BYTES, "swap-used"),
    Metric("memory.swap_free", BYTES, "swap-free"),
    Metric("io.tps", RATE, "tps", "requests to disks", "io_requests"),
    Metric("io.rtps", RATE, "rtps", "read requests to disks", "io_reads"),
    Metric("io.wtps", RATE, "wtps", "write requests to disks", "io_writes"),
    Metric("io.bread", BLOCKS, "bread/s", "bytes read from disks", "io_read"),
    Metric("io.bwrtn", BLOCKS, "bwrtn/s", "bytes written to disks", "io_written"),
    Metric("net.rxpck", PACKETS, "rxpck/s", "packets received, without loopback and virtual interfaces", "net_receive"),
    Metric("net.txpck", PACKETS, "txpck/s", "packets sent, without loopback and virtual interfaces", "net_transmit"),
    Metric(
        "net.rxkb", KIBIBYTES_PER_S, "rxkB/s", "bytes received, without loopback and virtual interfaces", "net_receive"
    ),
    Metric(
        "net.txkb", KIBIBYTES_PER_S, "txkB/s", "bytes sent, without loopback and virtual interfaces", "net_transmit"
    ),
    Metric("net.errors", RATE, "err/s", "errors of network interfaces", "net_errors"),
    Metric("net.drops", RATE, "drop/s", "packets dropped by network interfaces", "net_drops"),
    Metric("disk.tps", RATE, "tps"),
    Metric("disk.rkb", KIBIBYTES_PER_S, "rkB/s"),
    Metric("disk.wkb", KIBIBYTES_PER_S, "wkB/s"),
    Metric("disk.dkb", KIBIBYTES_PER_S, "dkB/s"),
    Metric("disk.areq_sz", NUMBER, "areq-sz"),
    Metric("disk.aqu_sz", NUMBER, "aqu-sz"),
    Metric("disk.await", MS, "await"),
    Metric("disk.util", PERCENT, "%util"),
    Metric("load.1", NUMBER, "ldavg-1", "load average of 1 min", "load1"),
    Metric("load.5", NUMBER, "ldavg-5", "load average of 5 min", "load5"),
    Metric("load.15", NUMBER, "ldavg-15", "load average of 15 min", "load15"),
    Metric("load.running", COUNT, "running", "tasks that run or wait for a CPU", "tasks_running"),
    Metric("load.blocked", COUNT, "blocked", "tasks that wait for I/O", "tasks_blocked"),
    Metric("processes.count", COUNT, "count", "watched processes", "processes"),
    Metric("processes.mean", NUMBER, "mean", long="processes"),
    Metric("processes.spawned", COUNT, "spawned"),
    Metric("processes.exited", COUNT, "exited"),
    Metric("processes.unseen", COUNT, "unseen"),
    Metric(
        "processes.spawned_per_s",
        RATE,
        "spawned/s",
        "watched processes that were started",
        "processes_spawned",
        long="spawned/s",
    ),
    Metric("processes.exited_per_s", RATE, "exited/s", "watched processes that exited", "processes_exited"),
    Metric(
        "processes.defunct",
        COUNT,
        "defunct",
        "watched processes that exited and were not reaped (zombies)",
        "processes_defunct",
        long="most defunct",
    ),
    Metric("processes.rss", BYTES, "rss", "resident memory of the watched processes, summed", "processes_rss"),
    Metric(
        "processes.unshared", BYTES, "rss−shr", "resident memory without files and shared memory", "processes_unshared"
    ),
    Metric("processes.pss", BYTES, "pss", "memory of the watched processes, shared pages divided", "processes_pss"),
    Metric("processes.rss_each", BYTES, "rss each"),
    Metric("processes.unshared_each", BYTES, "rss−shr each"),
    Metric("processes.cpu", PERCENT, "%cpu", long="process %cpu"),
    Metric("processes.user", PERCENT, "%user", long="process %user"),
    Metric("processes.system", PERCENT, "%system", long="process %system"),
    Metric(
        "processes.wait",
        PERCENT,
        "%wait",
        "time in which watched processes waited for a CPU, of the time in which they were ready to run",
        "processes_cpu_wait",
        long="process %wait",
    ),
    Metric(
        "processes.cpu_tree", PERCENT, "%cpu tree", "CPU of the watched processes, exited ones included, of one core"
    ),
    Metric("processes.running", PERCENT, "%running", "time of the watched processes on a CPU"),
    Metric("processes.waiting", PERCENT, "%waiting", "time of the watched processes in which they waited for a CPU"),
    Metric(
        "processes.sleeping",
        PERCENT,
        "%sleeping",
        "time of the watched processes in which they waited for something else",
    ),
    Metric(
        "processes.blocked", PERCENT, "%blocked", "part of %sleeping in uninterruptible sleep: mostly disks, sampled"
    ),
    Metric("processes.cswch", RATE, "cswch/s", "context switches of the watched processes"),
    Metric("processes.involuntary", PERCENT, "%nvcswch", "context switches in which a watched process lost the CPU"),
    Metric("request.run", LATENCY, "run ms", "CPU time of the watched processes per response, exited ones included"),
    Metric("request.wait", LATENCY, "wait ms", "time per response in which watched processes waited for a CPU"),
    Metric("request.cswch", NUMBER, "cswch", "context switches of the watched processes per response"),
    Metric("request.fault", NUMBER, "fault", "page faults of the machine per response"),
    Metric("request.proc", NUMBER, "proc", "processes and threads created on the machine, per response"),
    Metric("tasks.cswch", RATE, "cswch/s", "context switches of the machine"),
    Metric("interrupts.soft", PERCENT, "%soft", "CPU time in softirqs, mostly packets of the network, of all cores"),
    Metric("tcp_sockets.estab", NUMBER, "estab", "TCP sockets that are established, or that only the peer closed"),
    Metric("tcp_sockets.orphaned", NUMBER, "orphaned", "TCP sockets without a process: closing, with data to send"),
    Metric("sockets.tcp_tw", NUMBER, "tcp-tw", "TCP sockets in TIME_WAIT"),
    Metric("cgroup.cpu", PERCENT, "%cpu", "CPU of the server's control group, of one core", "cgroup_cpu"),
    Metric("cgroup.quota", PERCENT, "%quota", "CPU quota of the control group, of one core", "cgroup_cpu_quota"),
    Metric("cgroup.throttled", PERCENT, "%throttled", "periods in which the CPU quota was used up", "cgroup_throttled"),
    Metric("cgroup.scpu", PERCENT, "%scpu", "time in which tasks waited for a CPU", "cgroup_cpu_waiting"),
    Metric("cgroup.sio", PERCENT, "%sio", "time in which tasks waited for I/O", "cgroup_io_waiting"),
    Metric("cgroup.smem", PERCENT, "%smem", "time in which tasks waited for memory", "cgroup_memory_waiting"),
    Metric(
        "cgroup.kbmemory",
        KIBIBYTES,
        "kbmemory",
        "memory of the control group without inactive file pages",
        "cgroup_memory",
    ),
    Metric("cgroup.kblimit", KIBIBYTES, "kblimit", "memory limit of the control group", "cgroup_memory_limit"),
    Metric(
        "probe.round_trip", LATENCY, "rtt", "time between a request for a sample and the sample", "probe_round_trip"
    ),
    Metric("access.requests", RATE, "requests/s"),
    Metric("access.errors", RATE, "errors/s"),
    Metric("access.hit_ratio", PERCENT, "hit ratio"),
    Metric("coverage", PERCENT, "coverage", "share of the time in which the host was sampled without a gap"),
)


PROCESS_METRICS = tuple(metric.name for metric in _HOST if metric.name.startswith("processes."))
REQUEST_METRICS = tuple(metric.name for metric in _HOST if metric.name.startswith("request."))


# Metrics of a second that are no attributes of it.
_OF_SECOND: dict[str, Callable[[LoadSecond], float]] = {
    "covered": lambda second: second.end - second.start,
    "tls.full": lambda second: second.per_s(second.full_handshakes),
    "tls.resumed": lambda second: second.per_s(second.resumed_handshakes),
    "generator.cpu": lambda second: 100 * second.generator,
    "generator.cpu_wait": lambda second: 100 * second.cpu_wait,
}


def _second(name: str) -> Callable[[LoadSecond], float]:
    return _OF_SECOND.get(name) or attrgetter(name.removeprefix("generator."))


def _attribute(group: str, name: str) -> Callable[[HostPoint], float | None]:
    """Return the reader of a field of a sample, or of a group of fields that may be None."""

    def read(point: HostPoint) -> float | None:
        holder = getattr(point, group) if group else point
        value: float | None = None if holder is None else getattr(holder, name)
        return value

    return read


def _sample(group: str, name: str) -> Callable[[HostPoint], float | None]:
    if group == "load" and name.isdecimal():
        at = ("1", "5", "15").index(name)
        return lambda point: point.load[at]
    if group in ("load", "processes", "probe") or name == "other":
        return _attribute("", name.removesuffix("_per_s"))
    return _attribute({"cgroup": "group"}.get(group, group), name)


def _sar_unit(column: str) -> Unit:
    if column.startswith("%"):
        return PERCENT
    if column.startswith("kb"):
        return KIBIBYTES
    return RATE if column.endswith("/s") else NUMBER


def _of_hosts() -> Iterator[Metric]:
    for metric in _HOST:
        group, _, name = metric.name.rpartition(".")
        yield metric._replace(sample=_sample(group, name)) if metric.gauge else metric
    # The control group is in the table above, too, with more.
    for sar_group in sar.GROUPS:
        for name, column in sar_group.metrics.items():
            yield Metric(f"{sar_group.name}.{name}", _sar_unit(column), column)


_OF_LOAD = {
    metric.name: metric._replace(
        title=metric.title or metric.name, second=_second(metric.name) if metric.gauge else None
    )
    for metric in _LOAD
}
_OF_HOSTS = {metric.name: metric for metric in reversed(list(_of_hosts()))}

# The metrics of each second of load, and of each sample of a host.
SECOND_METRICS = tuple(metric for metric in _OF_LOAD.values() if metric.second)
SAMPLE_METRICS = tuple(metric for metric in _of_hosts() if metric.sample)


def host_entry(name: str) -> Metric:
    """Return the entry of a host's metric, named without the host: of a disk, an interface, a port, or a part of the
    run (`memory.before.used`), the entry of its group. An unknown name has no unit."""
    if name in _OF_HOSTS:
        return _OF_HOSTS[name]
    group, _, rest = name.partition(".")
    last = rest.rpartition(".")[2]
    of_group = _OF_HOSTS.get(f"{group}.{last}")
    return of_group if of_group and "." in rest else Metric(name, title=last or name)


def entry(name: str) -> Metric:
    """Return the entry of a metric, named as in thresholds: `rate`, `p99`, `connect.p50`, `web1.cpu.user`."""
    if name in _OF_LOAD:
        return _OF_LOAD[name]
    if parts := latency_parts(name):
        percent = percent_of(parts[1]) if parts[0] == "response" else None
        words = f"{percent:g}% of the responses took at most this long" if percent else LATENCIES[parts[0]]
        return Metric(name, LATENCY, name, words)
    rest = name.partition(".")[2]
    return host_entry(rest) if rest else Metric(name, title=name)
