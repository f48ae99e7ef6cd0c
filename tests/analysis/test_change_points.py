"""Change points: steps are found where they are, noise has none, and divergences equal those of their definition."""

import math

import numpy as np
import pytest

from cockpit.analysis import change_points as module
from cockpit.analysis.change_points import LEAST, change_points


def noisy(random: np.random.Generator, *levels: float, length: int = 12, spread: float = 0.02) -> list[float]:
    """Return values around each level in turn."""
    return [float(level * math.exp(random.normal(0, spread))) for level in levels for _ in range(length)]


def test_steps_are_found_where_they_are() -> None:
    for seed in range(5):
        values = noisy(np.random.default_rng(seed), 1000, 1080, 900)
        places = [change.at for change in change_points(values)]
        assert len(places) == 2 and all(abs(at - true) <= 1 for at, true in zip(places, (12, 24), strict=True)), places
    changes = change_points(values)
    assert changes == change_points(values) and [change.before for change in changes] != changes[0].after
    assert changes[0].before == pytest.approx(1000, rel=0.02) and changes[1].after == pytest.approx(900, rel=0.02)


def test_noise_and_short_or_constant_series_have_no_change_point() -> None:
    random = np.random.default_rng(3)
    claimed = sum(bool(change_points(noisy(random, 100, length=20, spread=0.1))) for _ in range(50))
    assert claimed <= 3
    assert not change_points([]) and not change_points([5.0] * 40) and not change_points([1.0] * 3 + [9.0] * 3)
    assert change_points([0.0] * 15 + [3.0, 4.0, 5.0] * 5)[0].at == 15, "zeros have no logarithm"


def test_best_division_is_that_of_the_definition() -> None:
    values = np.random.default_rng(4).normal(size=17)
    divergences = {}
    for at in range(LEAST, len(values) - LEAST + 1):
        left, right = values[:at], values[at:]
        between = np.mean([abs(one - two) for one in left for two in right])
        within = [np.mean([abs(a - b) for i, a in enumerate(side) for b in side[i + 1 :]]) for side in (left, right)]
        divergences[at] = (2 * between - sum(within)) * len(left) * len(right) / len(values)
    at, divergence = module._best_division(np.abs(values[:, None] - values[None, :]))
    assert at == max(divergences, key=lambda place: divergences[place]) and divergence == pytest.approx(divergences[at])
