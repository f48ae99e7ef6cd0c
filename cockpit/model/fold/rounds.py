"""The part of fold for extended runs and for rounds."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.fold.load import cut_for
from cockpit.model.markers import RoundMarker
from cockpit.model.state import Extension, RoundsState, RoundWindowState, SegmentBasis, State, mark


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
    host = rounds.begun.new_on(event.side)
    basis = SegmentBasis(kind="round", number=event.round, side=event.side, host=host)
    state = cut_for(state, rounds.begun.run, event.t, basis, round=event.round, changes_until=len(state.changes))
    state = _with(state, replace(rounds, windows=(*rounds.windows, window)))
    return mark(state, RoundMarker(t=event.t, round=event.round, budget=rounds.budget, side=event.side, host=host))


def round_window_ended(state: State, event: ev.RoundWindowEnded) -> State:
    rounds = state.running_rounds
    if rounds is None or rounds.begun.number != event.number or not rounds.windows:
        return state
    *earlier, last = rounds.windows
    # The segment continues with the next set-up.
    logs = state.segment.logs if state.segment else {}
    return _with(state, replace(rounds, windows=(*earlier, replace(last, end=event.t, logs=logs))))


def rounds_ended(state: State, event: ev.RoundsEnded) -> State:
    rounds = state.running_rounds
    if rounds is None or rounds.begun.number != event.number:
        return state
    basis = SegmentBasis(kind="after_rounds", side=event.active)
    state = cut_for(state, rounds.begun.run, event.t, basis, round=0, changes_until=len(state.changes))
    return _with(state, replace(rounds, ended=event))


def _with(state: State, rounds: RoundsState) -> State:
    return replace(state, rounds=(*state.rounds[:-1], rounds))
