"""The metrics that sar computes from named kernel counters, grouped by sar's options. Pure.

A metric is absent (unknown, not 0) if a counter that it needs is absent. Names in thresholds are `GROUP.METRIC`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import NamedTuple

from cockpit.model.host.samples import HostReading

# Highest plausible rate (1/s); with a higher rate the metric is unknown.
_MAX_RATE = 1e12
# Converts microseconds per second to per cent.
_US_PER_PERCENT = 1e4
# The group of accept queues; metrics are named by port.
ACCEPT = "accept"

Counters = Mapping[str, int]


class SarGroup(NamedTuple):
    """`option`: the sar option, or the program, that prints the group; `metrics`: name -> sar's column."""

    name: str
    option: str
    metrics: Mapping[str, str]


def _names(columns: str) -> dict[str, str]:
    """Return metric name -> column of sar: `pgpgin` for `pgpgin/s`, `tcp_tw` for `tcp-tw`."""
    return {column.removesuffix("/s").removeprefix("%").replace("-", "_"): column for column in columns.split()}


PAGING = SarGroup(
    "paging", "sar -B", _names("pgpgin/s pgpgout/s fault/s majflt/s pgfree/s pgscank/s pgscand/s pgsteal/s")
)
SWAPPING = SarGroup("swapping", "sar -W", _names("pswpin/s pswpout/s"))
TASKS = SarGroup("tasks", "sar -w", _names("proc/s cswch/s"))
TCP = SarGroup("tcp", "sar -n TCP", _names("active/s passive/s iseg/s oseg/s"))
ETCP = SarGroup("etcp", "sar -n ETCP", _names("atmptf/s estres/s retrans/s isegerr/s orsts/s"))
LISTEN = SarGroup("listen", "nstat", _names("ListenOverflows/s ListenDrops/s"))
PRESSURE = SarGroup("pressure", "sar -q ALL", _names("%scpu %sio %fio %smem %fmem"))
QUEUE = SarGroup("queue", "sar -q", _names("runq-sz plist-sz"))
SOCKETS = SarGroup("sockets", "sar -n SOCK", _names("totsck tcpsck udpsck rawsck ip-frag tcp-tw"))
TCP_STATES = SarGroup("tcp_sockets", "ss -s", _names("estab orphaned"))
INTERRUPTS = SarGroup("interrupts", "sar -u ALL", _names("%soft"))
SOFTIRQ_METRIC = "interrupts.soft"
RAM = SarGroup(
    "ram",
    "sar -r",
    _names("kbmemfree kbavail kbmemused %memused kbbuffers kbcached kbcommit %commit kbactive kbinact kbdirty"),
)
CGROUP = SarGroup("cgroup", "systemd-cgtop", _names("%cpu %quota %throttled kbmemory kblimit %memory %scpu %sio %smem"))
SPEED = SarGroup("speed", "the probe", {"cpu": "loops/s"})
SPEED_METRIC = "speed.cpu"
SWAP = SarGroup("swap", "sar -S", _names("kbswpfree kbswpused %swpused kbswpcad %swpcad"))

GROUPS = (
    *(PAGING, SWAPPING, TASKS, TCP, ETCP, LISTEN, PRESSURE, QUEUE, SOCKETS, TCP_STATES, INTERRUPTS),
    *(RAM, SWAP, CGROUP, SPEED),
)

# The metric is the rate of the sum of these counters. Only the first one must exist.
_RATES: Mapping[str, tuple[str, ...]] = {
    "paging.pgpgin": ("pgpgin",),
    "paging.pgpgout": ("pgpgout",),
    "paging.fault": ("pgfault",),
    "paging.majflt": ("pgmajfault",),
    "paging.pgfree": ("pgfree",),
    "paging.pgscank": ("pgscan_kswapd",),
    "paging.pgscand": ("pgscan_direct",),
    "paging.pgsteal": ("pgsteal_kswapd", "pgsteal_direct", "pgsteal_khugepaged", "pgsteal_proactive"),
    "swapping.pswpin": ("pswpin",),
    "swapping.pswpout": ("pswpout",),
    "tasks.proc": ("processes",),
    "tasks.cswch": ("ctxt",),
    "tcp.active": ("Tcp.ActiveOpens",),
    "tcp.passive": ("Tcp.PassiveOpens",),
    "tcp.iseg": ("Tcp.InSegs",),
    "tcp.oseg": ("Tcp.OutSegs",),
    "etcp.atmptf": ("Tcp.AttemptFails",),
    "etcp.estres": ("Tcp.EstabResets",),
    "etcp.retrans": ("Tcp.RetransSegs",),
    "etcp.isegerr": ("Tcp.InErrs",),
    "etcp.orsts": ("Tcp.OutRsts",),
    "listen.ListenOverflows": ("TcpExt.ListenOverflows",),
    "listen.ListenDrops": ("TcpExt.ListenDrops",),
}
# Pressure stall counters (PSI, µs): time in which some, or all, tasks waited.
_PRESSURES: Mapping[str, str] = {
    "pressure.scpu": "cpu.some",
    "pressure.sio": "io.some",
    "pressure.fio": "io.full",
    "pressure.smem": "memory.some",
    "pressure.fmem": "memory.full",
    "cgroup.scpu": "cgroup.waits_cpu",
    "cgroup.sio": "cgroup.waits_io",
    "cgroup.smem": "cgroup.waits_memory",
}


