"""Pages: stretches of a recording that are over, packed.

A page holds the events of some seconds that come often (ticks, samples, status pages, lines of tails) as columns, the
state after its last event, and what the series of the state have grown by. The other events stay rows of their own,
for sqlite3 to be asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.histogram import EMPTY, Histogram
from cockpit.recording.byte_streams import Budget, ByteReader, ByteWriter, read_ints, write_ints
from cockpit.recording.columns import column_for
from cockpit.recording.packing import packed, reading, unpacked

# Kinds of which there are many, each with what tells one source of them from another.
OFTEN: Mapping[type[Any], Callable[[Any], tuple[str, int]]] = {
    ev.Tick: lambda tick: ("", tick.worker),
    ev.HostSample: lambda sample: (sample.host, 0),
    ev.GeneratorSample: lambda sample: ("", 0),
    ev.StatusRead: lambda read: (read.host, read.page),
    ev.TailText: lambda text: (text.host, text.tail),
}
_KINDS: Mapping[str, Any] = {kind.__struct_config__.tag: kind for kind in OFTEN}

Numbered = tuple[int, ev.AnyEvent]


class _Borrowed(NamedTuple):
    """A tick's latencies that are those of its second, which the series have anyway."""

    number: int
    second: int
    field: str


def _without_borrowed(
    events: Iterable[Numbered], latencies: Mapping[int, Histogram]
) -> tuple[list[Numbered], list[_Borrowed]]:
    kept: list[Numbered] = []
    borrowed = []
    for number, event in events:
        if isinstance(event, ev.Tick):
            field = "response" if event.response.filled else "service"
            second = int((event.start + event.t) / 2)
            if second in latencies and getattr(event, field).filled and getattr(event, field) == latencies[second]:
                borrowed.append(_Borrowed(number, second, field))
                event = replace(event, **{field: EMPTY})
        kept.append((number, event))
    return kept, borrowed


def pack(events: Iterable[Numbered], latencies: Mapping[int, Histogram]) -> bytes:
    """Events that come often, with their numbers, as one blob. `latencies`, by second, are kept elsewhere."""
    events, borrowed = _without_borrowed(events, latencies)
    streams: dict[tuple[str, str, int], list[Numbered]] = {}
    for number, event in events:
        name = str(type(event).__struct_config__.tag)
        streams.setdefault((name, *OFTEN[type(event)](event)), []).append((number, event))
    packs = []
    for (name, _, _), told in streams.items():
        sink = ByteWriter()
        write_ints(np.array([number for number, _ in told], dtype=np.int64), sink)
        column_for(_KINDS[name]).write([event for _, event in told], sink)
        packs.append(sink.raw())
    contents = ByteWriter()
    contents.head.append(
        [(name, len(told), len(raw)) for ((name, _, _), told), raw in zip(streams.items(), packs, strict=True)]
    )
    contents.head.append(borrowed)
    head = contents.raw()
    return packed(len(head).to_bytes(4, "little") + head + b"".join(packs))


def unpack(blob: bytes, latencies: Callable[[], Mapping[int, Histogram]], only: str = "") -> list[Numbered]:
    """The inverse of `pack`, in the order of their numbers; `only` those of one kind. Raises Damaged."""
    raw = memoryview(unpacked(blob))
    budget = Budget(len(blob))
    with reading("a page"):
        at = 4 + int.from_bytes(raw[:4], "little")
        contents = ByteReader(raw[4:at], budget)
        streams, borrowed = contents.next(), contents.next()
        found: list[Numbered] = []
        for name, count, size in streams:
            if only in ("", name):
                spring = ByteReader(raw[at : at + size], budget)
                numbers = read_ints(count, spring).tolist()
                found += zip(numbers, column_for(_KINDS[name]).read(count, spring), strict=True)
            at += size
        if borrowed and not only:
            back = {number: {_field(field): latencies()[second]} for number, second, field in borrowed}
            found = [(number, replace(event, **back[number]) if number in back else event) for number, event in found]
    return sorted(found, key=lambda one: one[0])


def _field(name: str) -> str:
    """The field of a tick that is borrowed. Raises ValueError for any other."""
    if name not in ("response", "service"):
        raise ValueError(f"{name!r} is never borrowed")
    return name
