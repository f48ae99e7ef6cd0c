"""PHP-FPM's status page of a pool as JSON: `pm.status_path` with `?json`, requested through the web server."""

from __future__ import annotations

import msgspec

from cockpit.servers.kind import StatusPageKind
from cockpit.servers.status import NotThePageError, PageMetrics, number

_HINT = "the URL must end in pm.status_path and ?json, as http://localhost/status?json"
_COUNTERS = frozenset({"accepted conn", "max children reached", "slow requests"})


def parse(page: str) -> PageMetrics:
    """Return the metrics of the pool by their names on the page, without those of its processes (`&full`)."""
    try:
        rows = msgspec.json.decode(page, type=dict[str, int | float | str | list[msgspec.Raw] | None])
    except (msgspec.MsgspecError, RecursionError):
        raise NotThePageError(f"not the JSON of PHP-FPM's status page: {_HINT}") from None
    metrics = {name: number(str(row)) for name, row in rows.items() if isinstance(row, int | float)}
    values = {name: value for name, value in metrics.items() if value is not None}
    if "active processes" not in values:
        raise NotThePageError(f"no `active processes` on the page: {_HINT}")
    return PageMetrics(values, {name: row for name, row in rows.items() if isinstance(row, str)})


STATUS = StatusPageKind(
    name="php-fpm",
    url="/status?json (pm.status_path)",
    parse=parse,
    not_found="is pm.status_path set in the pool, and does the web server pass that path to it?",
    forbidden="does the web server allow this host? nginx: allow 127.0.0.1",
    is_counter=_COUNTERS.__contains__,
    means={"active": "active processes", "idle": "idle processes", "queued": "listen queue"},
    rates={"requests": "accepted conn", "full": "max children reached", "slow": "slow requests"},
    age="start since",
)
