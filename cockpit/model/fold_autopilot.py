"""The part of fold for a search for better settings."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.model.autopilot import AutopilotBegun, AutopilotEnded, AutopilotState, AutopilotTrial
from cockpit.model.state import State


def autopilot_begun(state: State, event: AutopilotBegun) -> State:
    return replace(state, autopilot=AutopilotState(begun=event))


def autopilot_trial(state: State, event: AutopilotTrial) -> State:
    known = state.autopilot
    return state if known is None else replace(state, autopilot=replace(known, trials=(*known.trials, event)))


def autopilot_ended(state: State, event: AutopilotEnded) -> State:
    return state if state.autopilot is None else replace(state, autopilot=replace(state.autopilot, ended=event))
