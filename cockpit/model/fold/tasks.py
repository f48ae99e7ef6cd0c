"""The part of fold for what runs load: extended runs, rounds, capacity searches, studies, searches for better settings.

Each level of a capacity search, and each window of rounds, is measured in a segment of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from cockpit.model import autopilot as ap
from cockpit.model import capacity as ca
from cockpit.model import events as ev
from cockpit.model import study as st
from cockpit.model.fold.load import cut_for
from cockpit.model.markers import RoundMarker
from cockpit.model.state import (
    CapacityLevelState,
    CapacityState,
    Extension,
    RoundsState,
    RoundWindowState,
    SegmentBasis,
    State,
    StudyState,
    mark,
)


def _run_extended(state: State, event: ev.RunExtended) -> State:
    if event.run != state.running:
        return state
    if event.until <= event.t:
        return replace(state, extension=None)
    known = state.extension
    since = event.t if known is None or known.change != event.change else known.since
    extension = Extension(run=event.run, since=since, until=event.until, awaited=event.awaited, change=event.change)
    return replace(state, extension=extension)


def _rounds_begun(state: State, event: ev.RoundsBegun) -> State:
    return replace(state, rounds=(*state.rounds, RoundsState(begun=event)))


def _round_window(state: State, event: ev.RoundWindow) -> State:
    rounds = state.running_rounds
    if rounds is None or rounds.begun.number != event.number:
        return state
    window = RoundWindowState(round=event.round, side=event.side, start=event.t, until=event.until)
    host = rounds.begun.new_on(event.side)
    basis = SegmentBasis(kind="round", number=event.round, side=event.side, host=host)
    state = cut_for(state, rounds.begun.run, event.t, basis, round=event.round, changes_until=len(state.changes))
    # A window without an end was interrupted, and is repeated.
    complete = (earlier for earlier in rounds.windows if earlier.end is not None)
    state = _newest(state, "rounds", replace(rounds, windows=(*complete, window)))
    return mark(state, RoundMarker(t=event.t, round=event.round, budget=rounds.budget, side=event.side, host=host))


def _round_window_ended(state: State, event: ev.RoundWindowEnded) -> State:
    rounds = state.running_rounds
    if rounds is None or rounds.begun.number != event.number or not rounds.windows:
        return state
    *earlier, last = rounds.windows
    # The segment continues with the next set-up.
    logs = state.segment.logs if state.segment else {}
    ended = replace(last, end=event.t, logs=logs)
    return _newest(state, "rounds", replace(rounds, windows=(*earlier, ended)))


def _rounds_ended(state: State, event: ev.RoundsEnded) -> State:
    rounds = state.running_rounds
    if rounds is None or rounds.begun.number != event.number:
        return state
    basis = SegmentBasis(kind="after_rounds", side=event.active)
    state = cut_for(state, rounds.begun.run, event.t, basis, round=0, changes_until=len(state.changes))
    return _newest(state, "rounds", replace(rounds, ended=event))


def _capacity_begun(state: State, event: ca.CapacityBegun) -> State:
    state = cut_for(state, event.run, event.t, SegmentBasis(kind="search"))
    return replace(state, capacities=(*state.capacities, CapacityState(begun=event)))


def _level(state: State, event: ca.CapacityLevel) -> State:
    known = state.running_capacity
    if known is None or known.begun.number != event.number:
        return state
    state = cut_for(state, known.begun.run, event.t, SegmentBasis(kind="level", number=event.level))
    number = state.segments[-1].number if state.segments else 0
    level = CapacityLevelState(level=event.level, rate=event.rate, segment=number, until=event.until)
    return _newest(state, "capacities", replace(known, levels=(*known.levels, level)))


def _level_ended(state: State, event: ca.CapacityLevelEnded) -> State:
    known = state.running_capacity
    if known is None or known.begun.number != event.number or not known.levels:
        return state
    state = cut_for(state, known.begun.run, event.t, SegmentBasis(kind="between_levels"))
    *earlier, last = known.levels
    return _newest(state, "capacities", replace(known, levels=(*earlier, replace(last, end=event.t))))


def _capacity_ended(state: State, event: ca.CapacityEnded) -> State:
    known = state.running_capacity
    if known is None or known.begun.number != event.number:
        return state
    return _newest(state, "capacities", replace(known, ended=event))


def _newest(state: State, tasks: str, known: CapacityState | RoundsState) -> State:
    return replace(state, **{tasks: (*getattr(state, tasks)[:-1], known)})


def _study_begun(state: State, event: st.StudyBegun) -> State:
    known = StudyState(study=event.study, fingerprint=event.fingerprint, steps=event.steps, before=event.done)
    return replace(state, study=known)


def _with(task: str, field: str, value: Callable[[Any, Any], Any]) -> Callable[[State, Any], State]:
    """Return the fold that replaces a field of the study or search by a value of (field, event); without one the event
    is ignored."""

    def updated(state: State, event: Any) -> State:
        known = getattr(state, task)
        if known is None:
            return state
        return replace(state, **{task: replace(known, **{field: value(getattr(known, field), event)})})

    return updated


def _appended(task: str, field: str) -> Callable[[State, Any], State]:
    return _with(task, field, lambda items, event: (*items, event))


TASK_FOLDS: dict[type, Callable[[State, Any], State]] = {
    ev.RunExtended: _run_extended,
    ev.RoundsBegun: _rounds_begun,
    ev.RoundWindow: _round_window,
    ev.RoundWindowEnded: _round_window_ended,
    ev.RoundsEnded: _rounds_ended,
    ca.CapacityBegun: _capacity_begun,
    ca.CapacityLevel: _level,
    ca.CapacityLevelEnded: _level_ended,
    ca.CapacityEnded: _capacity_ended,
    st.StudyBegun: _study_begun,
    st.StudyRound: _appended("study", "rounds"),
    st.StudyRun: _appended("study", "runs"),
    st.StudyObservation: _appended("study", "observations"),
    st.StudyStepEnded: _appended("study", "done"),
    st.StudyStepLost: _appended("study", "lost"),
    st.StudyEnded: _with("study", "ended", lambda _, event: True),
    ap.AutopilotBegun: lambda state, event: replace(state, autopilot=ap.AutopilotState(begun=event)),
    ap.AutopilotTrial: _appended("autopilot", "trials"),
    ap.AutopilotEnded: _with("autopilot", "ended", lambda _, event: event),
}
