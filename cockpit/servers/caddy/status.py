"""Metrics of Caddy's admin endpoint, in the Prometheus text format.

https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from __future__ import annotations

import re

from cockpit.servers.kind import StatusPageKind
from cockpit.servers.status import NAME_CHARS, number

# Maximum number of lines that are parsed.
_MAX_LINES = 20_000
_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]{0,199})(?:\{([^\n]{0,4000})\})? ([^ \n]{1,40})(?: -?\d{1,20})?")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]{0,99})="((?:[^"\\\n]|\\.){0,500})",?')
# Samples are summed over the labels in _SUMMED. Samples with a label in _PARTS (buckets and quantiles) are skipped.
_SUMMED = frozenset(("server", "code", "method", "host"))
_PARTS = frozenset(("le", "quantile"))
_REQUIRED = "process_cpu_seconds_total"
_HTTP = "caddy_http_"
_REQUESTS, _IN_FLIGHT = f"{_HTTP}requests_total", f"{_HTTP}requests_in_flight"
# Every handler of a route counts a request; only these handlers answer it.
_ANSWERING = ("file_server", "reverse_proxy", "static_response")
_COUNTERS = ("_total", "_sum", "_count", "_bucket")


def _rows(page: str) -> dict[str, float]:
    """Return the samples, named by metric and remaining labels: `caddy_http_requests_total encode`. Samples are summed
    over servers, codes, methods and hosts. `requests` and `in_flight` count the handlers that answer requests; they are
    missing without `servers { metrics }` in the global options."""
    values: dict[str, float] = {}
    for line in page.split("\n", _MAX_LINES)[:_MAX_LINES]:
        sample = _SAMPLE.fullmatch(line.rstrip("\r"))
        if sample is None:
            continue
        name, value = _name(sample[1], sample[2] or ""), number(sample[3])
        if name and value is not None and len(name) <= NAME_CHARS:
            total = number(values.get(name, 0.0) + value)
            if total is not None:
                values[name] = total
    for short, name in (("requests", _REQUESTS), ("in_flight", _IN_FLIGHT)):
        answered = [values[key] for handler in _ANSWERING if (key := f"{name} {handler}") in values]
        values |= {short: sum(answered)} if answered else {}
    # Metrics of the Go runtime last: the number of metrics of a page is limited.
    return dict(sorted(values.items(), key=lambda item: item[0].startswith("go_")))


def _name(name: str, labels: str) -> str:
    """Return the name of a sample with its labels; "" for a bucket or a quantile."""
    pairs = _LABEL.findall(labels)
    if any(label in _PARTS for label, _ in pairs):
        return ""
    return " ".join((name, *(value for label, value in pairs if label not in _SUMMED and value)))


STATUS = StatusPageKind(
    name="caddy",
    url=":2019/metrics, or unix:/run/caddy/admin.sock",
    rows=_rows,
    required=_REQUIRED,
    hint="the URL must end in /metrics, e.g. http://localhost:2019/metrics, or in a socket, e.g. unix:/run/admin.sock",
    forbidden="the admin endpoint accepts only requests with its configured host name, e.g. localhost:2019",
    is_counter=lambda name: name == "requests" or name.partition(" ")[0].endswith(_COUNTERS),
    means={
        "in_flight": "in_flight",
        "goroutines": "go_goroutines",
        "memory": "process_resident_memory_bytes",
        "open_files": "process_open_fds",
    },
    rates={"requests": "requests", "cpu": _REQUIRED},
    # CPU seconds restart with the process.
    age=_REQUIRED,
    generation="caddy_config_last_reload_success_timestamp_seconds",
    # On a socket, the endpoint requires an empty Host header.
    program='curl -gsS --fail --max-time 2 --unix-socket "$1" -H "Host;" http://localhost/metrics',
)
