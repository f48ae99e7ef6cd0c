"""Metrics of status pages: rates of their counters, means over a window. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cockpit.model.host.samples import StatusKind
from cockpit.model.sums import MeanGroup
from cockpit.servers.registry import STATUS_PAGES


def increments(kind: StatusKind, old: Mapping[str, float], new: Mapping[str, float]) -> dict[str, float] | None:
    """Return the increase of each counter; None if the server was restarted between the two readings."""
    page = STATUS_PAGES[kind]
    if page.age and new.get(page.age, 0.0) < old.get(page.age, 0.0):
        return None
    deltas = {name: value - old[name] for name, value in new.items() if name in old and page.is_counter(name)}
    return None if any(delta < 0 for delta in deltas.values()) else deltas


def rates(kind: StatusKind, old: Mapping[str, float], new: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Return the rate of each counter (1/s); empty if the server was restarted."""
    deltas = increments(kind, old, new) if seconds > 0 else None
    return {name: delta / seconds for name, delta in (deltas or {}).items()}


def weighted(
    kind: StatusKind, old: Mapping[str, float], new: Mapping[str, float], seconds: float
) -> Iterator[MeanGroup]:
    """Yield the means between two readings, `seconds` apart, for a host's window, by the names of PAGE_METRICS.

    Nothing is yielded if the server was restarted between them. Gauges are interpolated linearly.
    """
    deltas = increments(kind, old, new)
    if deltas is None or seconds <= 0:
        return
    page = STATUS_PAGES[kind]
    gauges = {name: (old[own] + new[own]) / 2 for name, own in page.means.items() if own in old and own in new}
    per_second = {name: deltas[own] / seconds for name, own in page.rates.items() if own in deltas}
    for metrics in filter(None, (gauges, per_second)):
        yield MeanGroup(tuple(f"{kind}.{name}" for name in metrics), tuple(metrics.values()), seconds)


# The names of all metrics that `weighted` yields: gauges, then rates of counters.
PAGE_METRICS = (
    *(f"{page.name}.{name}" for page in STATUS_PAGES.values() for name in page.means),
    *(f"{page.name}.{name}" for page in STATUS_PAGES.values() for name in page.rates),
)
