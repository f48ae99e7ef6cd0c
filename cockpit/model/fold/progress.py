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


def _search_begun(state: State, event: ap.AutopilotBegun) -> State:
    return replace(state, autopilot=ap.AutopilotState(begun=event))


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


STUDY_FOLDS: dict[type, Callable[[State, Any], State]] = {
    st.StudyBegun: _begun,
    st.StudyRound: _appended("study", "rounds"),
    st.StudyRun: _appended("study", "runs"),
    st.StudyObservation: _appended("study", "observations"),
    st.StudyStepEnded: _appended("study", "done"),
    st.StudyStepLost: _appended("study", "lost"),
    st.StudyEnded: _with("study", "ended", lambda _, event: True),
}
AUTOPILOT_FOLDS: dict[type, Callable[[State, Any], State]] = {
    ap.AutopilotBegun: _search_begun,
    ap.AutopilotTrial: _appended("autopilot", "trials"),
    ap.AutopilotEnded: _with("autopilot", "ended", lambda _, event: event),
}