def _limit(of: Counters, name: str) -> int:
    """Return a limit. Raises KeyError if there is none."""
    if not of[name]:
        raise KeyError(name)
    return of[name]


def _memused(of: Counters) -> int:
    return max(0, of["MemTotal"] - of["MemFree"] - of["Buffers"] - of["Cached"] - of["Slab"])


def _swpused(of: Counters) -> int:
    return of["SwapTotal"] - of["SwapFree"]


# Gauges that are counters.
_COUNTS: Mapping[str, str] = {
    "queue.plist_sz": "tasks",
    "sockets.totsck": "sockets.used",
    "sockets.tcpsck": "TCP.inuse",
    "sockets.udpsck": "UDP.inuse",
    "sockets.rawsck": "RAW.inuse",
    "sockets.ip_frag": "FRAG.inuse",
    "sockets.tcp_tw": "TCP.tw",
    "tcp_sockets.estab": "Tcp.CurrEstab",
    "tcp_sockets.orphaned": "TCP.orphan",
    "ram.kbmemfree": "MemFree",
    "ram.kbavail": "MemAvailable",
    "ram.kbbuffers": "Buffers",
    "ram.kbcached": "Cached",
    "ram.kbcommit": "Committed_AS",
    "ram.kbactive": "Active",
    "ram.kbinact": "Inactive",
    "ram.kbdirty": "Dirty",
    "cgroup.kbmemory": "cgroup.memory",
    "swap.kbswpfree": "SwapFree",
    "swap.kbswpcad": "SwapCached",
}
# All gauges.
_LEVELS: Mapping[str, Callable[[Counters], float]] = {
    **{metric: itemgetter(counter) for metric, counter in _COUNTS.items()},
    "queue.runq_sz": lambda of: max(0, of["runnable"] - 1),
    "ram.kbmemused": _memused,
    "ram.memused": lambda of: 100 * _memused(of) / of["MemTotal"],
    "ram.commit": lambda of: 100 * of["Committed_AS"] / (of["MemTotal"] + of["SwapTotal"]),
    "cgroup.quota": lambda of: _limit(of, "cgroup.quota") / 10,
    "cgroup.kblimit": lambda of: _limit(of, "cgroup.limit"),
    "cgroup.memory": lambda of: 100 * of["cgroup.memory"] / _limit(of, "cgroup.limit"),
    "swap.kbswpused": _swpused,
    "swap.swpused": lambda of: 100 * _swpused(of) / of["SwapTotal"] if of["SwapTotal"] else 0.0,
    "swap.swpcad": lambda of: 100 * of["SwapCached"] / _swpused(of) if _swpused(of) else 0.0,
}
# Counters with a field in the reading; all named counters besides these.
_FIELDS = {"processes", "MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SwapTotal", "SwapFree"}
COUNTERS = (
    frozenset(
        (
            *(name for names in _RATES.values() for name in names),
            *_PRESSURES.values(),
            *_COUNTS.values(),
            *("runnable", "Slab", "loops", "loop_us", "files.open"),
            *(f"cgroup.{name}" for name in ("version", "cpu", "periods", "throttled", "quota", "limit")),
        )
    )
    - _FIELDS
)

_GROUP_LEVELS = {name: level for name, level in _LEVELS.items() if name.startswith(f"{CGROUP.name}.")}

METRICS = tuple(f"{group.name}.{name}" for group in GROUPS for name in group.metrics)


def counter_names(group: SarGroup) -> dict[str, str]:
    """Return column of sar, without its unit -> the named counter that it is, or whose rate it is."""
    names = {**_COUNTS, **{metric: counters[0] for metric, counters in _RATES.items()}}
    known = {column: names.get(f"{group.name}.{metric}") for metric, column in group.metrics.items()}
    return {column.removesuffix("/s"): counter for column, counter in known.items() if counter in COUNTERS}


