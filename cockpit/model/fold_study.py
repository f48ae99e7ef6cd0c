"""The part of fold for the progress of a study."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from cockpit.model import study_events as st
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
