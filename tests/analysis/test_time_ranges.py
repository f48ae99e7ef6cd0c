"""Aggregation of seconds: none is lost, none is counted twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.analysis.time_ranges import TimeRanges, of_seconds
from cockpit.model.histogram import Histogram
from cockpit.model.load.seconds import LoadSecond
from cockpit.model.series import series
from cockpit.tui.charts.window import SCALES


def second(at: int, completed: int, failed: int = 0, end: float = 1.0) -> LoadSecond:
    return LoadSecond(
        second=at,
        start=float(at),
        end=at + end,
        completed=completed,
        failed=failed,
        saturated=completed % 7 == 3,
        latency=Histogram.of([(at % 9 + 1) * 1_000_000] * completed),
    )


# Runs of seconds with gaps without load between them.
LOADS = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 70), st.integers(0, 12)), min_size=1, max_size=4).map(
    lambda runs: [
        second(3 * sum(gap for gap, _, _ in runs[:run]) + 200 * run + at, (completed * at) % 31, at % 5 == 4)
        for run, (_, length, completed) in enumerate(runs)
        for at in range(length)
    ]
)


@given(LOADS, st.sampled_from([scale for scale in SCALES if scale >= 1]))
def test_cells_of_any_scale_add_up_to_seconds(seconds: list[LoadSecond], scale: float) -> None:
    length, last = int(scale), seconds[-1].second
    cached, stored = TimeRanges(), series(seconds)
    whole = Histogram.merged(second.latency for second in seconds)
    for _ in range(2):
        cells = [cached.of(stored, start, length, last + 1) for start in range(0, last + 1, length)]
        found = [cell for cell in cells if cell]
        for name in ("completed", "failed", "saturated"):
            assert sum(getattr(cell, name) for cell in found) == sum(getattr(second, name) for second in seconds)
        assert sum(cell.seconds for cell in found) == len(seconds)
        assert sum(cell.failing for cell in found) == sum(second.failed > 0 for second in seconds)
        assert Histogram.merged(cell.latency for cell in found) == whole
        assert sum(cell.covered for cell in found) == pytest.approx(len(seconds))
        for start, cell in zip(range(0, last + 1, length), cells, strict=True):
            inside = [second for second in seconds if start <= second.second < start + length]
            assert (cell is None) == (not inside)
            if cell:
                assert cell.least == min(second.rate for second in inside)
                assert cell.most == max(second.rate for second in inside)
                assert cell.least <= cell.rate <= cell.most or cell.rate == pytest.approx(cell.least)


def test_partial_second_sets_no_extremes_and_unfinished_range_is_recomputed() -> None:
    found = of_seconds([second(1, 100), second(2, 100), second(3, 1, end=0.2)])
    assert (found.completed, found.least, found.most) == (201, 100, 100)
    assert found.rate == pytest.approx(201 / 2.2)
    alone = of_seconds([second(3, 1, end=0.2)])
    assert alone is not None and alone.least == pytest.approx(5)
    kept = TimeRanges()
    seconds = [second(at, 10) for at in range(12)]
    assert kept.of(seconds, 10, 2, 12).completed == 20  # type: ignore[union-attr]
    assert kept.of(seconds, 10, 2, 11).completed == 10, "without the second that has just started"  # type: ignore[union-attr]
    seconds[11] = second(11, 30)
    assert kept.of(seconds, 10, 2, 12).completed == 40  # type: ignore[union-attr]
    later = [*seconds, *(second(at, 10) for at in range(12, 20))]
    assert kept.of(later, 10, 2, 20) is kept.of(later, 10, 2, 20)
    assert kept.of(later, 30, 2, 20) is None


def test_long_session_is_aggregated_in_steps() -> None:
    seconds = series([second(at, at % 31 + 1) for at in range(2000)])
    # The cache is smaller than the number of short ranges: a complete long range needs no short ranges.
    unlimited, limited = TimeRanges(), TimeRanges(most=250, kept=80)
    starts = range(0, 2000, 300)
    expected = [unlimited.of(seconds, start, 300, 2000) for start in starts]
    assert not unlimited.behind
    rounds = 0
    limited.behind = True
    while limited.behind and rounds < 50:
        limited.reset_budget()
        found = [limited.of(seconds, start, 300, 2000) for start in starts]
        rounds += 1
        for actual, complete in zip(found, expected, strict=True):
            assert actual is None or actual == complete, "only complete ranges are returned"
    assert 8 <= rounds < 50
    assert found == expected
