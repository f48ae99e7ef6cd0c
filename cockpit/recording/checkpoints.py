"""A state as a recording keeps it: without its series, which are in the pages, and with what rarely changes kept once.

What stays the same object from one state to the next (a segment that is over, the changes, the lines of a tail) is a
part of its own, stored once and referred to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from cockpit.model.autopilot import AutopilotState
from cockpit.model.counts import Counts
from cockpit.model.events import HostSample, SessionStarted
from cockpit.model.fold_hosts import restored_rows
from cockpit.model.generators import GeneratorMachine, GeneratorState
from cockpit.model.host_state import HostState, TailPane
from cockpit.model.load import LoadPlan
from cockpit.model.load_seconds import Filling
from cockpit.model.state import (
    ActionRun,
    Change,
    Extension,
    InFlight,
    KnobState,
    Marker,
    RoundsState,
    Segment,
    State,
)
from cockpit.recording.compaction import Totals
from cockpit.recording.packing import packed, unpacked

Store = Callable[[bytes], int]
Fetch = Callable[[int], bytes]


class KeptHost(msgspec.Struct, frozen=True):
    """A host without its series and the rows of its last sample, which that one and the sample `before` it make; a gap
    was between the two unless `recent`. `tails` are parts."""

    state: HostState
    before: HostSample | None
    recent: bool
    tails: tuple[int, ...]


class KeptState(msgspec.Struct, frozen=True):
    """A state; numbers stand for parts. The seconds that may still change are made of what is `filling`. A segment
    that is not over has no histograms: they are in the totals of the pages."""

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
    machines: int
    autopilot: int
    segments: tuple[int | Segment, ...]
    hosts: dict[str, KeptHost]
    filling: tuple[Filling, ...]
    in_flight: dict[int, InFlight] = {}
    generator: GeneratorMachine | None = None
    generators: dict[str, GeneratorState] = {}


# Fields of a state that are kept as they are, and those that are parts, with their types.
_PLAIN = ("t", "ended", "running", "runs", "filling", "generator")
_PARTS: dict[str, Any] = {
    "started": SessionStarted | None,
    "plans": dict[int, LoadPlan],
    "knobs": dict[str, KnobState],
    "changes": tuple[Change, ...],
    "actions": tuple[ActionRun, ...],
    "markers": tuple[Marker, ...],
    "extension": Extension | None,
    "rounds": tuple[RoundsState, ...],
    "machines": tuple[str, ...],
    "autopilot": AutopilotState | None,
}


def open_segment(state: State) -> int | None:
    """Place of the segment that is not over; None: all are."""
    return len(state.segments) - 1 if state.segment is not None and state.segment.end is None else None


class CheckpointWriter:
    """Packs states one after the other. `store` keeps a part and gives its number; `undo` forgets those of a state that
    could not be kept."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, int]] = {}
        self._before: dict[int, tuple[object, int]] = {}

    def undo(self) -> None:
        self._known = self._before

    def pack(self, state: State, before: Mapping[str, HostSample], store: Store) -> bytes:
        """The state as a blob; `before` are the samples before the last, by host."""
        self._before = dict(self._known)
        used: dict[int, tuple[object, int]] = {}

        def part(value: object) -> int:
            found = self._known.get(id(value)) or used.get(id(value))
            number = found[1] if found else store(packed(value))
            used[id(value)] = (value, number)
            return number

        open_at = open_segment(state)
        fields: dict[str, Any] = {name: getattr(state, name) for name in _PLAIN}
        fields |= {name: part(getattr(state, name)) for name in _PARTS}
        kept = KeptState(
            segments=tuple(
                _without_totals(segment) if at == open_at else part(segment)
                for at, segment in enumerate(state.segments)
            ),
            hosts={name: _kept_host(host, before.get(name), part) for name, host in state.hosts.items()},
            in_flight=dict(state.in_flight),
            generators=dict(state.generators),
            **fields,
        )
        # What no state refers to any more will not come again.
        self._known = used
        return packed(kept)


def _without_totals(segment: Segment) -> Segment:
    empty = Totals.of(Counts())
    return replace(segment, counts=with_totals(segment.counts, empty))


def with_totals(counts: Counts, totals: Totals) -> Counts:
    return replace(counts, **{name: getattr(totals, name) for name in totals.__struct_fields__})


def _kept_host(host: HostState, before: HostSample | None, part: Callable[[object], int]) -> KeptHost:
    bare = replace(host, points=(), processes=(), cores=(), disks=(), nets=(), sar={}, tails=())
    # Spawns per second are unknown exactly if the interval before the sample is.
    recent = host.point is not None and host.point.spawned is not None
    return KeptHost(bare, before, recent, tuple(part(tail) for tail in host.tails))


class Restorer:
    """Restores states that a CheckpointWriter packed. Parts are cached, so that states share them."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._parts: dict[tuple[int, str], Any] = {}

    def restore(self, blob: object, totals: Callable[[int], Totals]) -> State:
        """The state but for its series. `totals` gives those of the segment at a place. Raises Damaged."""
        kept: KeptState = unpacked(blob, KeptState, "a state")
        segments = [self._part(one, Segment) if isinstance(one, int) else one for one in kept.segments]
        if segments and isinstance(kept.segments[-1], Segment):
            last = segments[-1]
            segments[-1] = replace(last, counts=with_totals(last.counts, totals(len(segments) - 1)))
        return State(
            segments=tuple(segments),
            hosts={name: self._host(host) for name, host in kept.hosts.items()},
            in_flight=kept.in_flight,
            generators=kept.generators,
            **{name: getattr(kept, name) for name in _PLAIN},
            **{name: self._part(getattr(kept, name), kind) for name, kind in _PARTS.items()},
        )

    def _host(self, kept: KeptHost) -> HostState:
        tails = tuple(self._part(number, TailPane) for number in kept.tails)
        # Decoded sequences are lists.
        host = replace(kept.state, tails=tails, points=(), processes=())
        return restored_rows(host, kept.before, recent=kept.recent)

    def _part(self, number: int, kind: Any) -> Any:
        key = (number, str(kind))
        if key not in self._parts:
            if len(self._parts) > 4096:
                self._parts.clear()
            self._parts[key] = unpacked(self._fetch(number), kind, "a part of a state")
        return self._parts[key]
