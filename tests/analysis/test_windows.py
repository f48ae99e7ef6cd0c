"""Windows of a session: counted seconds, and excluded seconds by flaw."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.analysis.blocks import LatencyBlocks, block_sample, run_values
from cockpit.analysis.windows import (
    DiscardReason,
    Window,
    counted_range,
    discarded_seconds,
    segment_window,
    window_between,
)
from cockpit.model.fold.fold import fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.host.samples import HostConfig
from cockpit.model.host.state import HostState
from cockpit.model.load.seconds import LoadSecond
from cockpit.model.state import ActionRun, Change, Segment, State
from tests.analysis.synthetic import PLAN, window
from tests.session.events import small_session


def seconds(first: int, last: int, **changed: object) -> tuple[LoadSecond, ...]:
    return tuple(
        replace(
            LoadSecond(second=at, start=float(at), end=float(at + 1), completed=100, latency=Histogram.of([1_000_000])),
            **changed,
        )
        for at in range(first, last)
    )


def counted(found: Window) -> list[int]:
    return [second.second for second in found.seconds]


def test_window_has_whole_seconds_after_guard() -> None:
    state = State(t=60.0, closed_seconds=seconds(0, 60))
    found = window_between(state, 10.4, 30.5, PLAN)
    # The first whole second is 11, the guard takes three, and second 30 is partial.
    assert counted(found) == list(range(14, 30))
    assert found.guarded == 3
    assert discarded_seconds([found]) == {DiscardReason.GUARD: 3}
    odd = (*seconds(0, 20), *seconds(20, 23, saturated=True), *seconds(23, 24, end=23.4), *seconds(24, 40, queued=3))
    found = window_between(State(t=40.0, closed_seconds=odd), 0.0, 40.0, PLAN)
    assert counted(found) == [*range(3, 20), *range(24, 40)]
    assert found.flawed == {DiscardReason.SATURATED: 3, DiscardReason.PARTIAL: 1, DiscardReason.QUEUED: 16}
    assert discarded_seconds([found]) == {DiscardReason.GUARD: 3, DiscardReason.PARTIAL: 1, DiscardReason.SATURATED: 3}


def test_changes_and_actions_are_excluded() -> None:
    # Seconds from the request until the guard after activation or rollback are excluded.
    change = Change(letter="A", host="web1", settings=(), begun=20.5, ended=23.2, outcome="rolled back")
    found = window_between(State(t=40.0, closed_seconds=seconds(0, 40), changes=(change,)), 0.0, 40.0, PLAN)
    assert counted(found) == [*range(3, 20), *range(27, 40)]
    assert found.flawed == {DiscardReason.CHANGING: 7}
    # The seconds of a running action and of the rollback of an active change are excluded.
    action = ActionRun(number=1, action="restart", host="web1", times=3, begun=10.5, ended=12.0, done=3)
    stages = {"active": 1.0, "undoing": 30.2}
    change = Change(letter="A", host="web1", settings=(), begun=0.5, stages=stages, ended=31.0, outcome="rolled back")
    state = State(t=40.0, closed_seconds=seconds(0, 40), changes=(change,), actions=(action,))
    found = window_between(state, 1.0, 40.0, PLAN)
    assert counted(found) == [*range(4, 10), *range(15, 30), *range(34, 40)]
    assert discarded_seconds([found, found]) == {DiscardReason.GUARD: 6, DiscardReason.CHANGING: 18}
    action = ActionRun(number=1, action="restart", host="web1", times=1, begun=7.5, ended=15.5, done=1)
    state = State(t=40.0, closed_seconds=seconds(0, 40), actions=(action,))
    found = window_between(state, 10.0, 40.0, PLAN)
    assert counted(found) == list(range(19, 40))
    assert found.flawed == {DiscardReason.CHANGING: 9}
    segment = Segment(number=1, run=1, plan=PLAN, start=10.0, last=40.0)
    assert counted_range(state, segment) == range(19, 40)


def test_segments_end_with_change_and_lost_host_is_unread() -> None:
    state = fold_all(small_session())
    first, second = (segment_window(state, segment) for segment in state.segments[:2])
    assert counted(first) == list(range(8, 14))
    assert counted(second) == list(range(18, 25))
    assert not second.growing
    assert len(first.hosts["web1"]) == 7
    values = run_values([segment_window(state, segment) for segment in state.segments])
    assert values["rate"] == pytest.approx([segment.rate for segment in state.segments])
    exact = [segment.counts.latency.percentile(99) for segment in state.segments]
    assert values["p99"] == pytest.approx(exact, rel=0.016)
    found = window(1)
    points = tuple(point for point in found.hosts["web1"] if not 20 < point.t < 40)
    host = HostState(config=HostConfig(name="web1"), points=points)
    state = State(t=60.0, closed_seconds=found.seconds, hosts={"web1": host})
    lost = window_between(state, 0.0, 60.0, PLAN).unread["web1"]
    # The samples are at 20 and 40 s; seconds more than 5.5 s from both are unread.
    assert lost == 8


def test_blocks_and_coarse_histograms_add_up() -> None:
    found = window(3, 62)
    sample = block_sample(found)
    assert sample.size == 12
    assert sample.blocks["rate"].mean() * 60 == pytest.approx(sum(second.completed for second in found.seconds[:60]))
    assert sample.overall["rate"] == pytest.approx(sample.blocks["rate"].mean())
    assert sample.overall["web1.cpu.per_request"] == pytest.approx(2 * 0.4 / 1000, rel=0.05)
    found = window(3, 30)
    holes = tuple(second for second in found.seconds if second.second not in (6, 7, 12))
    sample = block_sample(replace(found, seconds=holes))
    assert sample.size == 5
    found = window_between(State(), 0.0, 60.0, PLAN)
    assert found.seconds == ()
    assert block_sample(found).size == 0
    assert block_sample(found).overall == {}
    first, second = Histogram.of([1_000_000, 2_000_000]), Histogram.of([1_000_500, 900])
    assert first.coarse() + second.coarse() == (first + second).coarse()
    assert Histogram.of([]).coarse().count == 0


@given(st.lists(st.integers(1_000, 10**10), min_size=20, max_size=300), st.sampled_from([50.0, 90.0, 99.0]))
def test_coarse_percentiles_are_within_1_7_percent(values: list[int], percent: float) -> None:
    exact = Histogram.of(values)
    coarse = exact.coarse()
    assert (coarse.count, coarse.max_ns, coarse.total_ns) == (exact.count, exact.max_ns, exact.total_ns)
    found = float(LatencyBlocks.of([coarse]).percentiles(percent)[0])
    ordered = sorted(values)
    at = max(0, int(np.ceil(len(ordered) * percent / 100 - 1e-9)) - 1)
    assert found == pytest.approx(ordered[at] / 1e9, rel=0.017)
