"""PHP-FPM's status page of a pool as JSON: `pm.status_path` with `?json`, requested through the web server."""

from __future__ import annotations

import msgspec

from cockpit.servers.kind import StatusPageKind

_COUNTERS = frozenset({"accepted conn", "max children reached", "slow requests"})


def _rows(page: str) -> dict[str, str | float]:
    """Return the rows of the pool, without those of its processes (`&full`)."""
    rows = msgspec.json.decode(page, type=dict[str, int | float | str | list[msgspec.Raw] | None])
    return {name: row for name, row in rows.items() if isinstance(row, str | float | int)}


STATUS = StatusPageKind(
    name="php-fpm",
    url="/status?json (pm.status_path)",
    rows=_rows,
    required="active processes",
    hint="the URL must end in pm.status_path and ?json, as http://localhost/status?json",
    texts=("pool", "process manager"),
    not_found="is pm.status_path set in the pool, and does the web server pass that path to it?",
    forbidden="does the web server allow this host? nginx: allow 127.0.0.1",
    is_counter=_COUNTERS.__contains__,
    means={"active": "active processes", "idle": "idle processes", "queued": "listen queue"},
    rates={"requests": "accepted conn", "full": "max children reached", "slow": "slow requests"},
    age="start since",
)
