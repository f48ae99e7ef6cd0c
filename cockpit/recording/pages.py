"""Pages: ranges of a recording that are over, packed.

A page holds the frequent events of some seconds (ticks, samples, status pages, tails), the state after its last
event, and the items that the series of the state have grown by. The other events stay rows of their own, for
sqlite3 queries.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cockpit.model.events import AccessCounts, HostSample, StatusRead, TailText, Tick
from cockpit.model.generators import GeneratorSample
from cockpit.model.host_state import HostPoint
from cockpit.model.load_seconds import LoadSecond
from cockpit.model.state import State
from cockpit.recording.compaction import Numbered, SegmentTicks, Totals, compacted, expanded
from cockpit.recording.packing import Damaged, packed, reading, unpacked

OtherEvent = HostSample | GeneratorSample | StatusRead | TailText | AccessCounts
FREQUENT = (Tick, HostSample, GeneratorSample, StatusRead, TailText, AccessCounts)
FREQUENT_KINDS = tuple(sorted(str(one.__struct_config__.tag) for one in FREQUENT))


class PageEvents(msgspec.Struct, frozen=True, array_like=True):
    """The frequent events of a page with their numbers; ticks by segment."""

    numbers: tuple[int, ...]
    events: tuple[OtherEvent, ...]
    ticks: tuple[SegmentTicks, ...]


class PageTotals(msgspec.Struct, frozen=True, array_like=True):
    """The histograms of a page by segment; `whole`, in some pages, are those of the last segment from its start on."""

    segments: dict[int, Totals]
    whole: Totals | None = None


class PageSeries(msgspec.Struct, frozen=True, array_like=True):
    """The seconds and, by host, points that came with a page."""

    seconds: tuple[LoadSecond, ...]
    points: dict[str, tuple[HostPoint, ...]]


class Grown(msgspec.Struct, frozen=True):
    """The growth of each series by a page."""

    seconds: int = 0
    points: dict[str, int] = {}


def pack_events(events: Sequence[Numbered], state: State) -> tuple[bytes, dict[int, Totals]]:
    """Pack the frequent events of a page after which the state is `state`; return also their totals by segment."""
    ticks = compacted([(number, event) for number, event in events if isinstance(event, Tick)], state)
    others = [(number, event) for number, event in events if isinstance(event, OtherEvent)]
    page = PageEvents(
        tuple(number for number, _ in others), tuple(event for _, event in others), tuple(kept for kept, _ in ticks)
    )
    return packed(page), {kept.segment: totals for kept, totals in ticks}


def unpack_events(blob: object, totals: PageTotals, first: int, last: int) -> list[Numbered]:
    """The events of a page with numbers `first` to `last`, in their order. Raises Damaged."""
    page: PageEvents = unpacked(blob, PageEvents, "a page")
    with reading("a page"):
        found: list[Numbered] = list(zip(page.numbers, page.events, strict=True))
        for kept in page.ticks:
            found += expanded(kept, totals.segments[kept.segment])
    if any(not first <= number <= last for number, _ in found):
        raise Damaged("a page has events of another one")
    return sorted(found, key=lambda one: one[0])
