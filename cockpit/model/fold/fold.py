"""fold(state, event) -> state: the only code that turns events into rates, percentiles, windows and segments. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model import generators as ge
from cockpit.model.fold.generators import generator_clock, generator_lost
from cockpit.model.fold.hosts import host_changed, host_sample
from cockpit.model.fold.load import (
    load_adjusted,
    run_ended,
    run_started,
    split_segment,
    tick,
    worker_lost,
)
from cockpit.model.fold.other_load import generator_sample
from cockpit.model.fold.panes import (
    access_counts,
    panes_of,
    profiler_changed,
    stack_slice,
    status_read,
    tail_changed,
    tail_text,
)
from cockpit.model.fold.tasks import TASK_FOLDS
from cockpit.model.host.state import HostState
from cockpit.model.knobs import Setting
from cockpit.model.markers import ActionMarker, ChangeMarker, NoteMarker, SettingMarker
from cockpit.model.stacks import ProfilerChanged, StackSlice
from cockpit.model.state import ActionRun, Change, KnobState, State, mark
from cockpit.model.tick import Tick


def fold(state: State, event: ev.AnyEvent) -> State:
    """Return the state after `event`. Its time never decreases, even if an event arrives late."""
    after = _FOLDS[type(event)](state, event)
    return replace(after, t=max(state.t, event.t))


def fold_all(events: Iterable[ev.AnyEvent], state: State | None = None) -> State:
    """Return the state after all `events`, starting from `state` or from the empty state."""
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


def _knob_read(state: State, event: ev.KnobRead) -> State:
    if event.knob not in state.knobs:
        return state
    before = state.knobs[event.knob]
    changing = any(change.ended is None and change.host == event.host for change in state.changes)
    reading = before.reading if event.detail else () if changing else (event.value,)
    known = replace(before, value=event.value, known=not event.detail, detail=event.detail, reading=reading)
    state = replace(state, knobs={**state.knobs, event.knob: known})
    if not (before.reading and reading) or before.reading == reading:
        return state
    setting = Setting(knob=event.knob, old=before.reading[0], new=event.value)
    since = event.t if event.since is None else event.since
    return mark(state, SettingMarker(t=event.t, host=event.host, setting=setting, since=since))


def _change_begun(state: State, event: ev.ChangeBegun) -> State:
    change = Change(
        letter=event.change,
        host=event.host,
        settings=event.settings,
        begun=event.t,
        undoes=event.undoes,
        diff=event.diff,
        cost=event.cost,
        who=event.who,
        inactive=event.inactive,
        trial=event.trial,
    )
    return replace(state, changes=(*state.changes, change))


def _change_stage(state: State, event: ev.ChangeStage) -> State:
    at = _index_of(state, event.change)
    if at is None:
        return state
    known = state.changes[at]
    confirm_by = None if event.seconds is None else event.t + event.seconds
    change = replace(known, stages={**known.stages, event.stage: event.t}, confirm_by=confirm_by)
    state = _with_change(state, at, change)
    return _became_active(state, change, _active(change), event.t) if event.stage == "active" else state


def _active(change: Change) -> tuple[Setting, ...]:
    return tuple(setting for setting in change.settings if setting.knob not in change.inactive)


def _change_ended(state: State, event: ev.ChangeEnded) -> State:
    at = _index_of(state, event.change)
    if at is None:
        return state
    known = state.changes[at]
    facts = {name: getattr(event, name) for name in ("outcome", "detail", "exceeded")}
    change = replace(known, ended=event.t, confirm_by=None, **facts)
    applied = event.outcome == "applied"
    since = event.t if change.active_since is None or not applied else change.active_since
    state = _with_change(state, at, change)
    if not change.trial or change.exceeded:
        marker = ChangeMarker(t=since, change=change.name, outcome=event.outcome, ended=event.t, detail=event.detail)
        state = mark(state, marker)
    if event.outcome in ("applied", "written"):
        state = _written(state, change)
    was_active = "active" in known.stages
    if applied == was_active:
        return state
    if applied:
        return _became_active(state, change, _active(change), event.t)
    back = tuple(Setting(knob=setting.knob, old=setting.new, new=setting.old) for setting in change.settings)
    return _became_active(state, replace(change, undoes=change.letter, settings=back), back, event.t)


def _written(state: State, change: Change) -> State:
    """Set the values that a change wrote without making them active."""
    values = {
        setting.knob: _changed(state, setting, active=False)
        for setting in change.settings
        if setting.knob in change.inactive and setting.knob in state.knobs
    }
    return replace(state, knobs={**state.knobs, **values})


def _changed(state: State, setting: Setting, active: bool) -> KnobState:
    return replace(state.knobs[setting.knob], value=setting.new, known=True, detail="", active=active, reading=())


def _index_of(state: State, letter: str) -> int | None:
    # From the end: mostly the newest.
    return next((at for at in reversed(range(len(state.changes))) if state.changes[at].letter == letter), None)


def _with_change(state: State, at: int, change: Change) -> State:
    return replace(state, changes=(*state.changes[:at], change, *state.changes[at + 1 :]))


def _became_active(state: State, change: Change, settings: tuple[Setting, ...], t: float) -> State:
    """Set the values that are active from `t` on; the active run continues in a new segment."""
    values = {
        setting.knob: _changed(state, setting, active=True) for setting in settings if setting.knob in state.knobs
    }
    state = replace(state, knobs={**state.knobs, **values})
    # A trial change starts no segment: the measurement made with it does.
    return state if change.trial else split_segment(state, replace(change, ended=t))


def _action_begun(state: State, event: ev.ActionBegun) -> State:
    run = ActionRun(number=event.number, action=event.action, host=event.host, times=event.times, begun=event.t)
    marker = ActionMarker(t=event.t, action=event.action, host=event.host, number_of_runs=event.times)
    return mark(replace(state, actions=(*state.actions, run)), marker)


def _action_ended(state: State, event: ev.ActionEnded) -> State:
    actions = tuple(
        replace(run, ended=event.t, done=event.done, detail=event.detail) if run.number == event.number else run
        for run in state.actions
    )
    state = replace(state, actions=actions)
    ended = next((run for run in actions if run.number == event.number), None)
    return _activated(state, ended.action, event.t) if ended and event.done else state


def _activated(state: State, action: str, t: float) -> State:
    """Mark the written values that this action activates as active from `t` on."""
    waiting = {name for name, known in state.knobs.items() if not known.active and known.knob.action == action}
    newest: Change | None = None
    for at, change in enumerate(state.changes):
        if change.outcome in ("applied", "written") and waiting & set(change.inactive):
            left = tuple(name for name in change.inactive if name not in waiting)
            newest = replace(change, outcome="applied", inactive=left, stages={"active": t, **change.stages})
            state = _with_change(state, at, newest)
    if newest is None:
        return state
    values = tuple(Setting(knob=name, old=None, new=state.knobs[name].value) for name in sorted(waiting))
    return _became_active(state, newest, values, t)


_FOLDS: dict[type, Callable[[State, Any], State]] = {
    ev.SessionStarted: _session_started,
    ev.SessionEnded: lambda state, event: replace(state, ended=True),
    ev.RunStarted: run_started,
    Tick: tick,
    ev.LoadAdjusted: load_adjusted,
    ge.GeneratorSample: generator_sample,
    ge.WorkerLost: worker_lost,
    ge.GeneratorClock: generator_clock,
    ge.GeneratorLost: generator_lost,
    ev.RunEnded: run_ended,
    ev.HostChanged: host_changed,
    ev.HostSample: host_sample,
    ev.TailText: tail_text,
    ev.TailChanged: tail_changed,
    ev.AccessCounts: access_counts,
    ev.StatusRead: status_read,
    ev.KnobRead: _knob_read,
    ev.ChangeBegun: _change_begun,
    ev.ChangeStage: _change_stage,
    ev.ChangeEnded: _change_ended,
    ev.ActionBegun: _action_begun,
    ev.ActionEnded: _action_ended,
    ev.Note: lambda state, event: mark(state, NoteMarker(t=event.t, text=event.text)),
    StackSlice: stack_slice,
    ProfilerChanged: profiler_changed,
    **TASK_FOLDS,
}
