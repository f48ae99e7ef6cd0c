"""Rates of an access log: requests by status, errors, cache hit ratio. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from cockpit.model.events import AccessCounts
from cockpit.model.histogram import EMPTY, Histogram
from cockpit.model.sums import MeanGroup

_REQUESTS = ("access.requests", "access.errors")
_HIT_RATIO = ("access.hit_ratio",)
ACCESS_METRICS = (*_REQUESTS, *_HIT_RATIO)


class AccessRates(msgspec.Struct, frozen=True, kw_only=True):
    """Lines/s, responses/s by status, cache hit ratio (0 to 1; None: no lookup logged) and logged response times."""

    lines: float
    statuses: Mapping[int, float]
    hit_ratio: float | None = None
    latency: Histogram = EMPTY


def rates(counts: Sequence[AccessCounts]) -> AccessRates | None:
    """Return the rates over a time range of a log; None if `counts` is empty."""
    seconds = sum(part.seconds for part in counts)
    if seconds <= 0:
        return None
    statuses: Counter[int] = Counter()
    for part in counts:
        statuses.update(part.statuses)
    lookups = sum(part.lookups for part in counts)
    return AccessRates(
        lines=sum(part.lines for part in counts) / seconds,
        statuses={status: number / seconds for status, number in sorted(statuses.items())},
        hit_ratio=sum(part.hits for part in counts) / lookups if lookups else None,
        latency=Histogram.merged(part.latency for part in counts),
    )


def is_access_log(counts: Sequence[AccessCounts]) -> bool:
    """Return whether the tail is an access log: a line was parsed as a request, or there are counts without lines.

    Other tails have counts only for seconds in which they print.
    """
    return any(part.statuses for part in counts) or (bool(counts) and not any(part.lines for part in counts))


def means(counts: AccessCounts) -> Iterator[MeanGroup]:
    """Yield requests/s, responses/s with status 500 or higher, and the cache hit ratio (%), for a host's window."""
    if counts.seconds <= 0:
        return
    requests = sum(counts.statuses.values())
    errors = sum(number for status, number in counts.statuses.items() if status >= 500)
    yield MeanGroup(_REQUESTS, (requests / counts.seconds, errors / counts.seconds), counts.seconds)
    if counts.lookups:
        yield MeanGroup(_HIT_RATIO, (100 * counts.hits / counts.lookups,), counts.lookups)
