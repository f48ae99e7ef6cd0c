"""Compaction of the ticks of a page: one tick per worker and second, exact histograms once per segment.

Each tick keeps its latencies in coarse buckets. `expanded` distributes the exact histogram of the segment over the
ticks again: latencies are exact over the page, and within 1.6% over a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import groupby, pairwise
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from cockpit.model.counts import HISTOGRAMS, Counts, Group, add, sums
from cockpit.model.events import AnyEvent
from cockpit.model.fold.load import bottlenecks, segment_of, silent
from cockpit.model.histogram import EMPTY, Histogram
from cockpit.model.state import State
from cockpit.model.tick import Tick

Numbered = tuple[int, AnyEvent]
NumberedTick = tuple[int, Tick]


class Totals(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The histograms and named requests of a segment over a time range."""

    connect: Histogram = EMPTY
    tls: Histogram = EMPTY
    tls_resumed: Histogram = EMPTY
    first_byte: Histogram = EMPTY
    head_of_line: Histogram = EMPTY
    service: Histogram = EMPTY
    response: Histogram = EMPTY
    lag: Histogram = EMPTY
    groups: dict[str, Group] = {}

    @classmethod
    def of(cls, counts: Counts) -> Totals:
        return cls(**{name: getattr(counts, name) for name in cls.__struct_fields__})

    @property
    def latency(self) -> str:
        """The name of the latency that ticks keep: response time of open load, else service time."""
        return "response" if self.response.filled else "service"


# Fields whose value is that of the last tick.
_LATEST = ("t", "run", "worker", "stage", "warmup", "connections", "in_flight", "oldest", "silence")
_NO_HISTOGRAMS: dict[str, Any] = dict.fromkeys(HISTOGRAMS, EMPTY)


class SegmentTicks(msgspec.Struct, frozen=True, array_like=True):
    """Compacted ticks, and their event numbers. `segment`: index in the state, -1 if they belong to no segment."""

    segment: int
    numbers: tuple[int, ...]
    ticks: tuple[Tick, ...]


def compacted(ticks: Iterable[NumberedTick], state: State) -> list[tuple[SegmentTicks, Totals]]:
    """Compact the ticks of a page, by segment. `state` is the state at the end of the page."""
    segments: dict[int, list[NumberedTick]] = {}
    for number, tick in ticks:
        at = segment_of(state, tick)
        segments.setdefault(-1 if at is None else at, []).append((number, tick))
    return [_compact_segment(at, pieces) for at, pieces in segments.items()]


def _compact_segment(segment: int, ticks: list[NumberedTick]) -> tuple[SegmentTicks, Totals]:
    totals = _totals([tick for _, tick in ticks])
    # The first tick stays separate: it may start the segment, at the time of other samples.
    pieces = [ticks[:1], *_pieces(ticks[1:])]
    joined = sorted((piece[-1][0], _merge_ticks([tick for _, tick in piece], totals.latency)) for piece in pieces)
    return SegmentTicks(segment, tuple(number for number, _ in joined), tuple(tick for _, tick in joined)), totals


def _pieces(ticks: list[NumberedTick]) -> list[list[NumberedTick]]:
    """Group consecutive ticks of a worker by second, bottleneck of the generator, and whether the server responds."""

    def piece(numbered: NumberedTick) -> tuple[int, int, tuple[bool, bool], bool]:
        tick = numbered[1]
        return tick.worker, int((tick.start + tick.t) / 2), bottlenecks(tick), silent(tick)

    by_worker = sorted(ticks, key=lambda numbered: (numbered[1].worker, numbered[0]))
    return [list(some) for _, some in groupby(by_worker, piece)]


def _merge_ticks(ticks: Sequence[Tick], latency: str) -> Tick:
    """Merge ticks of one worker. Of the histograms only lag is kept, and the latency in coarse buckets."""
    kept = {name: Histogram.merged(getattr(tick, name) for tick in ticks) for name in (latency, "lag")}
    kept[latency] = kept[latency].coarse()
    return replace(reduce(_add, map(_without_histograms, ticks)), **kept)


def _without_histograms(tick: Tick) -> Tick:
    groups = {name: replace(group, service=EMPTY, response=EMPTY) for name, group in tick.groups.items()}
    return replace(tick, groups=groups, **_NO_HISTOGRAMS)


def _add(first: Tick, then: Tick) -> Tick:
    last = {name: getattr(then, name) for name in _LATEST}
    return replace(first, **{**sums(first, then), **last, "start": first.start, "pause": max(first.pause, then.pause)})


def _totals(ticks: Sequence[Tick]) -> Totals:
    groups = reduce(add, (Totals(groups=tick.groups) for tick in ticks)).groups
    return Totals(
        groups=groups, **{name: Histogram.merged(getattr(tick, name) for tick in ticks) for name in HISTOGRAMS}
    )


def expanded(kept: SegmentTicks, totals: Totals) -> list[NumberedTick]:
    """Return the ticks of one segment (inverse of `compacted`). Raises ValueError if ticks and totals do not match."""
    latency = totals.latency
    spread = _spread(getattr(totals, latency), [getattr(tick, latency) for tick in kept.ticks])
    *ticks, last = [replace(tick, **{latency: histograms}) for tick, histograms in zip(kept.ticks, spread, strict=True)]
    # All other histograms are only needed over the page: the last tick has them.
    rest: dict[str, Any] = {name: getattr(totals, name) for name in HISTOGRAMS if name not in (latency, "lag")}
    groups = {
        name: replace(last.groups.get(name, Group()), service=group.service, response=group.response)
        for name, group in totals.groups.items()
    }
    return list(zip(kept.numbers, [*ticks, replace(last, groups=groups, **rest)], strict=True))


def _spread(total: Histogram, coarse: Sequence[Histogram]) -> list[Histogram]:
    """Distribute the counts of `total` over histograms, each with the total count of the `coarse` one at its index."""
    if not total.filled:
        return [EMPTY] * len(coarse)
    owners = np.repeat(np.arange(len(coarse)), [len(histogram.indices) for histogram in coarse])
    buckets, counts = (np.concatenate([getattr(item, name) for item in coarse]) for name in ("indices", "counts"))
    order = np.lexsort((owners, buckets))
    # Cut the sorted latencies at the bucket ends of both: each piece then belongs to one histogram and one fine bucket.
    sums, fine_sums = np.cumsum(counts[order]), np.cumsum(total.counts)
    if not len(sums) or sums[-1] != fine_sums[-1]:
        raise ValueError("latency counts do not add up")
    cuts = np.union1d(sums, fine_sums)
    owner = owners[order][np.searchsorted(sums, cuts)]
    indices = total.indices[np.searchsorted(fine_sums, cuts)]
    sizes = np.diff(cuts, prepend=0)
    by_owner = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[by_owner], np.arange(len(coarse) + 1)).tolist()
    parts = [by_owner[first:last] for first, last in pairwise(bounds)]
    return [
        Histogram(indices[part], sizes[part], whole.total_ns, whole.min_ns, whole.max_ns) if len(part) else EMPTY
        for whole, part in zip(coarse, parts, strict=True)
    ]
