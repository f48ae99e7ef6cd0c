"""Metrics of each second as Prometheus gauges: names in base units (seconds, bytes, ratios), and their help.

https://prometheus.io/docs/practices/naming/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

Group = Literal["load", "host"]


class Gauge(NamedTuple):
    """The gauge of a CSV column (report.series), whose cells are multiplied by `scale`."""

    name: str
    help: str
    scale: float = 1.0

    @property
    def unit(self) -> str:
        """The unit at the end of its name; "" for a number or a rate."""
        return next((unit for unit in _UNITS if self.name.endswith(f"_{unit}")), "")

    def value(self, cell: float) -> float:
        # A quotient is rounded once, a product with 0.01 twice, because 0.01 is not a binary fraction.
        return cell / round(1 / self.scale) if self.scale < 1 else cell * self.scale


_UNITS = ("seconds", "bytes", "ratio")
_MS, _PERCENT, _KIB, _BLOCK = 0.001, 0.01, 1024, 512

# Column: name without its group, help, scale.
_LOAD: dict[str, tuple[str, str, float]] = {
    "covered_s": ("covered_seconds", "part of the second with load", 1),
    "completed": ("completed", "complete responses in the second", 1),
    "rate_per_s": ("responses_per_second", "complete responses", 1),
    "failed": ("failed", "failed requests in the second", 1),
    "errors": ("errors", "requests of the second without a complete response", 1),
    "queued": ("queued", "requests of the second that were queued at the limit in flight", 1),
    "p50_ms": ("p50_seconds", "median response time of the second", _MS),
    "p99_ms": ("p99_seconds", "99th percentile of the response time of the second", _MS),
    "max_ms": ("max_seconds", "longest response time of the second", _MS),
    "connections": ("connections", "open connections", 1),
    "in_flight": ("in_flight", "requests without a complete response at the end of the second", 1),
    "stalled": ("stalled", "1: requests were in flight and none was completed", 1),
    "generator.cpu_percent": ("generator_cpu_ratio", "CPU of the generator's busiest worker, 1 is a core", _PERCENT),
    "generator.cpu_wait_percent": ("generator_cpu_wait_ratio", "time in which a worker waited for a CPU", _PERCENT),
    "generator.lag_p99_ms": ("generator_lag_p99_seconds", "99th percentile of the delay in sending requests", _MS),
    "generator.saturated": ("generator_saturated", "1: the load generator was the bottleneck", 1),
}  # fmt: skip

_HOST: dict[str, tuple[str, str, float]] = {
    **{
        f"cpu.{mode}_percent": (f"cpu_{mode}_ratio", f"{words}, 1 is all cores", _PERCENT)
        for mode, words in {
            "user": "CPU time in user mode",
            "nice": "CPU time in user mode with low priority",
            "system": "CPU time in the kernel",
            "iowait": "idle CPU time while I/O was pending",
            "steal": "CPU time that the hypervisor gave to other guests",
            "idle": "idle CPU time",
            "other": "CPU time of programs other than the watched servers and cockpit",
        }.items()
    },
    **{
        f"memory.{part}_bytes": (f"memory_{part}_bytes", f"memory: {words}", 1)
        for part, words in {
            "total": "all",
            "used": "used by programs and the kernel",
            "free": "unused",
            "shared": "shared memory and tmpfs",
            "buff_cache": "buffers and page cache",
            "available": "available without swapping",
        }.items()
    },
    "io.tps_per_s": ("io_requests_per_second", "requests to disks", 1),
    "io.rtps_per_s": ("io_reads_per_second", "read requests to disks", 1),
    "io.wtps_per_s": ("io_writes_per_second", "write requests to disks", 1),
    "io.bread_blocks_per_s": ("io_read_bytes_per_second", "bytes read from disks", _BLOCK),
    "io.bwrtn_blocks_per_s": ("io_written_bytes_per_second", "bytes written to disks", _BLOCK),
    "net.rxpck_packets_per_s": ("net_receive_packets_per_second", "packets received, without loopback", 1),
    "net.txpck_packets_per_s": ("net_transmit_packets_per_second", "packets sent, without loopback", 1),
    "net.rxkb_KiB_per_s": ("net_receive_bytes_per_second", "bytes received, without loopback", _KIB),
    "net.txkb_KiB_per_s": ("net_transmit_bytes_per_second", "bytes sent, without loopback", _KIB),
    "net.errors_per_s": ("net_errors_per_second", "errors of network interfaces", 1),
    "net.drops_per_s": ("net_drops_per_second", "packets dropped by network interfaces", 1),
    **{f"load.{span}": (f"load{span}", f"load average of {span} min", 1) for span in (1, 5, 15)},
    "load.running": ("tasks_running", "tasks that run or wait for a CPU", 1),
    "load.blocked": ("tasks_blocked", "tasks that wait for I/O", 1),
    "processes.count": ("processes", "watched processes", 1),
    "processes.spawned_per_s": ("processes_spawned_per_second", "watched processes that were started", 1),
    "processes.exited_per_s": ("processes_exited_per_second", "watched processes that exited", 1),
    "processes.defunct": ("processes_defunct", "watched processes that exited and were not reaped (zombies)", 1),
    "processes.rss_bytes": ("processes_rss_bytes", "resident memory of the watched processes, summed", 1),
    "processes.unshared_bytes": ("processes_unshared_bytes", "resident memory without files and shared memory", 1),
    "processes.pss_bytes": ("processes_pss_bytes", "memory of the watched processes, shared pages divided", 1),
    "cgroup.cpu_percent": ("cgroup_cpu_ratio", "CPU of the server's control group, 1 is a core", _PERCENT),
    "cgroup.quota_percent": ("cgroup_cpu_quota_ratio", "CPU quota of the control group, 1 is a core", _PERCENT),
    "cgroup.throttled_percent": ("cgroup_throttled_ratio", "periods in which the CPU quota was used up", _PERCENT),
    **{
        f"cgroup.{column}_percent": (f"cgroup_{name}_waiting_ratio", f"time in which tasks waited for {words}", 0.01)
        for column, name, words in (("scpu", "cpu", "a CPU"), ("sio", "io", "I/O"), ("smem", "memory", "memory"))
    },
    "cgroup.memory_bytes": ("cgroup_memory_bytes", "memory of the control group without inactive file pages", 1),
    "cgroup.limit_bytes": ("cgroup_memory_limit_bytes", "memory limit of the control group", 1),
    "probe.round_trip_ms": ("probe_round_trip_seconds", "time between a request for a sample and the sample", _MS),
}  # fmt: skip

_GROUPS = {"load": _LOAD, "host": _HOST}


def gauge_of(group: Group, column: str) -> Gauge:
    """Return the gauge of a column: `cockpit_host_cpu_idle_ratio`."""
    name, words, scale = _GROUPS[group][column]
    return Gauge(f"cockpit_{group}_{name}", words, scale)


def descriptions(group: Group) -> Iterator[tuple[str, str]]:
    """Yield each column of the group with its help."""
    for column, (_, words, _) in _GROUPS[group].items():
        yield column, words
