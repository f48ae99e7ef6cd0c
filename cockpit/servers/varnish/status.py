"""Varnish's counters: `varnishstat -j` of one instance."""

from __future__ import annotations

import msgspec

from cockpit.servers.kind import StatusPageKind

_AREAS = ("MGT.", "MAIN.", "SMA.", "SMF.", "SMU.", "VBE.")
_GAUGES = frozenset(
    "MAIN." + name
    for name in (
        *("pools", "threads", "thread_queue_len", "n_object", "n_vampireobject", "n_objectcore", "n_objecthead"),
        *("n_backend", "n_pipe", "n_vcl", "n_vcl_avail", "n_vcl_discard", "bans", "bans_completed", "bans_obj"),
        *("bans_req", "bans_persisted_bytes", "bans_persisted_fragmentation", "vmods", "uptime"),
    )
) | {"MGT.uptime"}
_BITMAP = "b"


class _Counter(msgspec.Struct):
    value: int | float
    flag: str = ""


class _Page(msgspec.Struct):
    counters: dict[str, _Counter]


def _rows(page: str) -> dict[str, float]:
    """Return the counters of the management process, the cache, its storages and backends, by their Varnish names."""
    counters = msgspec.json.decode(page, type=_Page).counters.items()
    return {name: row.value for name, row in counters if name.startswith(_AREAS) and row.flag != _BITMAP}


def _is_counter(name: str) -> bool:
    last = name.rpartition(".")[2]
    return name not in _GAUGES and not last.startswith("g_") and not (name.startswith("VBE.") and last == "conn")


STATUS = StatusPageKind(
    name="varnish",
    url="unix:/var/lib/varnish/varnishd",
    rows=_rows,
    required="MAIN.client_req",
    hint="the URL must end in the instance's working directory, e.g. unix:/var/lib/varnish/varnishd",
    is_counter=_is_counter,
    means={"threads": "MAIN.threads", "queued": "MAIN.thread_queue_len", "objects": "MAIN.n_object"},
    rates={
        "requests": "MAIN.client_req",
        "hits": "MAIN.cache_hit",
        "misses": "MAIN.cache_miss",
        "waited": "MAIN.sess_queued",
        "dropped": "MAIN.sess_dropped",
        "thread_failures": "MAIN.threads_failed",
        "evicted": "MAIN.n_lru_nuked",
        "backend_connections": "MAIN.backend_conn",
        "backend_failures": "MAIN.backend_fail",
    },
    age="MAIN.uptime",
    program='varnishstat -t 2 -j -n "$1"',
)
