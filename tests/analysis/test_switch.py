"""One switch under load: when it is called, and what keeps it from being called."""

import math

import numpy as np
import pytest

from cockpit.analysis import switch
from tests.statistics.noise import NOISES
from tests.statistics.simulate import Watched, watched


def blocks(number: int, seed: int = 1, level: float = 0.0) -> switch.Floats:
    return np.random.default_rng(seed).normal(level, 0.015, number)


def share_called(found: list[Watched]) -> float:
    return sum(math.isfinite(one.called) for one in found) / len(found)


def test_too_short_a_side_has_no_interval() -> None:
    assert math.isinf(switch.effect(blocks(4), blocks(40, 2)).high)
    assert math.isinf(switch.effect(blocks(40), blocks(4, 2)).high)
    assert math.isfinite(switch.effect(blocks(5), blocks(5, 2)).high)


def test_an_effect_is_called_at_the_third_look_that_shows_it() -> None:
    before, after = blocks(12), blocks(20, 2, 0.3)
    calls = [switch.effect(before, after[:number]).low > 0 for number in range(5, 20)]
    assert calls == [False, False, *[True] * 13]


def test_what_was_called_stays_through_a_disturbance() -> None:
    before, calm = blocks(12), blocks(10, 2, 0.3)
    disturbed = np.concatenate((calm, [-1.0], blocks(3, 3, 0.3)))
    called, later = switch.effect(before, calm), switch.effect(before, disturbed)
    assert switch.single_test(before, disturbed).low < 0
    assert 0 < later.low <= later.estimate < called.estimate
    assert later.high <= called.high


def test_an_effect_that_is_over_is_called_no_longer() -> None:
    before, after = blocks(12), np.concatenate((blocks(10, 2, 0.3), blocks(30, 3, -0.3)))
    assert switch.effect(before, after[:10]).low > 0
    assert switch.effect(before, after).low < 0 < switch.effect(before, after).high
    assert switch.effect(before, np.concatenate((after, blocks(600, 4, -0.3)))).high < 0


def test_after_five_minutes_only_whole_minutes_are_tested() -> None:
    before, after = blocks(12), blocks(90, 2, 0.1)
    assert switch.effect(before, after[:60]) != switch.effect(before, after[:59])
    assert switch.effect(before, after[:83]) == switch.effect(before, after[:72])


def test_the_trend_before_keeps_an_effect_from_being_called() -> None:
    rising = np.linspace(0, 0.1, 12) + blocks(12)
    after = np.linspace(0.1, 0.25, 18) + blocks(18, 2)
    assert after.mean() - rising.mean() > 0.1
    assert switch.effect(rising, after).low <= 0


def test_blocks_needed_shrink_with_the_effect_and_may_be_out_of_reach() -> None:
    before, after = blocks(12), blocks(8, 2)
    few, many = (switch.blocks_needed(before, after, wanted) for wanted in (0.3, 0.02))
    assert few is not None and (many is None or few < many)
    assert switch.blocks_needed(before, after, 0.001) is None


def test_a_slope_that_was_noise_before_the_switch_does_not_grow_with_the_time_after_it() -> None:
    before = np.array([-0.02, -0.01, 0.0, 0.01, 0.02])
    widths = []
    for number in (12, 24, 36):
        interval = switch.effect(before, blocks(number, 2, 0.2))
        assert interval.low > 0.1
        widths.append(interval.high - interval.low)
    assert widths == sorted(widths, reverse=True)


def test_five_times_the_noise_widens_the_bound_by_about_five() -> None:
    little, much = (switch.bound(switch.Variance(deviation**2, 12), 5, 17) for deviation in (0.05, 0.25))
    assert 4 < much / little < 5.5


def test_an_open_verdict_needs_more_blocks_until_it_is_found() -> None:
    before, after = blocks(12), blocks(60, 2, 0.03)
    found = next(number for number in range(7, 61) if switch.effect(before, after[:number]).low > 0)
    needed = [switch.blocks_needed(before, after[:number], 0.03) for number in range(7, found)]
    assert len(needed) > 3
    assert all(total is None or total > number for number, total in enumerate(needed, 7))
    assert needed[-1] is not None and abs(needed[-1] - found) <= 3


def test_watched_for_three_minutes_nothing_is_called() -> None:
    """A reduced form of `make statistics`, with a fixed seed."""
    wrong = {
        name: share_called(watched(noise, repetitions=15, before=60, after=180, effect=0.0, seed=8))
        for name, noise in NOISES.items()
    }
    assert np.mean(list(wrong.values())) <= 0.05, wrong
    assert max(wrong.values()) <= 0.2, wrong


@pytest.mark.parametrize("before", [25, 60])
@pytest.mark.parametrize("name", ["white", "AR(1) 0.6", "1/f", "heavy tails", "drift 2 %/min"])
def test_ten_percent_are_found_within_three_minutes(name: str, before: int) -> None:
    found = watched(NOISES[name], repetitions=15, before=before, after=180, effect=math.log(1.1), seed=9)
    assert share_called(found) >= 0.8
    assert np.mean([one.covered for one in found]) >= 0.8


def leaning(noise: str, after: int, effect: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return what a first impression leans to (-1, 0, 1) with so many blocks after the switch, per repetition."""
    values = NOISES[noise](np.random.default_rng(3), (100, 60 + 5 * after)).reshape(100, -1, 5).mean(axis=2)
    found = [switch.first_impression(row[:12], row[12:] + effect) for row in values]
    return np.array([(one.low > 0) - (one.high < 0) for one in found])


@pytest.mark.parametrize("after", [1, 2, 4])
@pytest.mark.parametrize("name", sorted(set(NOISES) - {"slow wave"}))
def test_a_first_impression_is_seldom_wrong(name: str, after: int) -> None:
    assert (leaning(name, after, 0.0) != 0).mean() <= 0.2
    right = leaning(name, after, math.log(1.3)) == 1
    assert right.mean() >= (0.8 if name != "cron" else 0.3)


def test_a_first_impression_of_noise_without_memory_is_rarely_wrong() -> None:
    assert max((leaning("white", after, 0.0) != 0).mean() for after in (1, 2, 4)) <= 0.05
