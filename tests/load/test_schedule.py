"""Arithmetic of arrivals and phases."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.load.schedule import Arrivals, phases_of
from cockpit.model.load import LoadPlan, Stage


def due_before(arrivals: Arrivals, end: float) -> list[float]:
    found = []
    while arrivals.due < end - 1e-7:
        found.append(arrivals.due)
        arrivals.advance()
    return found


def plan(**values: object) -> LoadPlan:
    return LoadPlan(url="http://web1/", **values)  # type: ignore[arg-type]


@settings(max_examples=50)
@given(st.integers(1, 2000), st.integers(1, 9), st.floats(0, 1e6))
def test_even_arrivals_of_all_workers_equal_schedule(rate: int, workers: int, at: float) -> None:
    """For any number of workers, arrival i is at i / rate; none is missing or duplicated."""
    seconds = max(1, min(3, 1000 // rate))
    found: list[float] = []
    for worker in range(workers):
        arrivals = Arrivals(plan(rate=float(rate)), worker, workers)
        arrivals.set_rate(at, float(rate))
        found += due_before(arrivals, at + seconds)
    assert len(found) == rate * seconds
    assert all(abs(due - at - number / rate) < 1e-6 for number, due in enumerate(sorted(found)))


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(1, 200), st.integers(1, 3)), min_size=1, max_size=5), st.integers(1, 4))
def test_schedule_continues_after_change_of_rate(levels: list[tuple[int, int]], workers: int) -> None:
    total = [0] * len(levels)
    for worker in range(workers):
        arrivals, at = Arrivals(plan(rate=1.0), worker, workers), 1000.0
        for number, (rate, seconds) in enumerate(levels):
            arrivals.set_rate(at, float(rate))
            at += seconds
            total[number] += len(due_before(arrivals, at))
    assert total == [rate * seconds for rate, seconds in levels]


def test_poisson_arrivals_have_rate_spread_and_seed() -> None:
    found = []
    for seed in (7, 7, 8):
        instants: list[float] = []
        for worker in (0, 1):
            arrivals = Arrivals(plan(rate=1000.0, arrivals="poisson", seed=seed), worker, 2)
            arrivals.set_rate(0.0, 1000.0)
            instants += due_before(arrivals, 30.0)
        found.append(sorted(instants))
    assert found[0] == found[1] != found[2]
    gaps = [after - before for before, after in zip(found[0], found[0][1:], strict=False)]
    mean = sum(gaps) / len(gaps)
    spread = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert len(found[0]) == pytest.approx(30_000, rel=0.03)
    assert spread == pytest.approx(mean, rel=0.05)


def test_load_levels_follow_warm_up_in_order() -> None:
    stages = (Stage(duration=2.0, concurrency=1), Stage(duration=3.0, concurrency=4))
    phases, end = phases_of(plan(stages=stages, warmup=1.0), 10.0)
    assert [(phase.start, phase.stage, phase.warmup, phase.concurrency) for phase in phases] == [
        (10.0, 0, True, 1),
        (11.0, 0, False, 1),
        (13.0, 1, False, 4),
    ]
    assert end == 16.0
    assert phases_of(plan(requests=5), 10.0)[1] == math.inf
    assert phases_of(plan(duration=5.0, warmup=2.0), 10.0)[1] == 17.0
