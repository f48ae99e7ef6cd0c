"""Seconds taken together: nothing is lost, nothing counted twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.analysis.time_ranges import TimeRanges, of_seconds
from cockpit.model.histogram import Histogram
from cockpit.model.load_seconds import LoadSecond
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


# Runs of seconds with stretches without load between them.
LOADS = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 70), st.integers(0, 12)), min_size=1, max_size=4).map(
    lambda runs: [
        second(3 * sum(gap for gap, _, _ in runs[:run]) + 200 * run + at, (completed * at) % 31, at % 5 == 4)
        for run, (_, length, completed) in enumerate(runs)
        for at in range(length)
    ]
)


@given(LOADS, st.sampled_from([scale for scale in SCALES if scale >= 1]))
def test_cells_of_any_scale_add_up_to_the_seconds(seconds: list[LoadSecond], scale: float) -> None:
    length, last = int(scale), seconds[-1].second
    kept, held = TimeRanges(), series(seconds)
    whole = Histogram.merged(one.latency for one in seconds)
    for _ in range(2):
        cells = [kept.of(held, start, length, last + 1) for start in range(0, last + 1, length)]
        found = [cell for cell in cells if cell]
        for name in ("completed", "failed", "saturated"):
            assert sum(getattr(cell, name) for cell in found) == sum(getattr(one, name) for one in seconds)
        assert sum(cell.seconds for cell in found) == len(seconds)
        assert sum(cell.failing for cell in found) == sum(one.failed > 0 for one in seconds)
        assert Histogram.merged(cell.latency for cell in found) == whole
        assert sum(cell.covered for cell in found) == pytest.approx(len(seconds))
        for start, cell in zip(range(0, last + 1, length), cells, strict=True):
            inside = [one for one in seconds if start <= one.second < start + length]
            assert (cell is None) == (not inside)
            if cell:
                assert cell.least == min(one.rate for one in inside)
                assert cell.most == max(one.rate for one in inside)
                assert cell.least <= cell.rate <= cell.most or cell.rate == pytest.approx(cell.least)


def test_a_second_covered_in_part_counts_but_sets_no_extremes() -> None:
    found = of_seconds([second(1, 100), second(2, 100), second(3, 1, end=0.2)])
    assert found is not None
    assert (found.completed, found.least, found.most) == (201, 100, 100)
    assert found.rate == pytest.approx(201 / 2.2)
    alone = of_seconds([second(3, 1, end=0.2)])
    assert alone is not None and alone.least == pytest.approx(5)


def test_a_long_session_is_added_up_bit_by_bit() -> None:
    seconds = series([second(at, at % 31 + 1) for at in range(2000)])
    # Fewer are kept than there are short ones: a long one needs no short ones any more.
    whole, kept = TimeRanges(), TimeRanges(most=250, kept=80)
    starts = range(0, 2000, 300)
    expected = [whole.of(seconds, start, 300, 2000) for start in starts]
    assert not whole.behind
    rounds = 0
    kept.behind = True
    while kept.behind and rounds < 50:
        kept.again()
        found = [kept.of(seconds, start, 300, 2000) for start in starts]
        rounds += 1
        for one, other in zip(found, expected, strict=True):
            assert one is None or one == other, "whole or not at all"
    assert 8 <= rounds < 50
    assert found == expected


def test_what_may_still_change_is_told_anew() -> None:
    kept = TimeRanges()
    seconds = [second(at, 10) for at in range(12)]
    assert kept.of(seconds, 10, 2, 12).completed == 20  # type: ignore[union-attr]
    assert kept.of(seconds, 10, 2, 11).completed == 10, "without one that has only just begun"  # type: ignore[union-attr]
    seconds[11] = second(11, 30)
    assert kept.of(seconds, 10, 2, 12).completed == 40  # type: ignore[union-attr]
    later = [*seconds, *(second(at, 10) for at in range(12, 20))]
    assert kept.of(later, 10, 2, 20) is kept.of(later, 10, 2, 20)
    assert kept.of(later, 30, 2, 20) is None
