"""Extended runs and rounds in the state."""

from __future__ import annotations

from cockpit.model import events as ev
from cockpit.model.fold import fold_all
from cockpit.model.knobs import Setting
from cockpit.model.load import LoadPlan

STARTED = ev.RunStarted(t=1.0, run=1, plan=LoadPlan(url="http://web1/", duration=30.0))
BEGUN = ev.RoundsBegun(
    t=2.0,
    number=1,
    run=1,
    host="web1",
    settings=(Setting(knob="X", old="1", new="2"),),
    first=("after", "before", "before", "after"),
    seconds=15.0,
    longest=200.0,
)


def test_extension_lasts_until_replaced_released_or_end_of_run() -> None:
    extended = ev.RunExtended(t=3.0, run=1, until=40.0, awaited="baseline")
    awaited = ev.RunExtended(t=8.0, run=1, until=188.0, change="A")
    later = ev.RunExtended(t=9.0, run=1, until=189.0, change="A")
    state = fold_all((STARTED, extended))
    assert state.extension is not None and (state.extension.since, state.extension.awaited) == (3.0, "baseline")
    state = fold_all((awaited, later), state)
    assert (state.extension.change, state.extension.since, state.extension.until) == ("A", 8.0, 189.0)
    assert fold_all((ev.RunExtended(t=50.0, run=1, until=50.0, change="A"),), state).extension is None
    assert fold_all((ev.RunEnded(t=60.0, run=1, reason="stopped"),), state).extension is None
    assert fold_all((ev.RunExtended(t=60.0, run=2, until=99.0),), state).extension == state.extension


def test_round_is_complete_with_both_windows() -> None:
    first = ev.RoundWindow(t=5.0, number=1, round=1, side="after", until=23.0)
    second = ev.RoundWindow(t=30.0, number=1, round=1, side="before", until=48.0)
    first_ended = ev.RoundWindowEnded(t=23.0, number=1)
    state = fold_all((STARTED, BEGUN, first, first_ended, second))
    rounds = state.running_rounds
    assert rounds is not None and rounds.budget == 4 and rounds.complete == ()
    assert [window.end for window in rounds.windows] == [23.0, None]
    state = fold_all((ev.RoundWindowEnded(t=48.0, number=1),), state)
    assert [(before.start, after.start) for before, after in state.rounds[0].complete] == [(30.0, 5.0)]
    state = fold_all((ev.RoundsEnded(t=60.0, number=1, outcome="stopped", active="before"),), state)
    assert state.running_rounds is None and state.rounds[0].ended is not None
    assert fold_all((first,), state).rounds == state.rounds
