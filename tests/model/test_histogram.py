"""The histogram compared with the reference implementation, and merging with recording all values at once."""

import numpy as np
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from cockpit.model.histogram import EMPTY, Histogram, indices_of, lower_bound, upper_bound

latencies = st.lists(st.integers(min_value=0, max_value=1 << 42), max_size=200)


@given(latencies, latencies, latencies)
def test_merged_parts_equal_whole(first: list[int], second: list[int], third: list[int]) -> None:
    whole = Histogram.of(first + second + third)
    assert Histogram.merged(map(Histogram.of, (first, second, third))) == whole
    assert Histogram.of(first) + (Histogram.of(second) + Histogram.of(third)) == whole
    assert whole.count == len(first + second + third)


@given(latencies)
def test_wire_form_round_trip(values: list[int]) -> None:
    histogram = Histogram.of(values)
    assert Histogram.from_wire(histogram.to_wire()) == histogram


@given(st.integers(min_value=0, max_value=1 << 52))
def test_bucket_bounds_contain_value_within_three_digits(value: int) -> None:
    index = int(indices_of(np.array([value]))[0])
    assert lower_bound(index) <= value <= upper_bound(index)
    assert upper_bound(index) - lower_bound(index) <= max(0, value / 1000)


@given(st.lists(st.integers(min_value=0, max_value=1 << 42), min_size=1, max_size=300))
def test_percentiles_are_nearest_rank_within_three_digits(values: list[int]) -> None:
    histogram = Histogram.of(values)
    for percent in (1, 50, 75, 90, 99, 100):
        truth = sorted(values)[-(-len(values) * percent // 100) - 1]
        found = round(histogram.percentile(percent) * 1e9)
        assert truth <= found <= truth * 1.001 + 1, percent


@given(st.lists(st.integers(min_value=1, max_value=1 << 42), min_size=1, max_size=100))
def test_layout_matches_hdrhistogram(values: list[int]) -> None:
    theirs = HdrHistogram(1, 1 << 43, 3)
    for value in values:
        theirs.record_value(value)
    ours = Histogram.of(values)
    counted = {index: theirs.get_count_at_index(index) for index in ours.indices.tolist()}
    assert counted == dict(zip(ours.indices.tolist(), ours.counts.tolist(), strict=True))


def test_exact_moments_and_ranges() -> None:
    histogram = Histogram.of([1_000_000, 3_000_000, 26_000_001])
    assert histogram.mean == 0.010000000333333334
    assert histogram.max == 0.026000001
    assert histogram.min == 0.001
    assert histogram.between([0, 2_000_000, 10_000_000, 100_000_000]) == [1, 1, 1]
    assert Histogram.of([]) is EMPTY
    assert (EMPTY.percentile(99), EMPTY.mean, EMPTY.max) == (0.0, 0.0, 0.0)
    assert EMPTY + EMPTY == EMPTY
    assert EMPTY.between([0, 10]) == [0]
