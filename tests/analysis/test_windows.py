"""What of a session is counted, and what of it is left out by which rule."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.analysis.blocks import LatencyBlocks, block_sample, run_values
from cockpit.analysis.windows import Flaw, Window, counted_range, left_out, segment_window, window_between
from cockpit.model.fold import fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.host_state import HostState
from cockpit.model.hosts import HostConfig
from cockpit.model.state import ActionRun, Change, LoadSecond, Segment, State
from tests.analysis.synthetic import PLAN, window
from tests.session.events import small_session


def seconds(first: int, last: int, **changed: object) -> tuple[LoadSecond, ...]:
    return tuple(
        msgspec.structs.replace(
            LoadSecond(second=at, start=float(at), end=float(at + 1), completed=100, latency=Histogram.of([1_000_000])),
            **changed,
        )
        for at in range(first, last)
    )


def counted(found: Window) -> list[int]:
    return [second.second for second in found.seconds]


def test_a_window_is_whole_seconds_after_its_guard() -> None:
    state = State(t=60.0, seconds=seconds(0, 60))
    found = window_between(state, 10.4, 30.5, PLAN)
    # 11 is the first whole second, three of them are the guard; 30 is cut.
    assert counted(found) == list(range(14, 30))
    assert found.guarded == 3
    assert left_out([found]) == {Flaw.GUARD: 3}


def test_what_is_partial_or_saturated_is_left_out_and_counted() -> None:
    odd = (*seconds(0, 20), *seconds(20, 23, saturated=True), *seconds(23, 24, end=23.4), *seconds(24, 40, queued=3))
    found = window_between(State(t=40.0, seconds=odd), 0.0, 40.0, PLAN)
    assert counted(found) == [*range(3, 20), *range(24, 40)]
    assert found.flawed == {Flaw.SATURATED: 3, Flaw.PARTIAL: 1, Flaw.QUEUED: 16}
    assert left_out([found]) == {Flaw.GUARD: 3, Flaw.PARTIAL: 1, Flaw.SATURATED: 3}


def test_a_change_within_is_cut_out() -> None:
    """From its request until its guard after it came into force, or was put back."""
    change = Change(letter="A", host="web1", settings=(), begun=20.5, ended=23.2, outcome="rolled back")
    found = window_between(State(t=40.0, seconds=seconds(0, 40), changes=(change,)), 0.0, 40.0, PLAN)
    assert counted(found) == [*range(3, 20), *range(27, 40)]
    assert found.flawed == {Flaw.CHANGING: 7}


def test_what_else_is_done_to_a_server_is_cut_out() -> None:
    """An action while it runs, and the way back of a change that was in force."""
    action = ActionRun(number=1, action="restart", host="web1", times=3, begun=10.5, ended=12.0, done=3)
    stages = {"active": 1.0, "undoing": 30.2}
    change = Change(letter="A", host="web1", settings=(), begun=0.5, stages=stages, ended=31.0, outcome="rolled back")
    state = State(t=40.0, seconds=seconds(0, 40), changes=(change,), actions=(action,))
    found = window_between(state, 1.0, 40.0, PLAN)
    assert counted(found) == [*range(4, 10), *range(15, 30), *range(34, 40)]
    assert left_out([found, found]) == {Flaw.GUARD: 6, Flaw.CHANGING: 18}


def test_an_action_that_began_before_the_window_is_cut_out() -> None:
    action = ActionRun(number=1, action="restart", host="web1", times=1, begun=7.5, ended=15.5, done=1)
    state = State(t=40.0, seconds=seconds(0, 40), actions=(action,))
    found = window_between(state, 10.0, 40.0, PLAN)
    assert counted(found) == list(range(19, 40))
    assert found.flawed == {Flaw.CHANGING: 9}
    segment = Segment(number=1, run=1, plan=PLAN, label="x", start=10.0, last=40.0)
    assert counted_range(state, segment) == range(19, 40)


def test_rows_of_a_session_end_where_the_next_change_is_asked_for() -> None:
    state = fold_all(small_session())
    first, second = (segment_window(state, row) for row in state.segments[:2])
    assert counted(first) == list(range(8, 14))
    assert counted(second) == list(range(18, 25))
    assert not second.growing
    assert len(first.hosts["web1"]) == 7


def test_a_lost_host_is_told() -> None:
    found = window(1)
    points = tuple(point for point in found.hosts["web1"] if not 20 < point.t < 40)
    host = HostState(config=HostConfig(name="web1"), points=points)
    state = State(t=60.0, seconds=found.seconds, hosts={"web1": host})
    lost = window_between(state, 0.0, 60.0, PLAN).unread["web1"]
    # Read at 20 and at 40: what lies more than 5.5 s from both.
    assert lost == 8


def test_nothing_makes_an_empty_window() -> None:
    found = window_between(State(), 0.0, 60.0, PLAN)
    assert found.seconds == ()
    assert block_sample(found).size == 0
    assert block_sample(found).overall == {}


def test_blocks_add_up_to_the_window() -> None:
    found = window(3, 62)
    sample = block_sample(found)
    assert sample.size == 12
    assert sample.seconds == 60
    assert sample.blocks["rate"].mean() * 60 == pytest.approx(sum(second.completed for second in found.seconds[:60]))
    assert sample.overall["rate"] == pytest.approx(sample.blocks["rate"].mean())
    assert sample.overall["web1.cpu.per_request"] == pytest.approx(2 * 0.4 / 1000, rel=0.05)


def test_a_block_with_too_few_seconds_is_none() -> None:
    found = window(3, 30)
    holes = tuple(second for second in found.seconds if second.second not in (6, 7, 12))
    sample = block_sample(msgspec.structs.replace(found, seconds=holes))
    assert sample.size == 5


def test_rows_taken_whole_are_the_rows() -> None:
    state = fold_all(small_session())
    values = run_values([segment_window(state, row) for row in state.segments])
    assert values["rate"] == pytest.approx([row.rate for row in state.segments])
    exact = [row.counts.latency.percentile(99) for row in state.segments]
    assert values["p99"] == pytest.approx(exact, rel=0.016)


@given(st.lists(st.integers(1_000, 10**10), min_size=20, max_size=300), st.sampled_from([50.0, 90.0, 99.0]))
def test_percentiles_of_coarse_buckets_are_near_the_exact_ones(values: list[int], percent: float) -> None:
    exact = Histogram.of(values)
    coarse = exact.coarse()
    assert (coarse.count, coarse.max_ns, coarse.total_ns) == (exact.count, exact.max_ns, exact.total_ns)
    found = float(LatencyBlocks.of([coarse]).percentiles(percent)[0])
    ordered = sorted(values)
    at = max(0, int(np.ceil(len(ordered) * percent / 100 - 1e-9)) - 1)
    assert found == pytest.approx(ordered[at] / 1e9, rel=0.017)


def test_coarse_histograms_add_up() -> None:
    one, other = Histogram.of([1_000_000, 2_000_000]), Histogram.of([1_000_500, 900])
    assert one.coarse() + other.coarse() == (one + other).coarse()
    assert Histogram.of([]).coarse().count == 0
