"""Thresholds against a baseline, those that end a run early, and whether a run came to rest."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from cockpit.analysis.baseline import baseline_of
from cockpit.analysis.breaker import Breaker, check_abort
from cockpit.analysis.steadiness import unsteady, window_unsteady
from cockpit.analysis.thresholds import hold, parse_threshold
from cockpit.model.errors import UsageError
from cockpit.model.figures import figure, run_result
from cockpit.model.fold import fold_all
from cockpit.model.state import State
from tests.analysis.synthetic import OPEN, window
from tests.session.events import small_session


@pytest.fixture(scope="module")
def state() -> State:
    return fold_all(small_session())


@pytest.mark.parametrize("name", ["rate", "failed", "p50", "p97.3", "service.p99", "max", "web1.cpu.idle", "duration"])
def test_a_baseline_gives_the_figures_of_the_run_it_was_made_of(state: State, name: str) -> None:
    result = run_result(state, 1)
    assert result is not None
    assert baseline_of("b", "x", 0.0, result).figure(name) == figure(result, name)


def test_a_baseline_has_no_figure_of_a_host_it_does_not_know(state: State) -> None:
    result = run_result(state, 1)
    assert result is not None
    assert baseline_of("b", "x", 0.0, result).figure("web9.cpu.idle") is None
    assert baseline_of("b", "x", 0.0, result).figure("web1.cpu.nonsense") is None


@pytest.mark.parametrize(
    ("text", "holds", "limit"),
    [
        ("rate >= 95% of baseline", True, 190.0),
        ("rate >= 101 % of  baseline", False, 202.0),
        ("p99 <= 100% of baseline", True, 0.096),
        ("web1.cpu.idle > 50% of baseline", True, 25.0),
        ("web9.cpu.idle > 50% of baseline", False, None),
        ("rate > 100", True, 100.0),
    ],
)
def test_a_share_of_the_baseline(state: State, text: str, holds: bool, limit: float | None) -> None:
    result = run_result(state, 1)
    assert result is not None
    outcome = hold([parse_threshold(text)], result, baseline_of("b", "x", 0.0, result))[0]
    assert outcome.holds is holds
    assert outcome.limit == (limit if limit is None else pytest.approx(limit, rel=0.01))


def test_without_a_baseline_such_a_threshold_does_not_hold(state: State) -> None:
    result = run_result(state, 1)
    assert result is not None
    outcome = hold([parse_threshold("rate >= 1% of baseline")], result)[0]
    assert (outcome.holds, outcome.limit) == (False, None)


def states() -> list[State]:
    """The small session, as it was after each event until its first run ended."""
    found, state = [], State()
    for event in small_session():
        state = fold_all([event], state)
        found.append(state)
        if event.t > 25:
            break
    return found


@pytest.mark.parametrize(
    ("text", "after"),
    [("p99 < 10ms", 2.0), ("rate > 1k", 2.0), ("web1.cpu.idle > 90", 2.0), ("failed < 0", 0.0)],
)
def test_a_run_is_broken_off_when_enough_is_known(text: str, after: float) -> None:
    breaker = Breaker([parse_threshold(text)])
    at = next(state for state in states() if breaker(state))
    assert breaker.broken is not None
    assert breaker.broken.threshold.text == text
    result = run_result(at, 1)
    assert result is not None
    assert after <= result.seconds < after + 1
    # From then on always, whatever comes.
    assert breaker(State())


@pytest.mark.parametrize("text", ["p99 < 1s", "failed < 1", "web9.cpu.idle > 90", "rate > 10"])
def test_what_holds_or_is_not_known_breaks_nothing_off(text: str) -> None:
    breaker = Breaker([parse_threshold(text)])
    assert not any(breaker(state) for state in states())


def test_what_is_known_at_the_end_alone_cannot_end_a_run() -> None:
    with pytest.raises(UsageError, match="'completed > 10': completed is known at the end"):
        check_abort(parse_threshold("completed > 10"))


def test_a_rate_that_goes_on_falling_is_not_steady() -> None:
    assert window_unsteady(window(1, 30, deviation=0.002)) == ""
    assert "in its last 3 parts of 10 s" in window_unsteady(window(1, 30, deviation=0.002, drift=-0.4))
    assert "in its last 3 parts of 2 s" in window_unsteady(window(1, 6, deviation=0.002, drift=-0.4))


def test_too_few_seconds_are_not_called_steady() -> None:
    assert window_unsteady(window(1, 5)) == "too short to tell: 5 s counted, needs 6 s"


def test_under_open_load_the_tail_must_rest_too() -> None:
    steady = window(3, 40, deviation=0.002, plan=OPEN)
    # Every second as of another server, each a little slower than the one before.
    slower = [window(at, 1, slower=factor).seconds[0] for at, factor in enumerate(np.linspace(1, 4, 40))]
    rising = [
        replace(one, second=second.second, start=second.start, end=second.end, completed=second.completed)
        for one, second in zip(slower, steady.seconds, strict=True)
    ]
    assert window_unsteady(steady) == ""
    assert window_unsteady(replace(steady, seconds=tuple(rising))).startswith("p99 rose by ")
    closed = window(3, 40, deviation=0.002)
    assert window_unsteady(replace(closed, seconds=tuple(rising))) == ""


def test_each_row_of_a_run_must_be_steady(state: State) -> None:
    rows = [row for row in state.segments if row.run == 1]
    assert len(rows) == 2
    assert unsteady(state, rows) == ""
    assert unsteady(state, [replace(rows[0], last=rows[0].start + 4), rows[1]]).startswith("row 1: too short to tell")
