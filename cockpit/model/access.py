"""Rates of an access log: requests by status, errors, hit ratio of the cache. Pure."""

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
    """Lines and statuses per second, the hit ratio (0 to 1; None: no lookup logged), and the logged durations."""

    lines: float
    statuses: Mapping[int, float]
    hit_ratio: float | None = None
    latency: Histogram = EMPTY


def rates(counts: Sequence[AccessCounts]) -> AccessRates | None:
    """The rates over some seconds of a log; None without any."""
    seconds = sum(one.seconds for one in counts)
    if seconds <= 0:
        return None
    statuses: Counter[int] = Counter()
    for one in counts:
        statuses.update(one.statuses)
    lookups = sum(one.lookups for one in counts)
    return AccessRates(
        lines=sum(one.lines for one in counts) / seconds,
        statuses={status: number / seconds for status, number in sorted(statuses.items())},
        hit_ratio=sum(one.hits for one in counts) / lookups if lookups else None,
        latency=Histogram.merged(one.latency for one in counts),
    )


def is_access_log(counts: Sequence[AccessCounts]) -> bool:
    """Whether a line of it was read as a request, or none was printed: of other tails only busy ones have counts."""
    return any(one.statuses for one in counts) or (bool(counts) and not any(one.lines for one in counts))


def means(counts: AccessCounts) -> Iterator[MeanGroup]:
    """Requests and responses with status 500 and above per second, and the hit ratio in per cent, for a window."""
    if counts.seconds <= 0:
        return
    requests = sum(counts.statuses.values())
    errors = sum(number for status, number in counts.statuses.items() if status >= 500)
    yield MeanGroup(_REQUESTS, (requests / counts.seconds, errors / counts.seconds), counts.seconds)
    if counts.lookups:
        yield MeanGroup(_HIT_RATIO, (100 * counts.hits / counts.lookups,), counts.lookups)
