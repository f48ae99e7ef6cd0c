"""squid's cache manager: `counters` has lines of `name = value`, `info` is an indented text report."""

from __future__ import annotations

import re

from cockpit.servers.kind import StatusPageKind
from cockpit.servers.status import separated_rows

_TITLE = "Squid Object Cache"
_METRIC = re.compile(r"(-?\d+(?:\.\d+)?) *(?:%|[A-Za-z/.][A-Za-z/ .]*)?$")
# A row with the values of two time ranges.
_SPANS = re.compile(r"5min: (-?[\d.]+)%?, 60min: (-?[\d.]+)%?$")
_TWO = re.compile(r"(-?\d+\.\d+)\s+(-?\d+\.\d+)$")
# Rows that start with the value, below "Internal Data Structures".
_COUNTED = re.compile(r"(\d+) ([A-Za-z].*)$")


def _counters(page: str) -> dict[str, str]:
    return {name.strip(): rest.split(" ")[0] for name, rest in separated_rows(page, " = ").items()}


def _info(page: str) -> dict[str, str]:
    """Return the metrics by row name. For rows with two time ranges, `5min` or `60min` is appended to the name."""
    rows: dict[str, str] = {}
    for line in page.splitlines():
        name, _, rest = line.strip().partition(":")
        rest = rest.strip()
        if line.startswith(_TITLE):
            rows[name] = rest
        elif ranges := _SPANS.match(rest) or _TWO.match(rest):
            rows |= {f"{name} 5min": ranges[1], f"{name} 60min": ranges[2]}
        elif metric := _METRIC.match(rest):
            rows[name] = metric[1]
        elif counted := _COUNTED.match(name):
            rows[counted[2]] = counted[1]
    return rows


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
    rows=_counters,
    required="client_http.requests",
    hint="the URL must end in /squid-internal-mgr/counters",
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
    rows=_info,
    required="Number of HTTP requests received",
    hint="the URL must end in /squid-internal-mgr/info",
    texts=(_TITLE,),
    forbidden=_FORBIDDEN,
    is_counter=_INFO_COUNTERS.__contains__,
    means={
        "clients": "Number of clients accessing cache",
        "file_descriptors": "Number of file desc currently in use",
    },
    age="UP Time",
)
