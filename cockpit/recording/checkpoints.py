"""A state as a recording keeps it: without what can be read from its pages, and with what does not change kept once.

The series are in the pages, the last samples among their events. What stays the same object from one state to the next
(a row that is over, the changes, the large part of a histogram) is a part of its own, stored once and referred to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from cockpit.model.events import HostSample, SessionStarted
from cockpit.model.fold_hosts import restored_rows
from cockpit.model.fold_load import load_second
from cockpit.model.histogram import EMPTY, LARGE, Histogram
from cockpit.model.host_state import HostState, TailPane
from cockpit.model.load import LoadPlan
from cockpit.model.state import (
    ActionRun,
    Change,
    Extension,
    Filling,
    GeneratorMachine,
    KnobState,
    Marker,
    RoundsState,
    Segment,
    State,
)
from cockpit.model.sums import Sums
from cockpit.recording.byte_streams import Budget, ByteReader, ByteWriter
from cockpit.recording.packing import packed, reading, unpacked
from cockpit.recording.plain_columns import HistogramColumn
from cockpit.recording.validity import checked

# A histogram's large part changes now and then only.
Store = Callable[[bytes], int]
Fetch = Callable[[int], bytes]


class Sampled(msgspec.Struct, frozen=True, array_like=True):
    """The numbers of a host's last sample and of the one before it; `recent`: there was no gap between the two."""

    last: int | None = None
    before: int | None = None
    recent: bool = False


class KeptHost(msgspec.Struct, frozen=True):
    """A host without its samples and series; `tails` are parts."""

    state: HostState
    sampled: Sampled
    tails: tuple[int, ...]


class KeptState(msgspec.Struct, frozen=True):
    """A state; numbers stand for parts. The seconds that may still be told anew are made of what is `filling`."""

    t: float
    ended: bool
    running: int | None
    runs: int
    started: int
    plans: int
    knobs: int
    changes: int
    actions: int
    markers: int
    extension: int
    rounds: int
    segments: tuple[int | Segment, ...]
    hosts: dict[str, KeptHost]
    filling: tuple[Filling, ...]
    generator: GeneratorMachine | None = None


_PARTS: dict[str, Any] = {
    "started": SessionStarted | None,
    "plans": dict[int, LoadPlan],
    "knobs": dict[str, KnobState],
    "changes": tuple[Change, ...],
    "actions": tuple[ActionRun, ...],
    "markers": tuple[Marker, ...],
    "extension": Extension | None,
    "rounds": tuple[RoundsState, ...],
}


def final_seconds(state: State) -> int:
    """How many of the state's seconds no tick can alter any more."""
    if not state.filling:
        return len(state.seconds)
    first = min(filling.second for filling in state.filling)
    return sum(second.second < first for second in state.seconds[-16:]) + max(0, len(state.seconds) - 16)


