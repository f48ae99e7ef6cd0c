"""Changes and actions in the state: stages, active values, markers and segments."""

from __future__ import annotations

from cockpit.model import events as ev
from cockpit.model.fold import fold_all
from cockpit.model.knobs import Knob, Setting
from cockpit.model.load import LoadPlan

KNOB = Knob(name="K", host="web1", file="/f", directive="K", test="t", reload="r")
SETTING = Setting(knob="K", old="10", new="30")


def unconfirmed_change(t: float) -> list[ev.AnyEvent]:
    return [
        ev.SessionStarted(t=0, wall=0, version="0", name="x", knobs=(KNOB,)),
        ev.RunStarted(t=1, run=1, plan=LoadPlan(url="http://x/", concurrency=2, duration=60.0)),
        ev.Tick(t=2, run=1, worker=0, start=1, sent=5, completed=5),
        ev.ChangeBegun(
            t=t, change="A", host="web1", settings=(SETTING,), diff="-10\n+30\n", cost="graceful", who="me@here"
        ),
        ev.ChangeStage(t=t + 1, change="A", stage="armed"),
        ev.ChangeStage(t=t + 3, change="A", stage="active", seconds=60.0),
    ]


def test_unconfirmed_change_is_active_and_confirmation_starts_no_segment() -> None:
    state = fold_all(unconfirmed_change(3.0))
    change = state.changes[0]
    assert (change.diff, change.cost, change.who) == ("-10\n+30\n", "graceful", "me@here")
    assert dict(change.stages) == {"armed": 4.0, "active": 6.0}
    assert (change.active_since, change.confirm_by, change.outcome) == (6.0, 66.0, None)
    assert state.knobs["K"].value == "30"
    assert [(segment.start, segment.label) for segment in state.segments] == [(1.0, "baseline"), (6.0, "A K 10 → 30")]
    state = fold_all([*unconfirmed_change(3.0), ev.ChangeEnded(t=9.0, change="A", outcome="applied")])
    assert (state.changes[0].outcome, state.changes[0].confirm_by, len(state.segments)) == ("applied", None, 2)
    assert [(marker.t, marker.sign) for marker in state.markers] == [(6.0, "A")]
    state = fold_all(
        [
            *unconfirmed_change(3.0),
            ev.ChangeEnded(t=9.0, change="A", outcome="rolled back", detail="not confirmed"),
        ]
    )
    assert state.knobs["K"].value == "10"
    assert [segment.label for segment in state.segments] == ["baseline", "A K 10 → 30", "A undo A: K 30 → 10"]
    assert state.segments[-1].start == 9.0
    assert state.markers[-1].text == "A K 10 → 30: rolled back, not confirmed"


def test_written_value_is_active_after_its_action() -> None:
    knob = Knob(name="K", host="web1", kind="keyvalue", file="/f", key="K", action="restart")
    events: list[ev.AnyEvent] = [
        ev.SessionStarted(t=0, wall=0, version="0", name="x", knobs=(knob,)),
        *unconfirmed_change(3.0)[1:3],
        ev.ChangeBegun(t=3.0, change="A", host="web1", settings=(SETTING,), cost="written", inactive=("K",)),
        ev.ChangeStage(t=4.0, change="A", stage="not yet active"),
        ev.ChangeEnded(t=5.0, change="A", outcome="written"),
    ]
    state = fold_all(events)
    assert (state.knobs["K"].value, state.knobs["K"].active, state.changes[0].active_since) == ("30", False, None)
    assert [segment.label for segment in state.segments] == ["baseline"]
    assert state.markers[-1].text == "A K 10 → 30: written"
    other = [ev.ActionBegun(t=6.0, number=1, action="empty", host="web1"), ev.ActionEnded(t=7.0, number=1, done=1)]
    assert not fold_all(other, state).knobs["K"].active
    failed = [ev.ActionBegun(t=6.0, number=1, action="restart", host="web1"), ev.ActionEnded(t=7.0, number=1, done=0)]
    assert not fold_all(failed, state).knobs["K"].active
    state = fold_all([failed[0], ev.ActionEnded(t=7.0, number=1, done=1)], state)
    assert (state.knobs["K"].active, state.changes[0].outcome, state.changes[0].active_since) == (True, "applied", 7.0)
    assert [(segment.start, segment.label) for segment in state.segments] == [(1.0, "baseline"), (7.0, "A K 10 → 30")]


def test_action_has_marker() -> None:
    events = [ev.ActionBegun(t=1, number=1, action="restart", host="web1", times=20)]
    state = fold_all([*events, ev.ActionEnded(t=5, number=1, done=19, detail="it says no")])
    assert [(marker.kind, marker.text) for marker in state.markers] == [("action", "restart 20 times on web1")]
    (run,) = state.actions
    assert (run.begun, run.ended, run.done, run.detail) == (1, 5, 19, "it says no")


def test_events_of_older_recordings_are_decoded() -> None:
    old = b'{"event":"change_begun","t":1.0,"change":"A","host":"web1","settings":[{"knob":"K","old":"1","new":"2"}]}'
    assert ev.decode(old) == ev.ChangeBegun(
        t=1.0, change="A", host="web1", settings=(Setting(knob="K", old="1", new="2"),)
    )
    for event in unconfirmed_change(3.0):
        assert ev.decode(ev.encode(event)) == event
