"""The part of fold for extended runs and for rounds."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.fold.load import cut
from cockpit.model.markers import RoundMarker
from cockpit.model.state import Extension, RoundsState, RoundWindowState, SegmentBasis, State, mark, with_last_segment


def run_extended(state: State, event: ev.RunExtended) -> State:
    if event.run != state.running:
        return state
    if event.until <= event.t:
        return replace(state, extension=None)
    known = state.extension
    since = event.t if known is None or known.change != event.change else known.since
    extension = Extension(run=event.run, since=since, until=event.until, awaited=event.awaited, change=event.change)
    return replace(state, extension=extension)


def rounds_begun(state: State, event: ev.RoundsBegun) -> State:
    return replace(state, rounds=(*state.rounds, RoundsState(begun=event)))


def round_window(state: State, event: ev.RoundWindow) -> State:
    rounds = state.running_rounds
    if rounds is None or rounds.begun.number != event.number:
        return state
    window = RoundWindowState(round=event.round, side=event.side, start=event.t, until=event.until)
    state = _new_segment(state, rounds, event.t, "round", event.side, event.round)
    state = _with(state, replace(rounds, windows=(*rounds.windows, window)))
    return mark(state, RoundMarker(t=event.t, round=event.round, budget=rounds.budget, side=event.side))


def round_window_ended(state: State, event: ev.RoundWindowEnded) -> State:
    rounds = state.running_rounds
    if rounds is None or rounds.begun.number != event.number or not rounds.windows:
        return state
    *earlier, last = rounds.windows
    return _with(state, replace(rounds, windows=(*earlier, replace(last, end=event.t))))


def rounds_ended(state: State, event: ev.RoundsEnded) -> State:
    rounds = state.running_rounds
    if rounds is None or rounds.begun.number != event.number:
        return state
    state = _new_segment(state, rounds, event.t, "after_rounds", event.active, 0)
    return _with(state, replace(rounds, ended=event))


def _new_segment(
    state: State, rounds: RoundsState, t: float, kind: Literal["round", "after_rounds"], side: ev.Side, number: int
) -> State:
    """Start a new segment of the run at `t`; without the run, return the state unchanged."""
    if state.running != rounds.begun.run or state.segment is None:
        return state
    following = cut(state, t)
    basis = SegmentBasis(kind=kind, number=number, side=side)
    segment = replace(
        following.segments[-1], basis=basis, labelled_by="basis", round=number, changes_until=len(state.changes)
    )
    return with_last_segment(following, segment)


def _with(state: State, rounds: RoundsState) -> State:
    return replace(state, rounds=(*state.rounds[:-1], rounds))
