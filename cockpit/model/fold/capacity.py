"""The part of fold for capacity searches: each level is measured in a segment of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from cockpit.model.capacity import CapacityBegun, CapacityEnded, CapacityLevel, CapacityLevelEnded
from cockpit.model.fold.load import cut_for
from cockpit.model.state import CapacityLevelState, CapacityState, SegmentBasis, State


def _begun(state: State, event: CapacityBegun) -> State:
    state = cut_for(state, event.run, event.t, SegmentBasis(kind="search"))
    return replace(state, capacities=(*state.capacities, CapacityState(begun=event)))


def _level(state: State, event: CapacityLevel) -> State:
    known = _running(state, event.number)
    if known is None:
        return state
    state = cut_for(state, known.begun.run, event.t, SegmentBasis(kind="level", number=event.level))
    number = state.segments[-1].number if state.segments else 0
    level = CapacityLevelState(level=event.level, rate=event.rate, segment=number, until=event.until)
    return _with(state, replace(known, levels=(*known.levels, level)))


def _level_ended(state: State, event: CapacityLevelEnded) -> State:
    known = _running(state, event.number)
    if known is None or not known.levels:
        return state
    state = cut_for(state, known.begun.run, event.t, SegmentBasis(kind="between_levels"))
    *earlier, last = known.levels
    return _with(state, replace(known, levels=(*earlier, replace(last, end=event.t))))


def _ended(state: State, event: CapacityEnded) -> State:
    known = _running(state, event.number)
    return state if known is None else _with(state, replace(known, ended=event))


def _running(state: State, number: int) -> CapacityState | None:
    known = state.running_capacity
    return known if known is not None and known.begun.number == number else None


def _with(state: State, known: CapacityState) -> State:
    return replace(state, capacities=(*state.capacities[:-1], known))


CAPACITY_FOLDS: Mapping[type, Callable[[State, Any], State]] = {
    CapacityBegun: _begun,
    CapacityLevel: _level,
    CapacityLevelEnded: _level_ended,
    CapacityEnded: _ended,
}
