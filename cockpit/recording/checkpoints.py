"""Checkpoints: states as stored in a recording. Their series are stored in the pages, shared parts only once.

A part is an object that is the same in consecutive states (a completed segment, the changes, the lines of a tail). It
is stored once, and states refer to it by number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from cockpit.model.autopilot import AutopilotState
from cockpit.model.counts import Counts
from cockpit.model.events import HostSample, SessionStarted
from cockpit.model.fold.hosts import recompute_rows
from cockpit.model.generators import GeneratorMachine, GeneratorState
from cockpit.model.host.state import HostState, TailPane
from cockpit.model.load.plan import LoadPlan
from cockpit.model.load.seconds import OpenSecond
from cockpit.model.markers import Marker
from cockpit.model.stacks import StackSlice
from cockpit.model.state import (
    ActionRun,
    CapacityState,
    Change,
    Extension,
    InFlight,
    KnobState,
    RoundsState,
    Segment,
    State,
)
from cockpit.recording.compaction import Totals
from cockpit.recording.packing import Damaged, pack, unpack

Store = Callable[[bytes], int]
Fetch = Callable[[int], bytes]


class HostCheckpoint(msgspec.Struct, frozen=True):
    """A host without its series and the rows of its last sample: those are computed from the last sample and the one
    `before` it. `recent`: there is no gap between the two samples. `tails` and `slices` are numbers of parts."""

    state: HostState
    before: HostSample | None
    recent: bool
    tails: tuple[int, ...]
    slices: tuple[int, ...]


class StateCheckpoint(msgspec.Struct, frozen=True):
    """A state; numbers refer to parts. `filling` is the input of the seconds that may still change. An open segment has
    no histograms: they are in the totals of the pages."""

    t: float
    ended: bool
    running: int | None
    runs: int
    parts: dict[str, int]
    segments: tuple[int | Segment, ...]
    hosts: dict[str, HostCheckpoint]
    filling: tuple[OpenSecond, ...]
    in_flight: dict[int, InFlight] = {}
    generator: GeneratorMachine | None = None
    generators: dict[str, GeneratorState] = {}


# Fields of a state that are stored directly, and fields that are stored as parts, with their types.
_PLAIN_FIELDS = ("t", "ended", "running", "runs", "filling", "generator")
PART_FIELDS: dict[str, Any] = {
    "started": SessionStarted | None,
    "plans": dict[int, LoadPlan],
    "knobs": dict[str, KnobState],
    "changes": tuple[Change, ...],
    "actions": tuple[ActionRun, ...],
    "markers": tuple[Marker, ...],
    "extension": Extension | None,
    "rounds": tuple[RoundsState, ...],
    "capacities": tuple[CapacityState, ...],
    "machines": tuple[str, ...],
    "autopilot": AutopilotState | None,
}


def open_segment(state: State) -> int | None:
    """Return the index of the open segment; None if all segments are completed."""
    return len(state.segments) - 1 if state.segment is not None and state.segment.end is None else None


class CheckpointWriter:
    """Packs consecutive states. Remembers the parts of the last state; `undo` restores the memory before the last
    `pack`, if its state could not be written."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, int]] = {}
        self._before: dict[int, tuple[object, int]] = {}

    def undo(self) -> None:
        self._known = self._before

    def pack(self, state: State, before: Mapping[str, HostSample], store: Store) -> bytes:
        """Return a blob. `before`: last sample but one per host. `store` writes a part and returns its number."""
        self._before = dict(self._known)
        used: dict[int, tuple[object, int]] = {}

        def part(value: object) -> int:
            stored = self._known.get(id(value)) or used.get(id(value))
            number = stored[1] if stored else store(pack(value))
            used[id(value)] = (value, number)
            return number

        open_index = open_segment(state)
        fields: dict[str, Any] = {name: getattr(state, name) for name in _PLAIN_FIELDS}
        kept = StateCheckpoint(
            parts={name: part(getattr(state, name)) for name in PART_FIELDS},
            segments=tuple(
                _without_totals(segment) if at == open_index else part(segment)
                for at, segment in enumerate(state.segments)
            ),
            hosts={name: _kept_host(host, before.get(name), part) for name, host in state.hosts.items()},
            in_flight=dict(state.in_flight),
            generators=dict(state.generators),
            **fields,
        )
        # A part that is not in this state is in no later one.
        self._known = used
        return pack(kept)


def _without_totals(segment: Segment) -> Segment:
    empty = Totals.of(Counts())
    return replace(segment, counts=with_totals(segment.counts, empty))


def with_totals(counts: Counts, totals: Totals) -> Counts:
    return replace(counts, **{name: getattr(totals, name) for name in totals.__struct_fields__})


def _kept_host(host: HostState, before: HostSample | None, part: Callable[[object], int]) -> HostCheckpoint:
    bare = replace(host, points=(), processes=(), cores=(), disks=(), nets=(), sar={}, tails=(), slices=())
    # spawned/s is None exactly if there was a gap before the sample.
    recent = host.point is not None and host.point.spawned is not None
    tails, slices = (tuple(part(item) for item in items) for items in (host.tails, host.slices))
    return HostCheckpoint(bare, before, recent, tails, slices)


class Restorer:
    """Restores the states of a CheckpointWriter. Parts are cached and shared by the states."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._parts: dict[tuple[int, str], Any] = {}

    def restore(self, blob: object, totals: Callable[[int], Totals]) -> State:
        """Return the state without its series. `totals` returns those of the segment with an index. Raises Damaged."""
        kept: StateCheckpoint = unpack(blob, StateCheckpoint, "a state")
        if kept.parts.keys() != PART_FIELDS.keys():
            raise Damaged("a state has other parts")
        segments = [self._part(segment, Segment) if isinstance(segment, int) else segment for segment in kept.segments]
        if segments and isinstance(kept.segments[-1], Segment):
            last = segments[-1]
            segments[-1] = replace(last, counts=with_totals(last.counts, totals(len(segments) - 1)))
        return State(
            segments=tuple(segments),
            hosts={name: self._host(host) for name, host in kept.hosts.items()},
            in_flight=kept.in_flight,
            generators=kept.generators,
            **{name: getattr(kept, name) for name in _PLAIN_FIELDS},
            **{name: self._part(kept.parts[name], kind) for name, kind in PART_FIELDS.items()},
        )

    def _host(self, kept: HostCheckpoint) -> HostState:
        tails = tuple(self._part(number, TailPane) for number in kept.tails)
        slices = tuple(self._part(number, StackSlice) for number in kept.slices)
        # Decoded sequences are lists.
        host = replace(kept.state, tails=tails, slices=slices, points=(), processes=())
        return recompute_rows(host, kept.before, recent=kept.recent)

    def _part(self, number: int, kind: Any) -> Any:
        key = (number, str(kind))
        if key not in self._parts:
            if len(self._parts) > 4096:
                self._parts.clear()
            self._parts[key] = unpack(self._fetch(number), kind, "a part of a state")
        return self._parts[key]
