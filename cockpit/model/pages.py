"""Metrics of status pages: rates of their counters, means over a window. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cockpit.model.hosts import StatusKind
from cockpit.model.sums import MeanGroup
from cockpit.servers.registry import STATUS_PAGES


def increments(kind: StatusKind, old: Mapping[str, float], new: Mapping[str, float]) -> dict[str, float] | None:
    """The growth of each counter; None if the server was restarted between the two readings."""
    page = STATUS_PAGES[kind]
    if page.age and new.get(page.age, 0.0) < old.get(page.age, 0.0):
        return None
    grown = {name: value - old[name] for name, value in new.items() if name in old and page.is_counter(name)}
    return None if any(growth < 0 for growth in grown.values()) else grown


def rates(kind: StatusKind, old: Mapping[str, float], new: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Each counter per second; empty if the server was restarted."""
    grown = increments(kind, old, new) if seconds > 0 else None
    return {name: growth / seconds for name, growth in (grown or {}).items()}


def weighted(
    kind: StatusKind, old: Mapping[str, float], new: Mapping[str, float], seconds: float
) -> Iterator[MeanGroup]:
    """Yield the means of two readings, `seconds` apart, for a host's window, by the names of PAGE_METRICS.

    Nothing if the server was restarted between them. Between two readings a gauge is taken to have gone straight from
    one value to the other.
    """
    grown = increments(kind, old, new)
    if grown is None or seconds <= 0:
        return
    page = STATUS_PAGES[kind]
    means = {name: (old[own] + new[own]) / 2 for name, own in page.means.items() if own in old and own in new}
    risen = {name: grown[own] / seconds for name, own in page.rates.items() if own in grown}
    for metrics in filter(None, (means, risen)):
        yield MeanGroup(tuple(f"{kind}.{name}" for name in metrics), tuple(metrics.values()), seconds)


# All names that `weighted` gives: means over a window, those of counters per second.
PAGE_METRICS = (
    *(f"{page.name}.{name}" for page in STATUS_PAGES.values() for name in page.means),
    *(f"{page.name}.{name}" for page in STATUS_PAGES.values() for name in page.rates),
)
