"""Effect of one change under load: when it is significant, and when it is not."""

import math

import numpy as np
import pytest

from cockpit.analysis import cache
from cockpit.analysis.cache import cached_by_value
from cockpit.analysis.switch import switch
from tests.statistics.noise import NOISES, STALLS
from tests.statistics.simulate import Watched, stalls_ended, watched


def blocks(number: int, seed: int = 1, level: float = 0.0) -> switch.Floats:
    return np.random.default_rng(seed).normal(level, 0.015, number)


def significant_share(found: list[Watched]) -> float:
    return sum(math.isfinite(each.called) for each in found) / len(found)


def test_short_and_silent_sides_have_no_interval() -> None:
    assert math.isinf(switch.effect(blocks(4), blocks(40, 2)).high)
    assert math.isinf(switch.effect(blocks(40), blocks(4, 2)).high)
    assert math.isfinite(switch.effect(blocks(5), blocks(5, 2)).high)
    before, after = np.exp(blocks(8)), np.concatenate((np.zeros(7), np.exp(blocks(20, 2))))
    assert math.isinf(switch.effect(before, after[:7], scale=switch.ratio_scale).low)
    assert switch.effect(before, after, scale=switch.ratio_scale).low < 0


def test_effect_is_significant_at_third_observation_and_survives_disturbance() -> None:
    before, after = blocks(12), blocks(20, 2, 0.3)
    significant = [switch.effect(before, after[:number]).low > 0 for number in range(5, 20)]
    assert significant == [False, False, *[True] * 13]
    before, calm = blocks(12), blocks(10, 2, 0.3)
    disturbed = np.concatenate((calm, [-1.0], blocks(3, 3, 0.3)))
    early, later = switch.effect(before, calm), switch.effect(before, disturbed)
    assert switch.single_test(before, disturbed).low < 0
    assert 0 < later.low <= later.estimate < early.estimate
    assert later.high <= early.high
    before, after = blocks(12), np.concatenate((blocks(10, 2, 0.3), blocks(30, 3, -0.3)))
    assert switch.effect(before, after[:10]).low > 0
    assert switch.effect(before, after).low < 0 < switch.effect(before, after).high
    assert switch.effect(before, np.concatenate((after, blocks(600, 4, -0.3)))).high < 0


def test_after_five_minutes_whole_minutes_are_tested() -> None:
    before, after = blocks(12), blocks(90, 2, 0.1)
    assert switch.effect(before, after[:60]) != switch.effect(before, after[:59])
    assert switch.effect(before, after[:83]) == switch.effect(before, after[:72])


def test_trend_before_prevents_significance_but_noise_does_not_widen_interval() -> None:
    rising = np.linspace(0, 0.1, 12) + blocks(12)
    after = np.linspace(0.1, 0.25, 18) + blocks(18, 2)
    assert after.mean() - rising.mean() > 0.1
    assert switch.effect(rising, after).low <= 0
    before = np.array([-0.02, -0.01, 0.0, 0.01, 0.02])
    widths = []
    for number in (12, 24, 36):
        interval = switch.effect(before, blocks(number, 2, 0.2))
        assert interval.low > 0.1
        widths.append(interval.high - interval.low)
    assert widths == sorted(widths, reverse=True)
    uneven, calm = np.array([0.0, 0.4] * 4), blocks(60, 2, 1.0)
    interval = switch.single_test(uneven, calm)
    assert interval.high - interval.low > 2 * 2.5 * uneven.std() / math.sqrt(8)


def test_blocks_needed_shrink_with_effect_and_predict_significance() -> None:
    before, after = blocks(12), blocks(8, 2)
    few, many = (switch.blocks_needed(before, after, effect) for effect in (0.3, 0.02))
    assert few is not None and (many is None or few < many)
    assert switch.blocks_needed(before, after, 0.001) is None
    before, after = blocks(12), blocks(60, 2, 0.03)
    found = next(number for number in range(7, 61) if switch.effect(before, after[:number]).low > 0)
    needed = [switch.blocks_needed(before, after[:number], 0.03) for number in range(7, found)]
    assert len(needed) > 3
    assert all(total is None or total > number for number, total in enumerate(needed, 7))
    assert needed[-1] is not None and abs(needed[-1] - found) <= 3
    little, much = (switch.bound(switch.Variance(deviation**2, 12), 5, 17) for deviation in (0.05, 0.25))
    assert 4 < much / little < 5.5


# Short forms of `make statistics` with fixed seeds, which have less noise in them than its own sizes.
def test_stalls_are_no_effect_and_their_end_is_found() -> None:
    for before in (25, 60):
        for stalls in STALLS.values():
            assert significant_share(watched(stalls, 6, before=before, after=180, effect=0.0, seed=9)) == 0
    found = stalls_ended(repetitions=8, before=40, faster=2.2, seed=10)
    assert np.mean([each.called <= 90 for each in found]) >= 0.8
    assert np.mean([each.covered for each in found]) >= 0.9


def test_noise_is_no_effect_and_ten_percent_is_found() -> None:
    found = [each for noise in NOISES.values() for each in watched(noise, 5, before=60, after=180, effect=0.0, seed=8)]
    assert significant_share(found) <= 0.03
    for name in ("white", "AR(1) 0.6", "1/f", "heavy tails", "drift 2%/min"):
        for before in (25, 60):
            found = watched(NOISES[name], 4, before=before, after=180, effect=math.log(1.1), seed=9)
            assert significant_share(found) >= 0.75, name
            assert all(each.covered for each in found), name


def first_signs(noise: str, after: int, effect: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the sign of the first impression (-1, 0, 1) after `after` blocks, per repetition."""
    values = NOISES[noise](np.random.default_rng(3), (50, 60 + 5 * after)).reshape(50, -1, 5).mean(axis=2)
    found = [switch.tentative_effect(row[:12], row[12:] + effect) for row in values]
    return np.array([(interval.low > 0) - (interval.high < 0) for interval in found])


def test_first_impression_is_rarely_wrong() -> None:
    for after in (1, 2, 4):
        assert (first_signs("white", after, 0.0) != 0).mean() <= 0.05
        for name in sorted(set(NOISES) - {"slow wave"}):
            assert (first_signs(name, after, 0.0) != 0).mean() <= 0.2, (name, after)
            assert (first_signs(name, after, math.log(1.3)) == 1).mean() >= 0.9, (name, after)


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
