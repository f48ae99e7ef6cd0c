"""fold(state, event) -> state: the one place where events become rates, percentiles, windows and rows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.fold_hosts import host_changed, host_sample
from cockpit.model.fold_load import load_adjusted, run_ended, run_started, split_segment, tick, worker_lost
from cockpit.model.fold_panes import panes_of, status_read, tail_changed, tail_text
from cockpit.model.markers import mark
from cockpit.model.state import Change, HostState, KnobState, Marker, State


def fold(state: State, event: ev.AnyEvent) -> State:
    """The state after `event`. Its time never goes back, even where an event arrives late."""
    after = _FOLDS[type(event)](state, event)
    return replace(after, t=max(state.t, event.t))


def fold_all(events: Iterable[ev.AnyEvent], state: State | None = None) -> State:
    """The state after all `events`, from `state` or from the beginning."""
    current = state or State()
    for event in events:
        current = fold(current, event)
    return current


def _session_started(state: State, event: ev.SessionStarted) -> State:
    return replace(
        state,
        started=event,
        hosts={config.name: panes_of(HostState(config=config)) for config in event.hosts},
        knobs={knob.name: KnobState(knob=knob) for knob in event.knobs},
    )


def _session_ended(state: State, event: ev.SessionEnded) -> State:
    return replace(state, ended=True)


def _knob_read(state: State, event: ev.KnobRead) -> State:
    if event.knob not in state.knobs:
        return state
    known = replace(state.knobs[event.knob], value=event.value, known=not event.detail, detail=event.detail)
    return replace(state, knobs={**state.knobs, event.knob: known})


def _change_begun(state: State, event: ev.ChangeBegun) -> State:
    change = Change(
        letter=event.change,
        host=event.host,
        settings=event.settings,
        begun=event.t,
        undoes=event.undoes,
    )
    return replace(state, changes=(*state.changes, change))


def _change_ended(state: State, event: ev.ChangeEnded) -> State:
    at = next((i for i, change in enumerate(state.changes) if change.letter == event.change), None)
    if at is None:
        return state
    change = replace(state.changes[at], ended=event.t, outcome=event.outcome, detail=event.detail)
    changes = (*state.changes[:at], change, *state.changes[at + 1 :])
    said = change.label if event.outcome == "applied" else f"{change.label}: {event.outcome}, {event.detail}"
    state = mark(replace(state, changes=changes), Marker(t=event.t, kind="change", sign=change.letter, text=said))
    if event.outcome != "applied":
        return state
    values = {
        setting.knob: replace(state.knobs[setting.knob], value=setting.new, known=True, detail="")
        for setting in change.settings
        if setting.knob in state.knobs
    }
    return split_segment(replace(state, knobs={**state.knobs, **values}), change)


def _note(state: State, event: ev.Note) -> State:
    return mark(state, Marker(t=event.t, kind="note", sign="▸", text=event.text))


_FOLDS: dict[type, Callable[[State, Any], State]] = {
    ev.SessionStarted: _session_started,
    ev.SessionEnded: _session_ended,
    ev.RunStarted: run_started,
    ev.Tick: tick,
    ev.LoadAdjusted: load_adjusted,
    ev.WorkerLost: worker_lost,
    ev.RunEnded: run_ended,
    ev.HostChanged: host_changed,
    ev.HostSample: host_sample,
    ev.TailText: tail_text,
    ev.TailChanged: tail_changed,
    ev.StatusRead: status_read,
    ev.KnobRead: _knob_read,
    ev.ChangeBegun: _change_begun,
    ev.ChangeEnded: _change_ended,
    ev.Note: _note,
}
