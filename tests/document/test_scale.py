"""Scales: ranges, round labels, linear and logarithmic axes; points that are left out."""

from cockpit.document.scale import Axis, apart, at_values, between, decades, from_zero, linear
from cockpit.document.svg import thinned


def test_axis_labels_scales_and_thinned_points() -> None:
    assert [value for value, _ in from_zero(1234).labels] == [0, 500, 1000, 1500]
    assert from_zero(0).high == 1
    labels = [label for _, label in decades(0.0008, 0.9, "{:g}".format).labels]
    assert labels == ["0.0001", "0.001", "0.01", "0.1", "1"]
    near = decades(0.046, 0.097, "{:g}".format)
    assert [label for _, label in near.labels] == ["0.02", "0.05", "0.1"]
    assert near.at(0.02) == near.at(0.0) == 0
    assert near.at(0.1) == near.at(7.0) == 1
    assert decades(0.5, 0.5, str).high > decades(0.5, 0.5, str).low
    points = [(float(x), 100.0 if x == 777 else 1.0) for x in range(10_000)]
    kept = thinned(points)
    assert len(kept) <= 600
    assert max(value for _, value in kept if value is not None) == 100.0
    assert thinned(points[:10]) == points[:10]


def test_axis_is_logarithmic_if_values_are_far_apart() -> None:
    assert not between(100.0, 900.0, str).log and between(1.0, 100.0, str).log
    levels = at_values([1.0, 8.0, 64.0], 0.05)
    assert levels.log and levels.low < 1 and levels.high > 64
    assert [label for _, label in levels.labels] == ["1", "8", "64"]
    assert not at_values([10.0, 20.0]).log
    assert [value for value, _ in linear(-3.0, 4.0).labels] == [-4, -2, 0, 2, 4]
    alone = linear(7.0, 7.0)
    assert alone.low < 7 < alone.high


def test_labels_keep_their_distance_and_the_first_ones_win() -> None:
    axis = Axis(0.0, 10.0)
    assert apart(axis, [(5.0, "a"), (5.5, "b"), (1.0, "c"), (11.0, "d")], 0.1) == ((1.0, "c"), (5.0, "a"))
