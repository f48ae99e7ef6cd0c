"""The part of fold for the progress of studies and of searches for better settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from cockpit.model import autopilot as ap
from cockpit.model import study as st
from cockpit.model.state import State, StudyState


def _begun(state: State, event: st.StudyBegun) -> State:
    known = StudyState(study=event.study, fingerprint=event.fingerprint, steps=event.steps, before=event.done)
    return replace(state, study=known)


def _ended(state: State, _: st.StudyEnded) -> State:
    return state if state.study is None else replace(state, study=replace(state.study, ended=True))


def _added(name: str) -> Callable[[State, Any], State]:
    """Return the fold that appends an event to a list of the study; without a study the event is ignored."""

    def added(state: State, event: Any) -> State:
        if state.study is None:
            return state
        return replace(state, study=replace(state.study, **{name: (*getattr(state.study, name), event)}))

    return added


STUDY_FOLDS: dict[type, Callable[[State, Any], State]] = {
    st.StudyBegun: _begun,
    st.StudyRound: _added("rounds"),
    st.StudyRun: _added("runs"),
    st.StudyObservation: _added("observations"),
    st.StudyStepEnded: _added("done"),
    st.StudyStepLost: _added("lost"),
    st.StudyEnded: _ended,
}


def _search_begun(state: State, event: ap.AutopilotBegun) -> State:
    return replace(state, autopilot=ap.AutopilotState(begun=event))


def _search_trial(state: State, event: ap.AutopilotTrial) -> State:
    known = state.autopilot
    return state if known is None else replace(state, autopilot=replace(known, trials=(*known.trials, event)))


def _search_ended(state: State, event: ap.AutopilotEnded) -> State:
    return state if state.autopilot is None else replace(state, autopilot=replace(state.autopilot, ended=event))


AUTOPILOT_FOLDS: dict[type, Callable[[State, Any], State]] = {
    ap.AutopilotBegun: _search_begun,
    ap.AutopilotTrial: _search_trial,
    ap.AutopilotEnded: _search_ended,
}