class CheckpointWriter:
    """Packs states one after the other. `store` keeps a part and gives its number; `undo` forgets those of a state that
    could not be kept."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, int]] = {}
        self._before: dict[int, tuple[object, int]] = {}

    def undo(self) -> None:
        self._known = self._before

    def pack(self, state: State, sampled: Mapping[str, Sampled], store: Store) -> bytes:
        """The state as a blob."""
        self._before = dict(self._known)
        used: dict[int, tuple[object, int]] = {}

        def part(value: object) -> int:
            found = self._known.get(id(value)) or used.get(id(value))
            number = found[1] if found else store(_packed(value, large_of))
            used[id(value)] = (value, number)
            return number

        def large_of(histogram: Histogram) -> tuple[int, Histogram] | None:
            large, small = histogram.parts or (histogram, EMPTY)
            return (part(large), small) if len(large.indices) >= LARGE else None

        kept = KeptState(
            t=state.t,
            ended=state.ended,
            running=state.running,
            runs=state.runs,
            segments=tuple(segment if segment is state.segment else part(segment) for segment in state.segments),
            hosts={name: _kept_host(host, sampled.get(name, Sampled()), part) for name, host in state.hosts.items()},
            filling=state.filling,
            generator=state.generator,
            **{name: part(getattr(state, name)) for name in _PARTS},
        )
        blob = _packed(kept, large_of)
        # What no state refers to any more will not come again.
        self._known = used
        return blob


def _kept_host(host: HostState, sampled: Sampled, part: Callable[[object], int]) -> KeptHost:
    bare = replace(host, sample=None, points=(), processes=(), cores=(), disks=(), nets=(), tails=())
    return KeptHost(bare, sampled, tuple(part(tail) for tail in host.tails))


def _packed(value: object, large_of: Callable[[Histogram], tuple[int, Histogram] | None]) -> bytes:
    """A value as JSON, in which numbers stand for its histograms, and these as columns behind it. Of a histogram with a
    large part, that is a part of its own."""
    histograms: list[Histogram] = []

    def hook(odd: Any) -> Any:
        if isinstance(odd, MappingProxyType):
            return dict(odd)
        if isinstance(odd, Sums):
            return odd.wire()
        if not isinstance(odd, Histogram):
            raise NotImplementedError(f"no wire form for {type(odd)}")
        found = None if value is odd else large_of(odd)
        histograms.append(found[1] if found else odd)
        return [len(histograms) - 1, found[0] if found else 0]

    told = msgspec.json.encode(value, enc_hook=hook)
    sink = ByteWriter()
    sink.head.append(len(histograms))
    HistogramColumn().write(histograms, sink)
    return packed(len(told).to_bytes(4, "little") + told + sink.raw())


class Restorer:
    """Makes states of what a Keeper packed. Parts are kept at hand, so that states share them."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._parts: dict[tuple[int, str], Any] = {}

    def restore(self, blob: bytes, sample: Callable[[int], HostSample | None]) -> State:
        """The state but for its series. `sample` gives one by its number. Raises Damaged."""
        with reading("a state"):
            return self._restored(blob, sample)

    def _restored(self, blob: bytes, sample: Callable[[int], HostSample | None]) -> State:
        kept: KeptState = self._unpacked(blob, KeptState)
        segments = tuple(self._part(one, Segment) if isinstance(one, int) else one for one in kept.segments)
        return State(
            t=kept.t,
            ended=kept.ended,
            running=kept.running,
            runs=kept.runs,
            segments=segments,
            hosts={name: self._host(host, sample) for name, host in kept.hosts.items()},
            filling=kept.filling,
            generator=kept.generator,
            seconds=tuple(load_second(filling) for filling in kept.filling),
            **{name: self._part(getattr(kept, name), kind) for name, kind in _PARTS.items()},
        )

    def _host(self, kept: KeptHost, sample: Callable[[int], HostSample | None]) -> HostState:
        tails = tuple(self._part(number, TailPane) for number in kept.tails)
        last, before = kept.sampled.last, kept.sampled.before
        host = replace(kept.state, tails=tails, sample=None if last is None else sample(last))
        return restored_rows(host, None if before is None else sample(before), recent=kept.sampled.recent)

    def _part(self, number: int, kind: Any) -> Any:
        key = (number, str(kind))
        if key not in self._parts:
            if len(self._parts) > 4096:
                self._parts.clear()
            self._parts[key] = self._unpacked(self._fetch(number), kind)
        return self._parts[key]

    def _unpacked(self, blob: bytes, kind: Any) -> Any:
        histograms: list[Histogram] = []

        def hook(wanted: type, wire: Any) -> Any:
            if wanted is Sums:
                return Sums.from_wire(wire)
            if wanted is not Histogram:
                raise NotImplementedError(f"no wire form for {wanted}")
            place, large = wire
            if not large:
                return histograms[place]
            base = self._part(large, Histogram)
            return Histogram.joined(base, histograms[place]) if histograms[place].filled else base

        raw = unpacked(blob)
        size = int.from_bytes(raw[:4], "little")
        with reading("a state"):
            spring = ByteReader(raw[4 + size :], Budget(len(blob)))
            histograms += HistogramColumn().read(spring.count(), spring)
            return checked(msgspec.json.decode(raw[4 : 4 + size], type=kind, dec_hook=hook))
