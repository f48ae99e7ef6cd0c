"""Ramps: the schedule of arrivals, connections over time, and ramps that begin during a run."""

import math
import os
import signal
from itertools import dropwhile, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.load.ramp import Ramp, constant
from cockpit.load.schedule import Arrivals, phases_of
from cockpit.model.errors import UsageError
from cockpit.model.load.plan import LoadPlan, Stage
from cockpit.model.tick import Tick
from tests.load.servers import SMALL, Outcome, always, begin, load, load_until, plan, serving
from tests.load.test_request import due_before

RATES = st.floats(0.5, 800.0)


def merged(plan: LoadPlan, ramp: Ramp, workers: int, until: float) -> list[float]:
    """Return the due times of all workers before `until`."""
    found: list[float] = []
    for worker in range(workers):
        arrivals = Arrivals(plan, worker, workers)
        arrivals.follow(ramp.start, ramp)
        found += due_before(arrivals, until)
    return sorted(found)


@settings(max_examples=50)
@given(RATES, RATES, st.floats(0.1, 2.0), st.integers(1, 5), st.floats(0, 1e6))
def test_even_arrivals_follow_integral_of_rate(
    first: float, last: float, seconds: float, workers: int, at: float
) -> None:
    """Over all workers, arrival i is at the time at which the integral of the rate is i, also after the ramp."""
    ramp = Ramp(first, last, at, at + seconds)
    found = merged(plan("http://a/", rate=first), ramp, workers, ramp.end + 0.5)
    assert [ramp.arrivals(due) for due in found] == pytest.approx(range(len(found)), abs=1e-5)
    assert abs(len(found) - ramp.arrivals(ramp.end + 0.5)) <= 1 + 1e-5
    assert ramp.arrivals(ramp.end) == pytest.approx(seconds * (first + last) / 2)


@settings(max_examples=50)
@given(st.lists(st.tuples(RATES, RATES, st.floats(0.1, 1.0)), min_size=1, max_size=4), st.integers(1, 4))
def test_schedule_continues_through_ramps(ramps: list[tuple[float, float, float]], workers: int) -> None:
    found, at, whole = 0, 100.0, 0.0
    each = [Arrivals(plan("http://a/", rate=1.0), worker, workers) for worker in range(workers)]
    for first, last, seconds in ramps:
        # The second half of a ramp that had begun before.
        ramp = Ramp(first, last, at - seconds, at + seconds)
        for arrivals in each:
            arrivals.follow(at, ramp)
            found += len(due_before(arrivals, at + seconds))
        whole += ramp.arrivals(at + seconds) - ramp.arrivals(at)
        at += seconds
    assert abs(found - whole) <= 1 + 1e-4


def test_poisson_arrivals_follow_rate() -> None:
    ramp = Ramp(100.0, 1900.0, 50.0, 70.0)
    due = merged(plan("http://a/", rate=100.0, arrivals="poisson"), ramp, 3, 70.0)
    counts = np.histogram(due, np.arange(50.0, 71.0))[0]
    expected = [ramp.arrivals(after) - ramp.arrivals(before) for before, after in pairwise(np.arange(50.0, 71.0))]
    # Chi-square of 20 independent Poisson counts.
    assert 5 < sum((count - mean) ** 2 / mean for count, mean in zip(counts, expected, strict=True)) < 45


def test_levels_and_warm_up_begin_at_their_first_load() -> None:
    stages = (Stage(duration=2.0, rate=10.0), Stage(duration=4.0, rate=10.0, ramp_to=50.0))
    phases, _ = phases_of(plan("http://a/", stages=stages, warmup=1.0), 10.0)
    assert [phase.load for phase in phases] == [constant(10.0, 11.0)] * 2 + [Ramp(10.0, 50.0, 13.0, 17.0)]
    [warm, ramp], _ = phases_of(plan("http://a/", concurrency=8, ramp_to=2.0, duration=6.0, warmup=1.0), 0.0)
    assert warm.load == ramp.load == Ramp(8.0, 2.0, 1.0, 7.0)
    # Steps at half a connection: the mean over time is that of the line.
    steps, t = [], 0.0
    while (t := ramp.load.next_step(t)) < math.inf:
        steps.append((t, ramp.load.connections(t)))
    assert steps == [(1.5 + step, 7 - step) for step in range(6)]
    assert [ramp.load.connections(t) for t in (0.0, 1.4, 6.9, 99.0)] == [8, 8, 2, 2]


