"""The part of fold that takes in how far a study has come."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.state import State, StudyState


def study_begun(state: State, event: ev.StudyBegun) -> State:
    known = StudyState(study=event.study, fingerprint=event.fingerprint, steps=event.steps, before=event.done)
    return replace(state, study=known)


def study_round(state: State, event: ev.StudyRound) -> State:
    return _added(state, "rounds", event)


def study_run(state: State, event: ev.StudyRun) -> State:
    return _added(state, "runs", event)


def study_observation(state: State, event: ev.StudyObservation) -> State:
    return _added(state, "observations", event)


def study_step_ended(state: State, event: ev.StudyStepEnded) -> State:
    return _added(state, "done", event)


def study_ended(state: State, _: ev.StudyEnded) -> State:
    return state if state.study is None else replace(state, study=replace(state.study, ended=True))


def _added(state: State, name: str, event: Any) -> State:
    """The state with an event in one of the study's lists; without a study nothing is kept."""
    if state.study is None:
        return state
    return replace(state, study=replace(state.study, **{name: (*getattr(state.study, name), event)}))
