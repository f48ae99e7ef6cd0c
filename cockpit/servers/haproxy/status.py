"""HAProxy's statistics as CSV, from its page (`;csv`) or stats socket: one row per frontend, backend and server."""

from __future__ import annotations

import csv
from collections.abc import Mapping

from cockpit.servers.kind import StatusPageKind
from cockpit.servers.status import MOST_VALUES, NAME_CHARS, number

_TOTALS = {"FRONTEND": "frontend", "BACKEND": "backend"}
# The type of a listener's row, added by `option socket-stats`.
_LISTENER = "3"
_GAUGES = ("qcur", "scur", "rate", "req_rate", "conn_rate", "act", "bck")
_COUNTERS = (
    *("stot", "req_tot", "conn_tot", "bin", "bout", "dreq", "dresp", "ereq", "econ", "eresp", "wretr", "wredis"),
    *("hrsp_1xx", "hrsp_2xx", "hrsp_3xx", "hrsp_4xx", "hrsp_5xx", "hrsp_other", "cli_abrt", "srv_abrt", "lbtot"),
)
# Means over the last 1024 requests of a backend or a server (ms).
_TIMES = ("qtime", "ctime", "rtime", "ttime")
_READ = {"pxname", "svname", "status", "type", *_GAUGES, *_COUNTERS, *_TIMES}


def _rows(page: str) -> dict[str, float]:
    """Return totals over all frontends (`frontend.scur`) and backends, `servers.up` and `servers.down`, and the metrics
    per row after its name (`web/app1 scur`). Names of metrics are those in the CSV's header."""
    if not page.startswith("# pxname,svname,"):
        return {}
    values: dict[str, float] = {"servers.up": 0.0, "servers.down": 0.0}
    single: dict[str, float] = {}
    header, *rows = csv.reader(page.removeprefix("# ").split("\n"))
    columns = [(place, name) for place, name in enumerate(header) if name in _READ]
    for row in filter(None, rows):
        _add({name: row[place] for place, name in columns if place < len(row)}, values, single)
    return values | single


def _add(row: Mapping[str, str], values: dict[str, float], single: dict[str, float]) -> None:
    """Add a row to the totals and to the metrics of single rows, unless its name is overlong."""
    kind = row.get("svname", "")
    total = _TOTALS.get(kind)
    if total is None and row.get("type") != _LISTENER:
        values["servers.up" if row.get("status", "").startswith(("UP", "no check")) else "servers.down"] += 1
    label = f"{row['pxname']}/{kind}"
    for name in (*_GAUGES, *_COUNTERS, *_TIMES):
        value = number(row.get(name, ""))
        if value is None:
            continue
        if len(label) < NAME_CHARS and len(single) < MOST_VALUES:
            single[f"{label} {name}"] = value
        if total and name not in _TIMES:
            values[f"{total}.{name}"] = values.get(f"{total}.{name}", 0.0) + value


STATUS = StatusPageKind(
    name="haproxy",
    url=";csv, or unix:/run/haproxy/admin.sock",
    rows=_rows,
    required="servers.up",
    hint="the URL must end in ;csv, as http://localhost:8404/stats;csv",
    not_found="is there a `stats uri` on this port? The URL is that URI and ;csv",
    forbidden="do the http-request rules of its frontend allow this host?",
    is_counter=lambda name: name.replace(" ", ".").rpartition(".")[2] in _COUNTERS,
    means={"sessions": "frontend.scur", "queued": "backend.qcur", "servers_up": "servers.up"},
    rates={
        "requests": "frontend.req_tot",
        "bytes_out": "frontend.bout",
        "errors": "frontend.hrsp_5xx",
        "retries": "backend.wretr",
    },
    command="show stat",
)