def rates(old: HostReading, new: HostReading, seconds: float) -> dict[str, float]:
    """Return rates (1/s) and pressure (per cent) between two readings of one boot.

    A metric is left out if a counter decreased, or increased faster than is plausible.
    """
    if seconds <= 0:
        return {}
    before, after = _counters(old), _counters(new)
    rates_by_metric = {}
    for metric, counters in _RATES.items():
        rate = _rate(before, after, counters, seconds)
        if rate is not None:
            rates_by_metric[metric] = rate
    for metric, counter in _PRESSURES.items():
        rate = _rate(before, after, (counter,), seconds)
        if rate is not None:
            rates_by_metric[metric] = min(100.0, rate / _US_PER_PERCENT)
    return rates_by_metric | _group_rates(before, after, seconds) | _speed(before, after, seconds)


def _group_rates(before: Counters, after: Counters, seconds: float) -> dict[str, float]:
    """Return the CPU of the server's control group in per cent of one CPU, and the share of its periods in which the
    quota was used up."""
    rates_by_metric = {}
    used = _rate(before, after, ("cgroup.cpu",), seconds)
    if used is not None:
        rates_by_metric["cgroup.cpu"] = used / _US_PER_PERCENT
    periods, throttled = (_rate(before, after, (f"cgroup.{name}",), seconds) for name in ("periods", "throttled"))
    if periods is not None and throttled is not None:
        rates_by_metric["cgroup.throttled"] = min(100.0, 100 * throttled / periods) if periods else 0.0
    return rates_by_metric


def _speed(before: Counters, after: Counters, seconds: float) -> dict[str, float]:
    """Return the speed of the CPU: fixed loops of the probe per second of CPU time.

    It decreases with the clock rate of the CPU, and while another virtual machine uses the same core or its caches.
    """
    loops, spent = (_rate(before, after, (name,), seconds) for name in ("loops", "loop_us"))
    return {SPEED_METRIC: 1e6 * loops / spent} if loops and spent else {}


def levels(reading: HostReading) -> dict[str, float]:
    """Return the gauges of a reading: memory in KiB, counts, per cent, and the accept queue of each port."""
    known_levels = _levels_of(_counters(reading), _LEVELS)
    return known_levels | {f"{ACCEPT}.{port}": queue for port, queue in reading.accept.items()}


def _levels_of(counters: Counters, levels: Mapping[str, Callable[[Counters], float]]) -> dict[str, float]:
    known_levels: dict[str, float] = {}
    for metric, level in levels.items():
        try:
            known_levels[metric] = level(counters)
        except (KeyError, ZeroDivisionError):
            continue
    return known_levels


def group_values(reading: HostReading, rates: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics of the server's control group, by name without the prefix of the group; `rates` are those of
    the last interval. Empty if the server has no control group of its own."""
    if not reading.counters.get("cgroup.version"):
        return {}
    names = (f"{CGROUP.name}.{name}" for name in CGROUP.metrics)
    known_values = {name: rates[name] for name in names if name in rates} | _levels_of(reading.counters, _GROUP_LEVELS)
    return {name.partition(".")[2]: value for name, value in known_values.items()}


def mean_levels(old: Mapping[str, float], new: Mapping[str, float]) -> dict[str, float]:
    """Return the means of the gauges that both readings have, interpolated linearly."""
    return {metric: (old[metric] + level) / 2 for metric, level in new.items() if metric in old}


def highest(*some: Mapping[str, float]) -> dict[str, float]:
    """Return the maximum of each metric."""
    maxima: dict[str, float] = {}
    for values in some:
        for metric, value in values.items():
            maxima[metric] = max(value, maxima.get(metric, value))
    return maxima


def is_accept_queue(metric: str) -> bool:
    """Return whether the metric is the accept queue of a port: `accept.80`."""
    group, _, port = metric.partition(".")
    return group == ACCEPT and port.isdecimal()


def _rate(before: Counters, after: Counters, counters: Iterable[str], seconds: float) -> float | None:
    known = [name for name in counters if name in before and name in after]
    first = next(iter(counters))
    deltas = [after[name] - before[name] for name in known]
    if first not in known or min(deltas) < 0 or sum(deltas) > _MAX_RATE * seconds:
        return None
    return sum(deltas) / seconds


def _counters(reading: HostReading) -> dict[str, int]:
    """Return all counters by the kernel's names, including those with a field in the reading. 0 forks: not read."""
    memory = reading.memory
    forks = {"processes": reading.forks} if reading.forks else {}
    if not memory.total:
        return {**reading.counters, **forks}
    return {
        **reading.counters,
        **forks,
        "MemTotal": memory.total,
        "MemFree": memory.free,
        **({} if memory.available is None else {"MemAvailable": memory.available}),
        "Buffers": memory.buffers,
        "Cached": memory.cached,
        "SwapTotal": memory.swap_total,
        "SwapFree": memory.swap_free,
    }
