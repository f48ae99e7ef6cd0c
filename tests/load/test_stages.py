"""Load steps, warm-up, and load adjusted during a run."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cockpit.load.pool import launch
from cockpit.model.clock import Clock
from cockpit.model.errors import UsageError
from cockpit.model.events import Tick
from cockpit.model.load import LoadPlan, Stage
from tests.load.servers import (
    SMALL,
    ClientConnection,
    Outcome,
    always,
    begin,
    engine_load,
    load,
    load_until,
    plan,
    serving,
)


def ticks_of(outcome: Outcome, stage: int) -> list[Tick]:
    return [tick for tick in outcome.ticks if tick.stage == stage and not tick.warmup]


async def test_closed_load_levels_have_their_connections() -> None:
    def load_steps(factor: float) -> LoadPlan:
        stages = tuple(Stage(duration=0.5 * factor, concurrency=count) for count in (1, 4, 2))
        return plan(server.url, stages=stages, workers=2, tick=0.05)

    def all_loaded(outcome: Outcome) -> bool:
        return all(sum(tick.completed for tick in ticks_of(outcome, stage)) > 0 for stage in (0, 1, 2))

    async with serving(always(SMALL)) as server:
        outcome = await load_until(load_steps, all_loaded)
    assert all_loaded(outcome)
    assert outcome.merged("connect").count == 4
    seconds = outcome.started.plan.stages[0].duration
    for worker in (0, 1):
        ticks = [tick for tick in outcome.ticks if tick.worker == worker]
        assert [tick.stage for tick in ticks] == sorted(tick.stage for tick in ticks)
        assert all(before.t == after.start for before, after in pairwise(ticks))
    begin_at = outcome.started.t
    for stage, expected in enumerate((1, 4, 2)):
        ticks = ticks_of(outcome, stage)
        assert min(tick.start for tick in ticks) >= begin_at + seconds * stage - 1e-6
        highest = [max(tick.connections for tick in ticks if tick.worker == worker) for worker in (0, 1)]
        assert sum(highest) <= max(expected, [0, 1, 4][stage])
    assert outcome.total("sent") == outcome.total("completed") + outcome.total("abandoned")
    assert outcome.ended.reason == "completed"


@pytest.mark.parametrize("workers", [1, 2])
async def test_open_load_levels_have_exact_arrivals(workers: int) -> None:
    stages = (Stage(duration=0.25, rate=100.0), Stage(duration=0.5, rate=400.0), Stage(duration=0.25, rate=200.0))
    async with serving(always(SMALL)) as server:
        outcome = await load(plan(server.url, stages=stages, warmup=0.1, workers=workers))
    sent = [sum(tick.sent for tick in ticks_of(outcome, stage)) for stage in (0, 1, 2)]
    assert sent == [25, 200, 50]
    assert sum(tick.sent for tick in outcome.ticks if tick.warmup) == 10


@pytest.mark.parametrize("values", [{"concurrency": 5}, {"rate": 500.0}])
@pytest.mark.parametrize("workers", [1, 2])
async def test_requests_are_counted_from_end_of_warm_up(values: dict[str, float], workers: int) -> None:
    def plan_with_warm_up(factor: float) -> LoadPlan:
        return plan(server.url, requests=200, warmup=0.5 * factor, workers=workers, **values)

    def started_by_all(outcome: Outcome) -> bool:
        return {tick.worker for tick in outcome.ticks if tick.warmup and tick.sent} == set(range(workers))

    async with serving(always(SMALL)) as server:
        outcome = await load_until(plan_with_warm_up, started_by_all)
    warm = [tick for tick in outcome.ticks if tick.warmup]
    counted = [tick for tick in outcome.ticks if not tick.warmup]
    assert sum(tick.sent for tick in counted) == sum(tick.completed for tick in counted) == 200
    assert sum(tick.service.count for tick in counted) == 200
    assert sum(tick.bytes_received for tick in counted) == 200 * len(SMALL)
    sent = sum(tick.sent for tick in warm)
    assert sent == sum(tick.completed + tick.abandoned for tick in warm) > 0
    for worker in range(workers):
        last = max(tick.t for tick in warm if tick.worker == worker)
        assert last == min(tick.start for tick in counted if tick.worker == worker)
        assert last >= outcome.started.t + outcome.started.plan.warmup - 1e-6


async def test_requests_of_warm_up_that_end_late_are_not_counted() -> None:
    async def behave(client: ClientConnection) -> None:
        await client.request()
        await server.until(lambda: server.requests >= 6)
        await client.send(SMALL)
        while True:
            await client.request()
            await client.send(SMALL)

    async with serving(behave) as server:
        outcome = Outcome()
        run = await begin(plan(server.url, requests=30, concurrency=5, warmup=0.5), outcome)
        await outcome.until(lambda seen: any(not tick.warmup for tick in seen.ticks))
        # A sixth request releases the first five.
        await engine_load(plan(server.url, requests=1, concurrency=1))
        await run.wait()
    counted = [tick for tick in outcome.ticks if not tick.warmup]
    warm = [tick for tick in outcome.ticks if tick.warmup]
    assert 0 < sum(tick.abandoned for tick in warm) == sum(tick.sent for tick in warm) <= 5
    assert sum(tick.completed for tick in counted) == sum(tick.service.count for tick in counted) == 30


async def test_duration_counts_from_end_of_warm_up() -> None:
    async with serving(always(SMALL)) as server:
        outcome = await load(plan(server.url, duration=0.3, warmup=0.2))
    counted = [tick for tick in outcome.ticks if not tick.warmup]
    assert max(tick.t for tick in counted) >= outcome.started.t + 0.5 - 1e-6


async def test_connections_are_adjusted_during_run() -> None:
    outcome = Outcome()

    def open_now(count: int) -> bool:
        latest = {tick.worker: tick.connections for tick in outcome.ticks}
        return len(latest) == 2 and sum(latest.values()) == count

    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, concurrency=3, duration=600.0, workers=2, tick=0.02), outcome)
        for count in (3, 20, 2, 1, 9):
            if count != 3:
                run.adjust(concurrency=count)
            await outcome.until(lambda seen, count=count: open_now(count))
        run.stop()
        await run.wait()
        run.adjust(concurrency=5)
    assert [event.concurrency for event in outcome.adjusted] == [20, 2, 1, 9]
    assert outcome.errors == {}
    assert outcome.total("sent") == outcome.total("completed") + outcome.total("abandoned")


@pytest.mark.parametrize("values", [{"concurrency": 1}, {"rate": 50.0}])
async def test_adjustment_during_warm_up_persists(values: dict[str, float]) -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, duration=600.0, warmup=0.3, tick=0.05, **values), outcome)
        run.adjust(**{name: value * 7 for name, value in values.items()})  # type: ignore[arg-type]
        await outcome.until(
            lambda seen: (
                sum(not tick.warmup for tick in seen.ticks) >= 6
                and ("rate" in values or seen.ticks[-1].connections == 7)
            )
        )
        run.stop()
        await run.wait()
    counted = [tick for tick in outcome.ticks if not tick.warmup]
    if "rate" in values:
        seconds = counted[-2].t - counted[0].start
        assert sum(tick.sent for tick in counted) > 2 * 50.0 * seconds


async def test_counted_run_stays_exact_when_adjusted() -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, concurrency=8, requests=4000, workers=2, tick=0.02), outcome)
        for count in (2, 30, 3):
            await outcome.until(lambda seen: bool(seen.ticks))
            run.adjust(concurrency=count)
        with pytest.raises(UsageError, match="use at least 2, one for each worker"):
            run.adjust(concurrency=1)
        await run.wait()
        assert server.requests == 4000
    assert outcome.total("sent") == outcome.total("completed") == 4000


async def test_invalid_adjustments_are_refused() -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, duration=600.0), outcome)
        for values, message in (
            ({"rate": 5.0}, "concurrency"),
            ({"concurrency": 0}, "more than 0"),
            ({}, "concurrency"),
        ):
            with pytest.raises(UsageError, match=message):
                run.adjust(**values)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="ulimit"):
            run.adjust(concurrency=50_000_000)
        run.stop()
        await run.wait()
    assert outcome.adjusted == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"stages": (Stage(duration=1.0),)}, "exactly one"),
        ({"stages": (Stage(duration=1.0, rate=1.0), Stage(duration=1.0, concurrency=1))}, "all of one kind"),
        ({"stages": (Stage(duration=0.0, concurrency=1),)}, "stages.duration: found 0.0"),
        ({"stages": (Stage(duration=1.0, concurrency=1),), "requests": 5}, "stages alone"),
        ({"rate": 0.0, "duration": 1.0}, "rate: found 0.0"),
        ({"warmup": -1.0}, "warmup"),
        ({"rate": 5.0, "max_in_flight": 0}, "max_in_flight"),
    ],
)
async def test_invalid_plans_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        await launch(plan("http://127.0.0.1:9/", **values), 1, Clock(), Outcome().emit)
