"""The tests by ranks against published tables, and against counting every possible order."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.analysis.ranks import (
    discounted,
    holm,
    mann_kendall,
    mann_whitney,
    midranks,
    shift,
    smallest_p,
    student_cdf,
    student_quantile,
    van_elteren,
    welch,
)

few = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=5)
some = st.lists(st.integers(-1000, 1000).map(float), min_size=4, max_size=12)


def counted_out(a: list[float], b: list[float]) -> float:
    """The two-sided p value by trying every way to deal the values to the two sides."""
    values = [*a, *b]
    ranks = [sum(other < value for other in values) + (values.count(value) + 1) / 2 for value in values]
    middle = len(b) * (len(values) + 1) / 2
    found = abs(sum(ranks[len(a) :]) - middle)
    sums = [abs(sum(chosen) - middle) for chosen in itertools.combinations(ranks, len(b))]
    return sum(one >= found - 1e-9 for one in sums) / len(sums)


# n, m and the largest U that is significant at 5 %, two-sided: Mann and Whitney's table.
@pytest.mark.parametrize(
    ("n", "m", "critical"),
    [(4, 4, 0), (5, 5, 2), (5, 8, 6), (6, 6, 5), (8, 8, 13), (7, 12, 18), (10, 10, 23), (15, 15, 64), (20, 20, 127)],
)
def test_the_published_table_of_u(n: int, m: int, critical: int) -> None:
    assert p_of(n, m, critical) <= 0.05 < p_of(n, m, critical + 1)


def p_of(n: int, m: int, u: int) -> float:
    """p of samples in which exactly `u` pairs have the second value above the first."""
    # `whole` of the second sample lie above all but one of the first; the last one is put where it fits.
    places = []
    left = u
    for _ in range(m):
        above = min(n, left)
        places.append(above)
        left -= above
    a = np.arange(n, dtype=np.float64)
    b = np.array([above - 0.5 + at / 1000 for at, above in enumerate(places)])
    found, p = mann_whitney(a, b)
    assert found == u
    return p


@given(few, few)
def test_exact_is_what_counting_out_gives_ties_included(a: list[float], b: list[float]) -> None:
    assert mann_whitney(np.array(a), np.array(b))[1] == pytest.approx(counted_out(a, b))


def test_a_worked_example() -> None:
    """Hollander and Wolfe's permeability of membranes: W = 30 of 10 and 5, one-sided p 0.1272."""
    at_term = np.array([0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46])
    early = np.array([1.15, 0.88, 0.90, 0.74, 1.21])
    u, p = mann_whitney(early, at_term)
    assert u == 35
    assert p == pytest.approx(0.2544, abs=5e-5)
    found = shift(early, at_term)
    assert found.estimate == pytest.approx(0.305)
    assert (found.low, found.high) == (pytest.approx(-0.15), pytest.approx(0.76))


@given(some, some)
def test_sides_turned_round_turn_the_shift_round(a: list[float], b: list[float]) -> None:
    one, other = shift(np.array(a), np.array(b)), shift(np.array(b), np.array(a))
    assert one.p == pytest.approx(other.p)
    assert one.estimate == -other.estimate
    assert (one.low, one.high) == (-other.high, -other.low)


@given(some, some, st.randoms())
def test_the_order_within_a_sample_does_not_matter(a: list[float], b: list[float], random: object) -> None:
    before = shift(np.array(a), np.array(b))
    random.shuffle(a)  # type: ignore[attr-defined]
    random.shuffle(b)  # type: ignore[attr-defined]
    assert shift(np.array(a), np.array(b)) == before


@given(some, some, st.integers(1, 500))
def test_what_is_added_is_found(a: list[float], b: list[float], more: int) -> None:
    before, after = (shift(np.array(a), np.array(b) + added) for added in (0, more))
    assert after.estimate == before.estimate + more
    assert (after.low, after.high) == (before.low + more, before.high + more)


@given(some, some, st.floats(1.0, 4.0), st.floats(1.0, 4.0))
def test_more_resemblance_never_makes_surer(a: list[float], b: list[float], one: float, other: float) -> None:
    less, more = (shift(np.array(a), np.array(b), inflation) for inflation in sorted((one, other)))
    assert more.p >= less.p - 1e-12
    assert more.low <= less.low
    assert more.high >= less.high


@given(some, some)
def test_interval_and_p_agree(a: list[float], b: list[float]) -> None:
    """Without ties an interval that leaves 0 out goes with p of at most 5 %, and the other way round."""
    found = shift(np.array(a), np.array(b) + 0.5)
    if len({*a, *(value + 0.5 for value in b)}) == len(a) + len(b):
        assert (found.low > 0 or found.high < 0) == (found.p <= 0.05)


