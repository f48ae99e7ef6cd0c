"""Verdicts on windows whose truth is known: how often they are wrong, what they find, what their intervals hold.

Seeds are fixed, so that the rates are the same each time; they are printed (`pytest -s`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import msgspec
import numpy as np
import pytest

from cockpit.analysis.verdict import Verdict, judge, judge_repeats
from cockpit.analysis.windows import Window
from tests.analysis.synthetic import OPEN, PLAN, window

# As seconds of a real server resemble each other, and half as much again.
CALM, LIKELY, HARD = 0.0, 0.3, 0.6


@lru_cache(maxsize=1000)
def drawn(seed: int, seconds: int, phi: float, drift: float = 0.0) -> Window:
    return window(seed, seconds, phi=phi, drift=drift)


def faster(of: Window, factor: float) -> Window:
    """The window with so much more done each second."""
    seconds = tuple(
        msgspec.structs.replace(second, completed=round(second.completed * factor)) for second in of.seconds
    )
    return msgspec.structs.replace(of, seconds=seconds)


def pairs(number: int, phi: float, seconds: int = 60, drift: float = 0.0) -> Iterator[tuple[Window, Window]]:
    """Windows of the same truth, each used once."""
    return ((drawn(2 * at, seconds, phi, drift), drawn(2 * at + 1, seconds, phi, drift)) for at in range(number))


def wrong(verdict: Verdict) -> bool:
    """Whether any figure of it is called different."""
    return any(one.word in ("better", "worse") for one in verdict.effects)


@pytest.mark.parametrize(("phi", "number"), [(CALM, 100), (HARD, 300)])
def test_no_difference_is_called_one_in_at_most_one_of_twenty(phi: float, number: int) -> None:
    found = [judge(before, after) for before, after in pairs(number, phi)]
    rate = sum(map(wrong, found)) / number
    told = Counter(verdict.word for verdict in found)
    print(f"\nno difference, resemblance {phi}: {100 * rate:.1f} % wrong of {number}; {dict(told)}")
    assert rate <= 0.05
    assert told["no detectable difference"] >= 0.9 * number


def test_a_little_drift_is_no_difference() -> None:
    """A rate that rises by 2 % in the course of each minute."""
    found = [judge(before, after) for before, after in pairs(80, LIKELY, drift=0.02)]
    rate = sum(map(wrong, found)) / len(found)
    print(f"\nno difference, drift of 2 % a window: {100 * rate:.1f} % wrong of {len(found)}")
    assert rate <= 0.05


def test_no_difference_under_open_load() -> None:
    found = [
        judge(msgspec.structs.replace(before, plan=OPEN), msgspec.structs.replace(after, plan=OPEN))
        for before, after in pairs(60, LIKELY)
    ]
    assert all(verdict.effects[0].name == "p99" for verdict in found if verdict.effects)
    assert sum(map(wrong, found)) / len(found) <= 0.05


@pytest.mark.parametrize(
    ("factor", "phi", "least"), [(1.05, CALM, 0.98), (1.05, LIKELY, 0.9), (1.1, HARD, 0.9), (1 / 1.1, HARD, 0.9)]
)
def test_a_true_difference_is_found(factor: float, phi: float, least: float) -> None:
    """5 % in the rate in nine of ten within two minutes of data: a minute before, a minute after."""
    word = "better" if factor > 1 else "worse"
    found = [judge(before, faster(after, factor)).word == word for before, after in pairs(60, phi)]
    print(f"\n{100 * (factor - 1):+.0f} % in the rate, resemblance {phi}: found in {sum(found)} of {len(found)}")
    assert sum(found) >= least * len(found)


@pytest.mark.parametrize("phi", [CALM, HARD])
def test_intervals_hold_the_truth(phi: float) -> None:
    held: Counter[str] = Counter()
    given: Counter[str] = Counter()
    number = 150
    for before, after in pairs(number, phi):
        verdict = judge(before, faster(after, 1.1))
        for name, truth in (("rate", 0.1), ("p50", 0.0), ("p99", 0.0)):
            one = verdict.effect(name)
            if one is not None and one.low is not None and one.high is not None:
                given[name] += 1
                held[name] += one.low <= truth <= one.high
    print(f"\nintervals that hold the truth, resemblance {phi}: {dict(held)} of {dict(given)}")
    assert min(given.values()) >= 0.95 * number
    assert all(held[name] >= 0.9 * given[name] for name in given)
    assert held.total() >= 0.94 * given.total()


def test_a_slower_tail_is_found() -> None:
    found = []
    for at in range(40):
        verdict = judge(drawn(2 * at, 60, LIKELY), window(2 * at + 1, phi=LIKELY, slower=1.5))
        one = verdict.effect("p99")
        found.append(one is not None and one.word == "worse" and verdict.word == "worse")
    assert sum(found) >= 36


def test_sides_turned_round_turn_the_verdict_round() -> None:
    opposite = {"better": "worse", "worse": "better"}
    for at, (before, after) in enumerate(pairs(30, LIKELY)):
        after = faster(after, 1 + at / 100)
        there, back = judge(before, after), judge(after, before)
        assert there.word == opposite.get(back.word, back.word)
        for one, other in zip(there.effects, back.effects, strict=True):
            assert one.name == other.name
            if one.relative and one.change is not None and other.change is not None:
                assert (1 + one.change) * (1 + other.change) == pytest.approx(1)
            if one.relative and one.low is not None and other.high is not None:
                assert (1 + one.low) * (1 + other.high) == pytest.approx(1)
            assert one.p == pytest.approx(other.p)


def test_the_larger_the_difference_the_surer() -> None:
    before, after = drawn(0, 60, LIKELY), drawn(1, 60, LIKELY)
    found = [judge(before, faster(after, factor)).effects[0] for factor in (1.0, 1.05, 1.1, 1.2, 1.5)]
    changes = [one.change for one in found if one.change is not None]
    assert changes == sorted(changes)
    surely = [one.p for one in found[1:] if one.p is not None]
    assert surely == sorted(surely, reverse=True)


def test_the_same_windows_give_the_same_verdict() -> None:
    before, after = drawn(0, 60, LIKELY), drawn(1, 60, LIKELY)
    assert judge(before, after) == judge(before, after)


def test_the_order_of_blocks_does_not_move_the_estimate() -> None:
    """Seconds of a block put at another place: the estimate and p stay as long as nothing resembles the next."""
    before, after = drawn(0, 60, CALM), drawn(1, 60, CALM)
    order = np.random.default_rng(5).permutation(12)
    moved = tuple(
        msgspec.structs.replace(after.seconds[5 * block + at], second=5 * place + at)
        for place, block in enumerate(order)
        for at in range(5)
    )
    one = judge(before, after).effects[0]
    other = judge(before, msgspec.structs.replace(after, seconds=moved)).effects[0]
    assert one.change == pytest.approx(other.change)
    assert (one.before, one.after) == (pytest.approx(other.before), pytest.approx(other.after))


def test_looking_while_it_grows_is_no_more_often_wrong() -> None:
    """Judged at every block of the second minute: how often any look calls a difference."""
    number, wrongly = 25, 0
    for before, after in pairs(number, LIKELY):
        looks = (
            msgspec.structs.replace(after, seconds=after.seconds[:seconds], going_on=True)
            for seconds in range(25, 61, 5)
        )
        wrongly += any(wrong(judge(before, look)) for look in looks)
    print(f"\nno difference, looked at {8} times: wrong at some time in {wrongly} of {number}")
    assert wrongly <= 0.07 * number


def test_repeats_find_what_one_pair_cannot() -> None:
    """Three pairs of half a minute each, while the whole machine moves by several per cent between them."""
    levels = (1.0, 1.04, 1.02)
    once, repeated = 0, 0
    for at in range(30):
        found = [
            (
                faster(drawn(100 * at + pair, 40, LIKELY), level),
                faster(drawn(100 * at + 50 + pair, 40, LIKELY), 1.04 * level),
            )
            for pair, level in enumerate(levels)
        ]
        once += judge(*found[0]).word == "better"
        repeated += judge_repeats(found).word == "better"
    print(f"\n+4 % in the rate: one pair finds it in {once} of 30, three pairs in {repeated}")
    assert repeated > once
    assert repeated >= 27


def test_repeats_are_as_seldom_wrong() -> None:
    number = 100
    found = [
        judge_repeats(
            [
                (drawn(4 * at, 40, HARD), drawn(4 * at + 1, 40, HARD)),
                (drawn(4 * at + 2, 40, HARD), drawn(4 * at + 3, 40, HARD)),
            ]
        )
        for at in range(number)
    ]
    rate = sum(map(wrong, found)) / number
    print(f"\nno difference, two pairs: {100 * rate:.1f} % wrong of {number}")
    assert rate <= 0.06


def test_the_plan_says_what_is_asked_first() -> None:
    verdict = judge(drawn(0, 60, CALM), drawn(1, 60, CALM))
    assert verdict.effects[0].name == "rate"
    assert verdict.effects[0].headline
    assert PLAN.rate is None