async def test_arrivals_of_run_are_integral_of_rate() -> None:
    values = {"rate": 100.0, "ramp_to": 700.0, "duration": 0.5, "warmup": 0.1, "workers": 2}
    async with serving(always(SMALL)) as server:
        outcome = await load(plan(server.url, **values))
    assert sum(tick.sent for tick in outcome.ticks if tick.warmup) == 10
    assert sum(tick.sent for tick in outcome.ticks if not tick.warmup) == 200


@pytest.mark.parametrize(("first", "last"), [(2, 12), (12, 2)])
async def test_connections_are_added_and_removed_evenly(first: int, last: int) -> None:
    values = {"concurrency": first, "ramp_to": float(last), "workers": 2, "tick": 0.02}

    def ramped(outcome: Outcome, worker: int) -> list[Tick]:
        """Return the ticks of a worker from its first connections until it closes all, before the last tick."""
        ticks = [tick for tick in outcome.ticks if tick.worker == worker and tick.completed]
        return [*dropwhile(lambda tick: tick.connections < first // 2, ticks)][:-1]

    def has_steps(outcome: Outcome) -> bool:
        return all(len({tick.connections for tick in ramped(outcome, worker)}) >= 4 for worker in (0, 1))

    async with serving(always(SMALL)) as server:
        outcome = await load_until(lambda factor: plan(server.url, **values, duration=1.5 * factor), has_steps)
    assert has_steps(outcome)
    start = outcome.started.t
    ramp = Ramp(first, last, start, start + (outcome.started.plan.duration or 0.0))
    for worker in (0, 1):
        for tick in ramped(outcome, worker):
            # A busy machine may be late, but never early.
            share = ramp.connections(tick.t) // 2 + (worker if ramp.connections(tick.t) % 2 else 0)
            assert tick.connections <= share if last > first else tick.connections >= share
    assert outcome.total("sent") == outcome.total("completed") + outcome.total("abandoned")


async def test_ramp_begins_during_run_and_lasts_to_planned_end() -> None:
    async def adjusted_load(load_plan: LoadPlan) -> Outcome:
        outcome = Outcome()
        run = await begin(load_plan, outcome)
        run.adjust(rate=100.0, ramp_to=300.0)
        await run.wait()
        return outcome

    def share(outcome: Outcome) -> float:
        """Return the arrivals as share of those of the ramp and of the lower rate before."""
        late, duration = outcome.adjusted[0].t - outcome.started.t, outcome.started.plan.duration or 0.0
        return (outcome.total("sent") + outcome.total("unsent")) / (200 * (duration - late) + 50 * late)

    async with serving(always(SMALL)) as server:
        # On a busy machine the workers follow late, at the lower rate until then.
        outcome = await load_until(
            lambda factor: plan(server.url, rate=50.0, duration=0.6 * factor, workers=2),
            lambda seen: share(seen) > 0.75,
            adjusted_load,
        )
        endless = await begin(plan(server.url, requests=10_000_000), Outcome())
        with pytest.raises(UsageError, match="planned end"):
            endless.adjust(concurrency=5, ramp_to=9.0)
        endless.stop()
        await endless.wait()
    [adjusted] = outcome.adjusted
    assert (adjusted.rate, adjusted.ramp_to) == (100.0, 300.0)
    assert 0.75 < share(outcome) < 1.03


async def test_ramp_survives_lost_worker() -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, rate=100.0, ramp_to=700.0, duration=0.6, workers=2), outcome)
        os.kill(run.pids[1], signal.SIGKILL)
        await run.wait()
    start = outcome.started.t
    lost = Ramp(100.0, 700.0, start, start + 0.6).arrivals(outcome.lost[0].t) / 2
    sent = outcome.total("sent") + outcome.total("unsent")
    assert 120 + (120 - lost) / 2 < sent <= 240 - lost + 2
