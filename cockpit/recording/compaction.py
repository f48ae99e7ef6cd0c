"""Compaction of the ticks of a page: one tick per worker and second, exact histograms once per segment.

Each tick keeps its histograms in coarse buckets. `expanded` distributes the exact histograms of the segment over the
ticks again: they are exact over the page; over a second, latencies are within 1.6%, other histograms within 6%.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import groupby, pairwise
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from cockpit.model.counts import HISTOGRAMS, Counts, Group, add, sums
from cockpit.model.events import AnyEvent
from cockpit.model.fold.load import bottlenecks, segment_of, silent
from cockpit.model.histogram import COARSER, EMPTY, Histogram
from cockpit.model.state import State
from cockpit.model.tick import Tick

Numbered = tuple[int, AnyEvent]
NumberedTick = tuple[int, Tick]
_C = TypeVar("_C", Tick, Group)


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


# Fields whose value is that of the last tick.
_LATEST = ("t", "run", "worker", "stage", "warmup", "connections", "in_flight", "oldest", "silence")
# The lag of the generator stays exact: a limit decides which seconds count.
_COARSENED = tuple(name for name in HISTOGRAMS if name != "lag")
_GROUP_HISTOGRAMS = tuple(name for name in HISTOGRAMS if name in Group.__struct_fields__)


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
    joined = sorted((piece[-1][0], _merge_ticks([tick for _, tick in piece])) for piece in pieces)
    return SegmentTicks(segment, tuple(number for number, _ in joined), tuple(tick for _, tick in joined)), totals


def _pieces(ticks: list[NumberedTick]) -> list[list[NumberedTick]]:
    """Group consecutive ticks of a worker by second, bottleneck of the generator, and whether the server responds."""

    def piece(numbered: NumberedTick) -> tuple[int, int, tuple[bool, bool], bool]:
        tick = numbered[1]
        return tick.worker, int((tick.start + tick.t) / 2), bottlenecks(tick), silent(tick)

    by_worker = sorted(ticks, key=lambda numbered: (numbered[1].worker, numbered[0]))
    return [list(some) for _, some in groupby(by_worker, piece)]


def _merge_ticks(ticks: Sequence[Tick]) -> Tick:
    """Merge ticks of one worker. Their latency is kept in buckets of 1.6%, other histograms in buckets of 6%, the lag
    exact."""
    tick = reduce(_add, ticks)
    latency = "response" if tick.response.filled else "service"
    groups = {name: _coarse(group, _GROUP_HISTOGRAMS) for name, group in tick.groups.items()}
    return replace(_coarse(tick, _COARSENED), groups=groups, **{latency: getattr(tick, latency).coarse()})


def _coarse(counts: _C, histograms: Sequence[str]) -> _C:
    return replace(counts, **{name: getattr(counts, name).coarse(COARSER) for name in histograms})


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
    ticks = _exact(totals, kept.ticks, _COARSENED)
    by_name = {
        name: _exact(group, [tick.groups.get(name, Group()) for tick in ticks], _GROUP_HISTOGRAMS)
        for name, group in totals.groups.items()
    }
    return [
        (number, replace(tick, groups={name: by_name[name][at] for name in tick.groups}))
        for at, (number, tick) in enumerate(zip(kept.numbers, ticks, strict=True))
    ]


def _exact(total: Any, parts: Sequence[_C], histograms: Sequence[str]) -> list[_C]:
    """Return the parts of `total` with its histograms, instead of coarse ones."""
    spread = {name: _spread(getattr(total, name), [getattr(part, name) for part in parts]) for name in histograms}
    return [replace(part, **{name: spread[name][at] for name in histograms}) for at, part in enumerate(parts)]


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
