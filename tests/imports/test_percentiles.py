"""Histograms from percentiles: each reported percentile is read back, what lies between two stays between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.imports.percentiles import histogram_of
from cockpit.model.histogram import EMPTY, Histogram

WRK = [(50.0, 0.0047), (75.0, 0.00726), (90.0, 0.01121), (99.0, 0.0247), (100.0, 0.13115)]


def test_reported_percentiles_are_read_back() -> None:
    found = histogram_of(WRK, 10_000, 0.00606)
    for percent, seconds in WRK:
        assert found.percentile(percent) == pytest.approx(seconds, rel=1e-3)
    assert found.count == 10_000 and found.max_ns == 131_150_000 and found.mean == pytest.approx(0.00606)
    found = histogram_of(WRK, 1000)
    assert found.percentile(1) == found.percentile(50) and found.min_ns == 4_700_000
    found = histogram_of(WRK, 3)
    assert found.count == 3 and found.max == pytest.approx(0.13115)
    assert histogram_of(WRK, 1).percentile(50) == pytest.approx(0.13115)
    assert histogram_of(WRK, 0) == histogram_of([], 5) == EMPTY


def test_ranks_between_two_percentiles_are_spread_evenly_on_a_logarithmic_scale() -> None:
    found = histogram_of([(0.0, 0.001), (50.0, 0.001), (100.0, 0.1)], 200)
    # Of 100 values between 1 ms and 100 ms each tenth is higher by a fifth of a decade.
    for step in range(1, 11):
        assert found.percentile(50 + 5 * step) == pytest.approx(0.001 * 10 ** (step / 5), rel=2e-3)
    assert found.between([0, 999_000, 1_001_000]) == [0, 100]


@pytest.mark.parametrize(
    ("points", "mean", "words"),
    [
        ([(50.0, 0.2), (90.0, 0.1)], None, "p90 is less than the percentile below it"),
        ([(50.0, -1.0)], None, "p50 of -1 s is out of range"),
        ([(101.0, 1.0)], None, "p101 of 1 s is out of range"),
        ([(50.0, 1e7)], None, "is out of range"),
        ([(50.0, float("nan"))], None, "is out of range"),
        ([(50.0, 0.1), (100.0, 0.2)], 0.3, "the mean latency is above the maximum"),
        ([(50.0, 0.1), (100.0, 0.2)], float("nan"), "the mean latency is above the maximum"),
        ([(50.0, 1e6)], None, "add up to decades"),
    ],
)
def test_contradictions_are_refused(points: list[tuple[float, float]], mean: float | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        histogram_of(points, 1 << 40, mean)


@given(st.lists(st.integers(1, 2**45), min_size=2, max_size=400), st.integers(1, 30))
def test_any_values_summed_up_as_percentiles_keep_them(values: list[int], number: int) -> None:
    """A percentile between two reported ones lies between their values; counts and maximum are exact."""
    exact = Histogram.of(values)
    percents = sorted({0.0, 100.0, *(100.0 * step / number for step in range(1, number))})
    points = [(percent, exact.percentile(percent)) for percent in percents[1:]]
    found = histogram_of([(0.0, exact.min), *points], len(values), exact.mean)
    assert found.count == len(values) and found.max_ns == exact.max_ns and found.min_ns == exact.min_ns
    assert int(found.counts.sum()) == len(values) and (found.counts > 0).all()
    width = 2e-3
    for (_, low), (percent, high) in zip([(0.0, exact.min), *points], points, strict=False):
        # Neighbours may share a rank; the value is then that of the higher one.
        assert low * (1 - width) <= found.percentile(percent) <= exact.max * (1 + width)
        assert found.percentile(percent) >= high * (1 - width)
    assert Histogram.from_wire(found.to_wire()) == found
