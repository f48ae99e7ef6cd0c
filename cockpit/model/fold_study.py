"""The part of fold that takes in how far a study has come."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.state import State, StudyState


def study_begun(state: State, event: ev.StudyBegun) -> State:
    known = StudyState(study=event.study, fingerprint=event.fingerprint, steps=event.steps, before=event.done)
    return replace(state, study=known)


def study_run(state: State, event: ev.StudyRun) -> State:
    if state.study is None:
        return state
    return replace(state, study=replace(state.study, runs=(*state.study.runs, event)))


def study_look(state: State, event: ev.StudyLook) -> State:
    if state.study is None:
        return state
    return replace(state, study=replace(state.study, looks=(*state.study.looks, event)))


def study_step_ended(state: State, event: ev.StudyStepEnded) -> State:
    if state.study is None:
        return state
    return replace(state, study=replace(state.study, done=(*state.study.done, event)))
