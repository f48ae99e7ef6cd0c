"""squid's cache manager: `counters` has lines of `name = value`, `info` is an indented text report."""

from __future__ import annotations

import re

from cockpit.servers.kind import StatusPageKind
from cockpit.servers.status import NotThePageError, PageMetrics, number

_METRIC = re.compile(r"(-?\d+(?:\.\d+)?) *(?:%|[A-Za-z/.][A-Za-z/ .]*)?$")
# A row with the values of two time ranges.
_SPANS = re.compile(r"5min: (-?[\d.]+)%?, 60min: (-?[\d.]+)%?$")
_TWO = re.compile(r"(-?\d+\.\d+)\s+(-?\d+\.\d+)$")
# Rows that start with the value, below "Internal Data Structures".
_COUNTED = re.compile(r"(\d+) ([A-Za-z].*)$")


def parse_counters(page: str) -> PageMetrics:
    values: dict[str, float] = {}
    for line in page.splitlines():
        name, equals, rest = line.partition(" = ")
        value = number(rest.split(" ")[0]) if equals else None
        if value is not None:
            values[name.strip()] = value
    if "client_http.requests" not in values:
        raise NotThePageError("no client_http.requests on the page: the URL must end in /squid-internal-mgr/counters")
    return PageMetrics(values, {})


def parse_info(page: str) -> PageMetrics:
    """Return the metrics by row name. For rows with two time ranges, `5min` or `60min` is appended to the name."""
    values: dict[str, float] = {}
    text: dict[str, str] = {}
    for line in page.splitlines():
        name, colon, rest = line.strip().partition(":")
        rest = rest.strip()
        if line.startswith("Squid Object Cache"):
            text[name] = rest
        else:
            metrics = _named_metrics(name, rest) if colon else _counted(name)
            values |= {row: value for row, digits in metrics.items() if (value := number(digits)) is not None}
    if "Squid Object Cache" not in text:
        raise NotThePageError("no Squid Object Cache on the page: the URL must end in /squid-internal-mgr/info")
    return PageMetrics(values, text)


def _named_metrics(name: str, rest: str) -> dict[str, str]:
    """Return the metrics of a row that starts with its name, as printed."""
    if match := _SPANS.match(rest) or _TWO.match(rest):
        return {f"{name} 5min": match[1], f"{name} 60min": match[2]}
    match = _METRIC.match(rest)
    return {name: match[1]} if match else {}


def _counted(row: str) -> dict[str, str]:
    """Return the metric of a row that starts with its value."""
    match = _COUNTED.match(row)
    return {match[2]: match[1]} if match else {}


_FORBIDDEN = "does squid.conf allow this host? http_access allow localhost manager"
_GAUGES = frozenset({"sample_time", "cd.memory", "cd.local_memory"})
_INFO_COUNTERS = frozenset(
    {
        "Number of HTTP requests received",
        "Number of ICP messages received",
        "Number of ICP messages sent",
        "Number of HTCP messages received",
        "Number of HTCP messages sent",
        "Page faults with physical i/o",
    }
)

COUNTERS = StatusPageKind(
    name="squid",
    url="/squid-internal-mgr/counters",
    parse=parse_counters,
    not_found="the URL must end in /squid-internal-mgr/counters",
    forbidden=_FORBIDDEN,
    is_counter=lambda name: name not in _GAUGES,
    rates={
        "requests": "client_http.requests",
        "hits": "client_http.hits",
        "errors": "client_http.errors",
        "kbytes_out": "client_http.kbytes_out",
        "server_requests": "server.all.requests",
    },
)
INFO = StatusPageKind(
    name="squid-info",
    url="/squid-internal-mgr/info",
    parse=parse_info,
    not_found="the URL must end in /squid-internal-mgr/info",
    forbidden=_FORBIDDEN,
    is_counter=_INFO_COUNTERS.__contains__,
    means={
        "clients": "Number of clients accessing cache",
        "file_descriptors": "Number of file desc currently in use",
    },
    age="UP Time",
)
