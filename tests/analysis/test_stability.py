"""The trend of a window and the stability of rates."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.analysis.stability import is_stable, trend


def test_trend() -> None:
    generator = np.random.default_rng(2)
    rising = np.linspace(100, 130, 12) + generator.normal(0, 1, 12)
    assert trend(rising) == pytest.approx(0.26, abs=0.04)
    assert trend(rising[::-1].copy()) == pytest.approx(-0.26, abs=0.04)
    assert trend(100 + generator.normal(0, 1, 12)) == 0
    # The rise is significant, but too small to matter.
    assert trend(np.linspace(100, 102, 12)) == 0
    assert trend(np.array([])) == 0
    hours = np.linspace(1.0, 1.2, 4000) * np.exp(np.random.default_rng(1).normal(0, 0.1, 4000))
    tracemalloc.start()
    try:
        assert trend(hours) == pytest.approx(0.18, abs=0.03)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("rates", "stable"),
    [
        ([525.7, 640.1, 675.0, 683.5, 681.0, 684.2], True),
        ([170.0, 681.0], False),
        ([170.0, 600.0, 681.0], False),
        ([670.0, 690.0, 710.0], False),
        ([690.0, 681.0, 684.0], True),
        ([0.0, 0.0, 0.0], True),
        ([], False),
    ],
)
def test_stable_rates(rates: list[float], stable: bool) -> None:
    assert is_stable(rates) is stable


def test_stability_requires_two_rates() -> None:
    with pytest.raises(ValueError, match="at least two"):
        is_stable([1.0], k=1)
    assert is_stable([33.0, 33.5], k=2)
    assert not is_stable([33.0, 40.0], k=2)


@given(st.lists(st.floats(1, 1e6), min_size=3, max_size=8), st.floats(0.001, 0.5), st.floats(0.5, 100))
def test_stability_is_independent_of_unit(rates: list[float], chance: float, unit: float) -> None:
    stable = is_stable(rates, chance=chance)
    # Powers of two avoid rounding.
    assert is_stable([rate * 2.0 ** int(unit % 8) for rate in rates], chance=chance) is stable
    if stable:
        assert is_stable(rates, chance=2 * chance)
