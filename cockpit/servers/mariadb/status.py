"""MariaDB's `SHOW GLOBAL STATUS`: lines of `Name<tab>value`."""

from __future__ import annotations

from functools import partial

from cockpit.servers.kind import StatusPageKind
from cockpit.servers.status import separated_rows

_NAMES = (
    "Aborted_|Bytes_|Com_(select|insert|update|delete|commit)$|Connection_errors_max|Connections$|Created_tmp"
    "|Innodb_(buffer_pool|data|row_lock)|Max_used|Open_tables|Opened_tables|Qcache|Queries|Questions|Slow_queries|Table_open_cache|Threads|Uptime$"
)
_GAUGES = (
    *("Threads_cached", "Threads_connected", "Threads_running", "Open_tables", "Max_used_", "Uptime", "Qcache_free"),
    *("Qcache_queries", "Qcache_total", "Innodb_buffer_pool_bytes", "Innodb_data_pending"),
    # Other metrics with this prefix are counters: flushed, made_young, lru_freed.
    *(f"Innodb_buffer_pool_pages_{name}" for name in ("data", "dirty", "free", "misc", "old", "total")),
    *("Innodb_row_lock_current", "Innodb_row_lock_time_avg", "Innodb_row_lock_time_max", "Innodb_buffer_pool_dump"),
    *("Innodb_buffer_pool_load", "Innodb_buffer_pool_resize", "Table_open_cache_active"),
)


STATUS = StatusPageKind(
    name="mariadb",
    url="unix:/run/mysqld/mysqld.sock",
    rows=partial(separated_rows, sign="\t"),
    required="Threads_connected",
    hint="the URL must be the server's socket, e.g. unix:/run/mysqld/mysqld.sock",
    is_counter=lambda name: not name.startswith(_GAUGES),
    means={"connected": "Threads_connected", "running": "Threads_running"},
    rates={
        "queries": "Queries",
        "connections": "Connections",
        "refused": "Connection_errors_max_connections",
        "threads_created": "Threads_created",
        "slow": "Slow_queries",
        "disk_reads": "Innodb_buffer_pool_reads",
        "opened_tables": "Opened_tables",
    },
    age="Uptime",
    program=f'mariadb --no-defaults --socket="$1" -NBe "SHOW GLOBAL STATUS WHERE Variable_name RLIKE \'^({_NAMES})\'"',
)