def test_large_samples_go_over_smoothly() -> None:
    generator = np.random.default_rng(1)
    a, b = generator.normal(0, 1, 20), generator.normal(0.6, 1, 20)
    exact = mann_whitney(a, b)[1]
    u = mann_whitney(a, b)[0]
    normal = 2 * NormalDist().cdf(-(abs(u - 200) - 0.5) / math.sqrt(20 * 20 * 41 / 12))
    assert exact == pytest.approx(normal, rel=0.05)
    more = mann_whitney(np.concatenate((a, [a.mean()])), b)[1]
    assert more == pytest.approx(exact, rel=0.4)


def test_all_equal_is_no_difference() -> None:
    same = np.full(30, 7.0)
    assert mann_whitney(same, same)[1] == 1.0
    assert shift(same[:5], same[:5]) == (0.0, 0.0, 0.0, 1.0)
    assert van_elteren([(same[:5], same[:5])] * 2).p == 1.0


def test_too_few_have_no_interval() -> None:
    assert shift(np.array([1.0, 2.0]), np.array([8.0, 9.0]))[1:3] == (-math.inf, math.inf)
    assert smallest_p(4, 4) == pytest.approx(2 / 70)
    assert smallest_p(4, 4, 2.0) > smallest_p(4, 4)
    assert discounted(0.05, 1.0) == 0.05


def test_van_elteren_of_one_pair_is_mann_whitney() -> None:
    generator = np.random.default_rng(2)
    a, b = generator.normal(0, 1, 25), generator.normal(0.5, 1, 25)
    assert van_elteren([(a, b)]).p == pytest.approx(mann_whitney(a, b)[1], rel=0.05)
    assert van_elteren([(a, b)]).estimate == pytest.approx(shift(a, b).estimate, abs=0.05)


def test_van_elteren_sees_through_a_level_that_moves() -> None:
    """Both pairs differ by 1; between the pairs everything moved by 100, which hides it from a pooled test."""
    a = np.arange(8.0) / 4
    strata = [(a, a + 1), (a + 100, a + 101)]
    assert van_elteren(strata).p < 0.01
    assert van_elteren(strata).low > 0
    assert (
        mann_whitney(np.concatenate([one for one, _ in strata]), np.concatenate([two for _, two in strata]))[1] > 0.05
    )


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.706), (2, 4.303), (3, 3.182), (10, 2.228), (30, 2.042), (1000, 1.962)]
)
def test_the_published_table_of_t(freedom: int, quantile: float) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(quantile, abs=6e-4)
    assert student_cdf(quantile, freedom) == pytest.approx(0.975, abs=1e-4)


def test_welch() -> None:
    """Welch's t worked out by hand: means 2 and 5, variances 1 and 4, three values each."""
    found = welch(np.array([1.0, 2.0, 3.0]), np.array([3.0, 5.0, 7.0]))
    freedom = (1 / 3 + 4 / 3) ** 2 / ((1 / 3) ** 2 / 2 + (4 / 3) ** 2 / 2)
    reach = student_quantile(0.975, freedom) * math.sqrt(5 / 3)
    assert found.estimate == 3
    assert found.high - found.estimate == pytest.approx(reach)
    assert found.p == pytest.approx(2 * (1 - student_cdf(3 / math.sqrt(5 / 3), freedom)))
    assert welch(np.array([1.0, 1.0]), np.array([2.0, 2.0])).p == 0.0


def test_mann_kendall() -> None:
    slope, p = mann_kendall(np.arange(10.0) * 3)
    assert slope == 3
    # S = 45, variance 125: z = 44 / root 125.
    assert p == pytest.approx(2 * NormalDist().cdf(-44 / math.sqrt(125)))
    assert mann_kendall(np.full(10, 5.0)) == (0.0, 1.0)
    assert mann_kendall(np.array([1.0, 2.0])) == (0.0, 1.0)
    assert mann_kendall(-np.arange(10.0)) == (-1.0, pytest.approx(mann_kendall(np.arange(10.0))[1]))


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03], [1, 1, 1]) == pytest.approx([0.03, 0.06, 0.06])
    # The first takes half of the risk; once it has been found, the others have all of it.
    assert holm([0.02, 0.02, 0.9], [0.5, 0.25, 0.25]) == pytest.approx([0.04, 0.04, 0.9])
    assert holm([0.5], [1]) == [0.5]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_makes_surer(values: list[float]) -> None:
    adjusted = holm(values, [1.0] * len(values))
    assert all(p <= one <= 1 for p, one in zip(values, adjusted, strict=True))


def test_midranks() -> None:
    assert midranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]
