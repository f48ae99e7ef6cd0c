"""What the figures of status pages are: which of them count up, their rates, their averages over a window. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cockpit.model.hosts import StatusKind
from cockpit.model.sums import MeanGroup

# By the page's own names. All that squid's `counters` has counts up, but for what GAUGES names.
COUNTERS: dict[StatusKind, frozenset[str]] = {
    "apache": frozenset(
        {
            "Total Accesses",
            "Total kBytes",
            "Total Duration",
            "CPUUser",
            "CPUSystem",
            "CPUChildrenUser",
            "CPUChildrenSystem",
        }
    ),
    "nginx": frozenset({"accepts", "handled", "requests"}),
    "squid": frozenset(),
    "squid-info": frozenset(
        {
            "Number of HTTP requests received",
            "Number of ICP messages received",
            "Number of ICP messages sent",
            "Number of HTCP messages received",
            "Number of HTCP messages sent",
            "Page faults with physical i/o",
        }
    ),
    "tomcat": frozenset({"requestCount", "errorCount", "bytesReceived", "bytesSent", "processingTime"}),
}
GAUGES: dict[StatusKind, frozenset[str]] = {"squid": frozenset({"sample_time", "cd.memory", "cd.local_memory"})}

# Figures that grow with the server's age: where one falls, the server was started anew.
AGES: dict[StatusKind, str] = {"apache": "Uptime", "squid-info": "UP Time"}

# Names for thresholds and tables: of gauges their mean, of counters their rate over the window.
MEANS: dict[StatusKind, dict[str, str]] = {
    "apache": {"busy": "BusyWorkers", "idle": "IdleWorkers", "connections": "ConnsTotal"},
    "nginx": {
        "active": "Active connections",
        "reading": "Reading",
        "writing": "Writing",
        "waiting": "Waiting",
    },
    "squid": {},
    "squid-info": {
        "clients": "Number of clients accessing cache",
        "file_descriptors": "Number of file desc currently in use",
    },
    "tomcat": {"busy": "currentThreadsBusy", "threads": "currentThreadCount", "memory_free": "memory.free"},
}
RATES: dict[StatusKind, dict[str, str]] = {
    "apache": {"requests": "Total Accesses", "kbytes": "Total kBytes"},
    "nginx": {"requests": "requests", "accepts": "accepts"},
    "squid": {
        "requests": "client_http.requests",
        "hits": "client_http.hits",
        "errors": "client_http.errors",
        "kbytes_out": "client_http.kbytes_out",
        "server_requests": "server.all.requests",
    },
    "squid-info": {},
    "tomcat": {"requests": "requestCount", "errors": "errorCount", "bytes_sent": "bytesSent"},
}


def counts_up(kind: StatusKind, name: str) -> bool:
    """Whether a figure only ever grows while its server runs; of a connector of Tomcat's, its name stands before."""
    if kind == "squid":
        return name not in GAUGES["squid"]
    return (name.rpartition(" ")[2] if kind == "tomcat" else name) in COUNTERS[kind]


def increments(kind: StatusKind, old: Mapping[str, float], new: Mapping[str, float]) -> dict[str, float] | None:
    """By how much each counter grew; None where the server was started anew meanwhile, so that nothing can be said."""
    age = AGES.get(kind)
    if age is not None and new.get(age, 0.0) < old.get(age, 0.0):
        return None
    grown = {name: value - old[name] for name, value in new.items() if name in old and counts_up(kind, name)}
    return None if any(growth < 0 for growth in grown.values()) else grown


def rates(kind: StatusKind, old: Mapping[str, float], new: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Of each counter, a second; empty where nothing can be said."""
    grown = increments(kind, old, new) if seconds > 0 else None
    return {name: growth / seconds for name, growth in (grown or {}).items()}


def weighted(
    kind: StatusKind, old: Mapping[str, float], new: Mapping[str, float], seconds: float
) -> Iterator[MeanGroup]:
    """What two readings, so many seconds apart, add to a host's window, by the names of PAGE_FIGURES.

    Nothing where the server was started anew meanwhile. Between two readings a gauge is taken to have gone straight
    from one value to the other.
    """
    grown = increments(kind, old, new)
    if grown is None or seconds <= 0:
        return
    means = {name: (old[own] + new[own]) / 2 for name, own in MEANS[kind].items() if own in old and own in new}
    risen = {name: grown[own] / seconds for name, own in RATES[kind].items() if own in grown}
    for figures in filter(None, (means, risen)):
        yield MeanGroup(tuple(f"{kind}.{name}" for name in figures), tuple(figures.values()), seconds)


# All names that `weighted` gives: means over a window, those of counters a second.
PAGE_FIGURES = tuple(
    dict.fromkeys(f"{kind}.{name}" for table in (MEANS, RATES) for kind, names in table.items() for name in names)
)
