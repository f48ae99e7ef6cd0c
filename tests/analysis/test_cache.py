"""Results of pure functions of arrays are computed once per value."""

from __future__ import annotations

import numpy as np
import pytest

from cockpit.analysis import cache, switch
from cockpit.analysis.cache import cached_by_value


def test_equal_arrays_are_computed_once_until_the_cache_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    @cached_by_value
    def total(values: switch.Floats, factor: float = 1.0) -> float:
        calls.append(factor)
        return float(values.sum()) * factor

    assert total(np.arange(3.0)) == total(np.arange(6.0)[:3]) == 3.0
    assert total(np.arange(3.0), factor=2.0) == 6.0
    assert total(np.arange(4.0)) == 6.0
    assert calls == [1.0, 2.0, 1.0]
    monkeypatch.setattr(cache, "_SIZE", 2)
    calls.clear()
    assert [total(np.ones(1), factor) for factor in (1.0, 2.0, 3.0, 1.0)] == [1.0, 2.0, 3.0, 1.0]
    assert calls == [1.0, 2.0, 3.0, 1.0]


def test_a_growing_switch_has_the_result_of_a_new_one() -> None:
    random = np.random.default_rng(7)
    before, after = np.exp(random.normal(0, 0.05, 12)), np.exp(random.normal(0.1, 0.05, 30))
    growing = [switch.effect(before, after[:number], scale=switch.ratio_scale) for number in range(5, 31)]
    uncached = switch.single_test.__wrapped__  # type: ignore[attr-defined]
    tests = switch.over_time(
        lambda number: uncached(before, after[:number], switch.ALPHA, 0, switch.ratio_scale), len(after)
    )
    assert [found for _, found in tests] == growing
