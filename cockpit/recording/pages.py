"""Pages: packed ranges of a recording.

A page contains the frequent events of some seconds (ticks, samples, status pages, tails), the state after its last
event, and the new items of the series of the state. All other events stay rows, for queries with sqlite3.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cockpit.model.events import AccessCounts, HostSample, StatusRead, TailText
from cockpit.model.generators import GeneratorSample
from cockpit.model.host.state import HostPoint
from cockpit.model.load.seconds import LoadSecond
from cockpit.model.state import State
from cockpit.model.tick import Tick
from cockpit.recording.compaction import Numbered, SegmentTicks, Totals, compacted, expanded
from cockpit.recording.packing import Damaged, pack, reading, unpack

OtherEvent = HostSample | GeneratorSample | StatusRead | TailText | AccessCounts
FREQUENT = (Tick, HostSample, GeneratorSample, StatusRead, TailText, AccessCounts)
FREQUENT_KINDS = tuple(sorted(str(kind.__struct_config__.tag) for kind in FREQUENT))


class PageEvents(msgspec.Struct, frozen=True, array_like=True):
    """The frequent events of a page, with their numbers; `ticks` by segment."""

    numbers: tuple[int, ...]
    events: tuple[OtherEvent, ...]
    ticks: tuple[SegmentTicks, ...]


class PageTotals(msgspec.Struct, frozen=True, array_like=True):
    """Totals of the ticks of a page by segment. `whole`, in some pages: totals of the last segment since its start."""

    segments: dict[int, Totals]
    whole: Totals | None = None


class PageSeries(msgspec.Struct, frozen=True, array_like=True):
    """The new seconds of a page, and its new points by host."""

    seconds: tuple[LoadSecond, ...]
    points: dict[str, tuple[HostPoint, ...]]


class PageGrowth(msgspec.Struct, frozen=True):
    """Numbers of the new seconds of a page, and of its new points by host."""

    seconds: int = 0
    points: dict[str, int] = {}


def pack_events(events: Sequence[Numbered], state: State) -> tuple[bytes, dict[int, Totals]]:
    """Pack the frequent events of a page; return the blob and their totals by segment. `state`: after the page."""
    ticks = compacted([(number, event) for number, event in events if isinstance(event, Tick)], state)
    others = [(number, event) for number, event in events if isinstance(event, OtherEvent)]
    page = PageEvents(
        tuple(number for number, _ in others), tuple(event for _, event in others), tuple(kept for kept, _ in ticks)
    )
    return pack(page), {kept.segment: totals for kept, totals in ticks}


def unpack_events(blob: object, totals: PageTotals, first: int, last: int) -> list[Numbered]:
    """Return the events of a page in order; their numbers are `first` to `last`. Raises Damaged."""
    page: PageEvents = unpack(blob, PageEvents, "a page")
    with reading("a page"):
        numbered: list[Numbered] = list(zip(page.numbers, page.events, strict=True))
        for kept in page.ticks:
            numbered += expanded(kept, totals.segments[kept.segment])
    if any(not first <= number <= last for number, _ in numbered):
        raise Damaged("a page contains events of another page")
    return sorted(numbered, key=lambda pair: pair[0])
