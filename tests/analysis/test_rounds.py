"""Rounds of one change: verdict, progress, duration and detectable effect, and their text."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import replace

from cockpit.analysis.rounds import (
    UNCOUNTED,
    Basis,
    Order,
    RoundsPlan,
    announcement,
    balanced,
    is_concluded,
    mirrored,
    progress,
    rounds_verdict,
    sequence,
)
from cockpit.analysis.verdicts.outcome import Design, Outcome
from cockpit.analysis.verdicts.segments import SegmentVerdicts, verdicts
from cockpit.analysis.words.rounds import announcement_words, ended_words, offer_words, progress_words, window_words
from cockpit.model import events as ev
from cockpit.model.capacity import CapacityOutcome
from cockpit.model.fold.fold import fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.knobs import Setting
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from tests.capacities import search_events

SETTING = Setting(knob="MaxSpareServers", old="10", new="30")
PLAN = LoadPlan(url="http://web1/", concurrency=20)
TIMES = Histogram.of([1_000_000 + 10_000 * (step * 7 % 100) for step in range(100)])
WINDOW, SET_UP = 19, 6


def rounds_of(
    factor: float, rounds: int = 6, *, budget: int = 12, drift: float = 0.0, part: int = 2
) -> Iterator[ev.AnyEvent]:
    """Yield a run with `rounds` rounds, the last with `part` windows.

    The new values multiply the rate by `factor`; the rate drifts by `drift` per window.
    """
    first = balanced(budget, 7)
    draw = np.random.default_rng(5)
    yield ev.RunStarted(t=0.0, run=1, plan=PLAN)
    yield ev.RoundsBegun(
        t=0.0,
        number=1,
        run=1,
        host="web1",
        settings=(SETTING,),
        first=first,
        seconds=15.0,
        longest=700.0,
        change="A",
        active="after",
        seed=7,
        detectable=0.042,
    )
    t = 0.0
    for number, side in enumerate(sequence(first)[: 2 * (rounds - 1) + part]):
        level = 1000 * (factor if side == "after" else 1.0) * (1 + drift) ** number * (1 + draw.normal(0, 0.01))
        yield from ticks(t, SET_UP, 300)
        t += SET_UP
        yield ev.RoundWindow(t=t, number=1, round=number // 2 + 1, side=side, until=t + WINDOW)
        yield from ticks(t, WINDOW, level)
        t += WINDOW
        yield ev.RoundWindowEnded(t=t, number=1)


def ticks(t: float, seconds: int, level: float) -> Iterator[ev.AnyEvent]:
    for second in range(seconds):
        done = round(level)
        start = t + second
        yield ev.Tick(t=start + 1, start=start, run=1, worker=0, sent=done, completed=done, service=TIMES)


def state_of(*arguments: float, **values: float) -> State:
    return fold_all(rounds_of(*arguments, **values))  # type: ignore[arg-type]


def test_each_side_is_first_twice_in_four_rounds() -> None:
    for seed in range(20):
        first = balanced(16, seed)
        assert all(Counter(first[at : at + 4]) == {"before": 2, "after": 2} for at in range(0, 16, 4))
        assert first == balanced(16, seed) and len(balanced(7, seed)) == 7
    assert len({balanced(12, seed) for seed in range(20)}) > 10
    assert sequence(mirrored(2)) == ("before", "after", "after", "before")
    assert RoundsPlan(4, 15.0, Order.MIRRORED).first_sides == mirrored(4)
    assert RoundsPlan(seed=3).first_sides == balanced(12, 3)


def test_rounds_find_effect_despite_drift() -> None:
    for factor, outcome in ((1.3, Outcome.BETTER), (0.8, Outcome.WORSE), (1.0, Outcome.EQUIVALENT)):
        state = state_of(factor, 8, drift=0.01)
        verdict = rounds_verdict(state, state.rounds[0])
        assert (verdict.outcome, verdict.design, verdict.values) == (outcome, Design.ROUNDS, (8, 8))
        assert verdict.label == "A MaxSpareServers 10 → 30" and verdict.headline.before is not None
        # Set-up seconds have a third of the rate and are in no window.
        assert verdict.headline.before > 900
        assert verdicts(state)[-1] == verdict
        kept = SegmentVerdicts()
        assert kept.rounds(state, state.rounds[0]) is kept.rounds(state, state.rounds[0])


def test_no_conclusion_before_fourth_round() -> None:
    found = [rounds_verdict(state := state_of(2.0, number), state.rounds[0]) for number in (1, 3, 4)]
    assert [verdict is not None and is_concluded(verdict) for verdict in found] == [False, False, True]
    assert rounds_verdict(state_of(2.0, 1, part=1), state_of(2.0, 1, part=1).rounds[0]) is None
    ended = ev.RoundsEnded(t=900.0, number=1, outcome="budget", active="after")
    state = fold_all((ended,), state_of(1.0, 2, budget=2))
    every = state_of(1.0, 2), state_of(1.0, 2, budget=2), fold_all((ended,), state_of(1.0, 2))
    assert [rounds_verdict(one, one.rounds[0]).growing for one in every] == [True, False, False]
    words = ended_words(state.rounds[0], ended, rounds_verdict(state, state.rounds[0]))
    assert words.startswith("inconclusive: 2 rounds; 4 needed, after 2 rounds; the new values are active: ")
    assert words.endswith("the rounds do not show that they are worse")


def test_progress_shows_window_and_time_left() -> None:
    state = fold_all(rounds_of(1.0, 3))
    shown = progress(state, state.t)
    first = sequence(state.rounds[0].begun.first)
    assert shown is not None and (shown.round, shown.budget, shown.side, shown.complete) == (4, 12, first[6], 3)
    assert shown.window_left is None and shown.left == pytest.approx(18 * (15.0 + UNCOUNTED + 5.0))
    assert progress_words(shown).endswith("values, setting up; at most 8 min more")
    t = state.t
    state = fold_all((ev.RoundWindow(t=t, number=1, round=4, side=first[6], until=t + 19),), state)
    shown = progress(state, t + 10)
    assert shown is not None and shown.window_left == pytest.approx(9.0)
    assert "round 4 of 12: " in progress_words(shown) and "values, 9 s" in progress_words(shown)
    over = fold_all((ev.RoundsEnded(t=t + 20, number=1, outcome="stopped", active="after"),), state)
    assert progress(over, over.t) is None and progress(State(), 0.0) is None


def test_announcement_is_based_on_rounds_load_or_assumption() -> None:
    plan = RoundsPlan()
    announced = [announcement(state, plan.first_sides, 15.0) for state in (State(), noisy(), state_of(1.0, 8))]
    assert [each.basis for each in announced] == [Basis.ASSUMED, Basis.LOAD, Basis.ROUNDS]
    assert all(400 < each.seconds < 1000 for each in announced)
    assert 0.02 < announced[0].detectable < 0.06 and 0.005 < announced[2].detectable < 0.06
    # Noise of 10% has a larger detectable effect than noise of 1%.
    assert announcement(noisy(0.1), plan.first_sides, 15.0).detectable > 2 * announced[1].detectable
    text = offer_words(plan, announced[0])
    assert text.startswith("12 rounds of 2 × 15 s: at most 11 min") and "based on an assumed spread of 3%" in text


def test_seconds_that_do_not_count_are_in_no_mean() -> None:
    action = (ev.ActionBegun(t=36.0, number=1, action="flush", host="web1"), ev.ActionEnded(t=42.0, number=1, done=1))
    state = fold_all(sorted((*rounds_of(1.0, 8), *action), key=lambda event: event.t))
    verdict = rounds_verdict(state, state.rounds[0])
    assert verdict.headline.before == pytest.approx(1000, rel=0.02)
    # The generator was saturated in all of them.
    events = (replace(one, cpu=1.0) if isinstance(one, ev.Tick) else one for one in rounds_of(1.0, 4))
    state = fold_all(events)
    assert rounds_verdict(state, state.rounds[0]).outcome is Outcome.INVALID
    assert announcement(state, RoundsPlan().first_sides, 15.0).basis is Basis.ASSUMED
    state = fold_all(one for one in rounds_of(1.0, 4) if not isinstance(one, ev.RunStarted))
    assert rounds_verdict(state, state.rounds[0]) is None and verdicts(state) == ()
    assert SegmentVerdicts().rounds(state, state.rounds[0]) is None
    assert announcement(state, RoundsPlan().first_sides, 15.0).basis is Basis.ASSUMED
    empty = replace(state.rounds[0], begun=replace(state.rounds[0].begun, first=()))
    assert progress(replace(state, rounds=(empty,)), state.t) is None


def noisy(deviation: float = 0.01) -> State:
    """Return a state with 60 s of load."""
    levels = 1000 * (1 + np.random.default_rng(2).normal(0, deviation, 60))
    events: list[ev.AnyEvent] = [ev.RunStarted(t=0.0, run=1, plan=PLAN)]
    for second, level in enumerate(levels):
        events += ticks(second, 1, float(level))
    return fold_all(events)


def test_end_of_rounds_names_active_values_and_reason() -> None:
    for factor, outcome, active, detail, text in (
        (1.3, "verdict", "after", "", "after 4 rounds; the new values are active: they are not worse"),
        (0.8, "verdict", "before", "", "after 4 rounds; the old values are active again: the new ones are worse"),
        (1.0, "stopped", "after", "", "rounds stopped after 4 rounds: the new values are active, as at the start"),
        (1.0, "load ended", "before", "", "rounds ended with the load after 4 rounds: the old values are active"),
        (1.0, "failed", "after", "web1: lost", "rounds failed after 4 rounds: web1: lost; the new values are active"),
    ):
        ended = ev.RoundsEnded(t=900.0, number=1, outcome=outcome, active=active, detail=detail)
        state = fold_all((ended,), state_of(factor, 4))
        rounds = state.rounds[0]
        assert text in ended_words(rounds, ended, rounds_verdict(state, rounds))
        assert announcement_words(rounds.begun) == (
            "A MaxSpareServers 10 → 30: at most 12 rounds, 12 min (seed 7); minimum detectable effect 4.2% (power 80%)"
        )
        assert window_words(rounds, rounds.windows[0]).startswith("round 1 of 12: ")


def test_rounds_of_searches_compare_capacities() -> None:
    """Each window is a run of its own; a round in which a search finds no capacity does not count."""

    def searched(unknown: int = 0) -> Iterator[ev.AnyEvent]:
        first = balanced(6, 7)
        yield ev.RoundsBegun(
            t=0.0,
            number=1,
            run=1,
            host="a",
            settings=(SETTING,),
            first=first,
            seconds=40.0,
            longest=9.0,
            until="p99 < 1s",
        )
        for at, side in enumerate(sequence(first)):
            t, capacity = 50.0 * at + 1, (250.0 if side == "after" else 200.0) * (1 + 0.005 * (at * 7 % 5))
            yield ev.RoundWindow(t=t, number=1, round=at // 2 + 1, side=side, until=t + 40)
            outcome: CapacityOutcome = "generator" if at < 2 * unknown else "found"
            yield from search_events(t, at + 1, PLAN, capacity, outcome)
            yield ev.RoundWindowEnded(t=t + 45, number=1)
        yield ev.RoundsEnded(t=999.0, number=1, outcome="budget", active="before")

    state = fold_all(searched())
    found = rounds_verdict(state, state.rounds[0])
    assert found is not None and (found.outcome, found.values) == (Outcome.BETTER, (6, 6))
    assert [effect.name for effect in found.effects] == ["capacity"] and verdicts(state) == (found,)
    assert found.effects[0].change == pytest.approx(0.25, abs=0.04)
    state = fold_all(searched(unknown=3))
    found = rounds_verdict(state, state.rounds[0])
    assert found is not None and (found.outcome, found.values) == (Outcome.INCONCLUSIVE, (3, 3))
