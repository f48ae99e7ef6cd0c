"""A verdict on a change under load is final: nothing that happens later changes it."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.analysis.verdicts.outcome import Outcome, Verdict
from cockpit.analysis.verdicts.segments import SegmentVerdicts, segment_before, segment_verdict
from cockpit.analysis.verdicts.wait import awaits_verdict
from cockpit.analysis.words.timeline import segment_label
from cockpit.model import events as ev
from cockpit.model import generators as ge
from cockpit.model.fold.fold import fold_all
from cockpit.model.host.samples import HostConfig
from cockpit.model.host.state import HostPoint, HostState
from cockpit.model.state import State
from cockpit.session.controls import Mode
from cockpit.tui.draw_context import DrawContext, View
from cockpit.tui.runs.strip import StripContents, strip
from cockpit.tui.runs.strip_lines import strip_lines
from cockpit.tui.tuning.baseline import power_words
from tests.analysis.synthetic import window
from tests.analysis.test_verdict_wait import TIMES, switched
from tests.tui.driving import plain

BEFORE, AFTER = 40, 60
READING = window(1, 1, busy=99.0).hosts["web1"][0]
LATER = st.lists(st.sampled_from(["stall", "fast", "adjusted", "lost", "failed", "undone"]), max_size=6)


def with_others(state: State, *shares: tuple[float, float]) -> State:
    """Return the state with a reading per second of a busy host; `shares`: other load (%) from an instant."""

    def point(t: float) -> HostPoint:
        other = next(share for since, share in reversed(shares) if since <= t)
        return replace(READING, t=t, other=other)

    points = tuple(point(float(t)) for t in range(int(state.t) + 1))
    return replace(state, hosts={"web1": HostState(config=HostConfig(name="web1"), points=points)})


def change_events(after: int, factor: float) -> list[ev.AnyEvent]:
    """Return a run with a change, whose values became active before it was confirmed."""
    events = list(switched(BEFORE, after, factor))
    place = next(at for at, event in enumerate(events) if isinstance(event, ev.ChangeEnded))
    return [*events[:place], ev.ChangeStage(t=BEFORE - 0.1, change="A", stage="active"), *events[place:]]


def change_verdict(state: State) -> Verdict:
    segment = next(segment for segment in state.segments if segment.changes == ("A",))
    base = segment_before(state, segment)
    assert base is not None
    found = segment_verdict(state, segment, base)
    assert SegmentVerdicts().verdict(state, segment, base) == found
    return found


def strip_of(state: State) -> StripContents:
    found = strip(DrawContext(state=state, view=View(), mode=Mode.LIVE))
    assert found is not None
    return found


def ticks(t: int, rate: int) -> ev.Tick:
    return ev.Tick(t=t + 1.0, start=float(t), run=1, worker=0, sent=rate, completed=rate, service=TIMES)


def later(kinds: Sequence[str], t: int) -> list[ev.AnyEvent]:
    """Return seconds of load from `t` on, in which these things happen."""
    found: list[ev.AnyEvent] = []
    for at, kind in enumerate(kinds):
        second = t + 10 * at
        happens: dict[str, list[ev.AnyEvent]] = {
            "adjusted": [ev.LoadAdjusted(t=second + 0.5, run=1, concurrency=second)],
            "lost": [ge.WorkerLost(t=second + 0.5, run=1, worker=0, detail="killed")],
            "failed": [ev.RunEnded(t=second + 0.5, run=1, reason="failed", detail="no route")],
            "undone": [
                ev.ChangeStage(t=second + 0.3, change="A", stage="undoing"),
                ev.ChangeEnded(t=second + 0.5, change="A", outcome="rolled back"),
            ],
        }
        found += happens.get(kind, [])
        if "failed" in kinds[: at + 1]:
            continue
        found += [ticks(second + one, {"stall": 0, "fast": 9000}.get(kind, 2000)) for one in range(10)]
    return found


@given(kinds=LATER, others=st.floats(0, 95))
def test_later_events_never_change_a_verdict(kinds: list[str], others: float) -> None:
    state = fold_all(change_events(AFTER, 2.0))
    final = change_verdict(with_others(state, (0, 2.0)))
    assert (final.outcome, final.growing) == (Outcome.BETTER, False)
    assert final.reached is not None and final.reached < state.t
    after = with_others(fold_all(later(kinds, BEFORE + AFTER), state), (0, 2.0), (final.reached + 1, others))
    assert change_verdict(after) == final


def test_verdict_is_the_same_at_each_instant_after_it_is_reached() -> None:
    events = change_events(AFTER, 1.2)
    found = [change_verdict(fold_all(events[:until])) for until in range(BEFORE + 4, len(events) + 1)]
    reached = [one for one in found if one.reached is not None]
    assert reached and all(one == two for one, two in pairwise(reached))
    assert found[-len(reached) :] == reached, "it never becomes open again"
    assert {one.outcome for one in found[: -len(reached)]} == {Outcome.INCONCLUSIVE}


def test_other_load_is_weighed_when_the_verdict_is_reached() -> None:
    """Before that it delays the verdict: it is reached once it stands."""
    state = fold_all(change_events(AFTER, 1.3))
    begun = change_verdict(with_others(state, (0, 2.0), (BEFORE, 30.0)))
    assert (begun.outcome, begun.at_least) == (Outcome.BETTER, True)
    hogged = change_verdict(with_others(state, (0, 30.0), (BEFORE, 2.0)))
    assert (hogged.outcome, hogged.reached) == (Outcome.INVALID, None), "it explains 43%"
    ended = change_verdict(with_others(state, (0, 2.0), (BEFORE + 20, 90.0)))
    assert ended.outcome is Outcome.BETTER


@pytest.mark.parametrize("seconds", [20, 60])
def test_altered_load_begins_a_segment_and_spoils_no_verdict(seconds: int) -> None:
    state = fold_all(change_events(seconds, 2.0))
    before = change_verdict(state)
    end = BEFORE + seconds
    altered = [ev.LoadAdjusted(t=end + 0.2, run=1, concurrency=c) for c in (40, 41)]
    state = fold_all([*altered, *(ticks(end + one, 3000) for one in range(30))], state)
    assert [segment.plan.concurrency for segment in state.segments][1:] == [state.plans[1].concurrency, 41]
    assert segment_label(state.segments[-1]) == "A X 1 → 2 · c=41" and state.segments[-1].changes == ()
    assert change_verdict(state).outcome is before.outcome and not awaits_verdict(state, "A")
    # The next change has the altered load as its baseline.
    setting = state.changes[0].settings[0]
    following = [
        ev.ChangeBegun(t=end + 30.0, change="B", host="web1", settings=(setting,)),
        ev.ChangeEnded(t=end + 30.5, change="B", outcome="applied"),
    ]
    state = fold_all([*following, ticks(end + 31, 3000)], state)
    base = segment_before(state, state.segments[-1])
    assert base is not None and base.plan.concurrency == 41


def test_screen_notes_other_load_since_the_verdict_and_the_altered_load() -> None:
    events = change_events(AFTER, 2.0)
    state = with_others(fold_all(events), (0, 2.0))
    final = change_verdict(state)
    assert final.reached is not None
    later_hog = with_others(state, (0, 2.0), (final.reached + 1, 40.0))
    assert strip_of(state).compared == "vs segment 1"
    assert strip_of(later_hog).compared.startswith("vs segment 1 · since then others on web1 40%")
    hogged = with_others(state, (0, 2.0), (BEFORE, 30.0))
    lines = plain(strip_lines(strip_of(hogged), 80, 9))
    assert lines[1].startswith("▲  better, at least  rate ≥ +9")
    assert lines[2] == "   others 3% → 30% of CPU explain nothing of it"
    begun = [event for event in events if event.t <= BEFORE + 15]
    early = strip_of(with_others(fold_all([*begun, ev.RunEnded(t=BEFORE + 15.5, run=1, reason="stopped")]), (0, 30.0)))
    assert not early.verdict.effects
    assert "at c=40 finds" not in power_words(state)
    adjusted = [ev.LoadAdjusted(t=100.2, run=1, concurrency=40), *(ticks(100 + one, 3000) for one in range(40))]
    extended = replace(state.plans[1], extend=180.0)
    segments = (*state.segments[:-1], replace(state.segments[-1], plan=extended))
    altered = fold_all(adjusted, replace(state, plans={1: extended}, segments=segments))
    assert power_words(altered).startswith("baseline 35 s at c=40 finds rate ≥ ")
