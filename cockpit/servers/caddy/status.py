"""Metrics of Caddy's admin endpoint in the text format of Prometheus.

https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from __future__ import annotations

import re

from cockpit.servers.kind import StatusPageKind
from cockpit.servers.status import NAME_CHARS, NotThePageError, PageMetrics, number

_HINT = "the URL should end in /metrics, as http://localhost:2019/metrics, or in the socket, as unix:/run/admin.sock"
# Samples of a page that are read.
_MOST = 20_000
_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]{0,199})(?:\{([^\n]{0,4000})\})? ([^ \n]{1,40})(?: -?\d{1,20})?")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]{0,99})="((?:[^"\\\n]|\\.){0,500})",?')
# Labels over which samples are added up; those of histograms and summaries are left out.
_SUMMED = frozenset(("server", "code", "method", "host"))
_PARTS = frozenset(("le", "quantile"))
_REQUIRED = "process_cpu_seconds_total"
_HTTP = "caddy_http_"
_REQUESTS, _IN_FLIGHT = f"{_HTTP}requests_total", f"{_HTTP}requests_in_flight"
# Every handler of a route counts a request; these are the ones that answer it.
_ANSWERING = ("file_server", "reverse_proxy", "static_response")
_COUNTERS = ("_total", "_sum", "_count", "_bucket")


def parse(page: str) -> PageMetrics:
    """Samples by their names, with the labels that tell them apart: `caddy_http_requests_total encode`. Added up are
    those of several servers, codes, methods and hosts. `requests` and `in_flight` are those of the handlers that answer
    requests; they are missing unless the global options have `servers { metrics }`."""
    values: dict[str, float] = {}
    for line in page.split("\n", _MOST)[:_MOST]:
        sample = _SAMPLE.fullmatch(line.rstrip("\r"))
        if sample is None:
            continue
        name, value = _name(sample[1], sample[2] or ""), number(sample[3])
        if name and value is not None and len(name) <= NAME_CHARS:
            total = number(repr(values.get(name, 0.0) + value))
            if total is not None:
                values[name] = total
    if _REQUIRED not in values:
        raise NotThePageError(f"no {_REQUIRED} on it: {_HINT}")
    for short, name in (("requests", _REQUESTS), ("in_flight", _IN_FLIGHT)):
        answered = [values[key] for one in _ANSWERING if (key := f"{name} {one}") in values]
        values |= {short: sum(answered)} if answered else {}
    # Caddy's own first: only some metrics of a page are kept.
    return PageMetrics(dict(sorted(values.items(), key=lambda one: one[0].startswith("go_"))), {})


def _name(name: str, labels: str) -> str:
    """The name of a sample with its labels; "" for the parts of a histogram or a summary."""
    found = _LABEL.findall(labels)
    if any(label in _PARTS for label, _ in found):
        return ""
    return " ".join((name, *(value for label, value in found if label not in _SUMMED and value)))


def _is_counter(name: str) -> bool:
    return name == "requests" or name.partition(" ")[0].endswith(_COUNTERS)


STATUS = StatusPageKind(
    name="caddy",
    url=":2019/metrics, or unix:/run/caddy/admin.sock",
    parse=parse,
    not_found=_HINT,
    forbidden="the admin endpoint answers only to the host names of its own address: request it as localhost:2019",
    is_counter=_is_counter,
    means={
        "in_flight": "in_flight",
        "goroutines": "go_goroutines",
        "memory": "process_resident_memory_bytes",
        "open_files": "process_open_fds",
    },
    rates={"requests": "requests", "cpu": _REQUIRED},
    # It begins again with the process.
    age=_REQUIRED,
    generation="caddy_config_last_reload_success_timestamp_seconds",
    # On a socket it answers if the host is empty.
    program='curl -gsS --fail --max-time 2 --unix-socket "$1" -H "Host;" http://localhost/metrics',
)
