"""Load steps, warm-up, load adjusted during a run, and runs extended past the end of their plan."""

from typing import Any

import pytest

from cockpit.load.pool import LoadRun, launch
from cockpit.model.clock import Clock
from cockpit.model.errors import UsageError
from cockpit.model.events import RunExtended
from cockpit.model.load.plan import LoadPlan, PathList, Stage
from cockpit.model.tick import Tick
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
    counts = (1, 4, 2)

    def load_steps(factor: float) -> LoadPlan:
        stages = tuple(Stage(duration=0.3 * factor, concurrency=count) for count in counts)
        return plan(server.url, stages=stages, workers=2, tick=0.05)

    def all_loaded(outcome: Outcome) -> bool:
        return all(sum(tick.completed for tick in ticks_of(outcome, stage)) > 0 for stage in (0, 1, 2))

    async with serving(always(SMALL)) as server:
        outcome = await load_until(load_steps, all_loaded)
    assert all_loaded(outcome)
    assert outcome.merged("connect").count == 4
    for worker in (0, 1):
        ticks = [tick for tick in outcome.ticks if tick.worker == worker]
        assert [tick.stage for tick in ticks] == sorted(tick.stage for tick in ticks)
    seconds = outcome.started.plan.stages[0].duration
    for stage, most in enumerate((1, 4, 4)):
        ticks = ticks_of(outcome, stage)
        assert min(tick.start for tick in ticks) >= outcome.started.t + seconds * stage - 1e-6
        assert sum(max(tick.connections for tick in ticks if tick.worker == worker) for worker in (0, 1)) <= most
    assert outcome.total("sent") == outcome.total("completed") + outcome.total("abandoned")
    assert outcome.ended.reason == "completed"


@pytest.mark.parametrize("workers", [1, 2])
async def test_open_load_levels_have_exact_arrivals(workers: int) -> None:
    stages = (Stage(duration=0.25, rate=100.0), Stage(duration=0.25, rate=800.0), Stage(duration=0.25, rate=200.0))
    async with serving(always(SMALL)) as server:
        outcome = await load(plan(server.url, stages=stages, warmup=0.1, workers=workers))
    sent = [sum(tick.sent for tick in ticks_of(outcome, stage)) for stage in (0, 1, 2)]
    assert sent == [25, 200, 50]
    assert sum(tick.sent for tick in outcome.ticks if tick.warmup) == 10
    # The duration counts from the end of the warm-up.
    assert max(tick.t for tick in outcome.ticks) >= outcome.started.t + 0.85 - 1e-6


@pytest.mark.parametrize(("values", "workers"), [({"concurrency": 5}, 1), ({"rate": 500.0}, 2)])
async def test_requests_are_counted_from_end_of_warm_up(values: dict[str, float], workers: int) -> None:
    def plan_with_warm_up(factor: float) -> LoadPlan:
        return plan(server.url, requests=200, warmup=0.2 * factor, workers=workers, **values)

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


async def test_connections_are_adjusted_during_run() -> None:
    outcome = Outcome()

    def open_now(count: int) -> bool:
        latest = {tick.worker: tick.connections for tick in outcome.ticks}
        return len(latest) == 2 and sum(latest.values()) == count

    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, concurrency=3, duration=600.0, workers=2, tick=0.02), outcome)
        for count in (3, 20, 1, 9):
            if count != 3:
                run.adjust(concurrency=count)
            await outcome.until(lambda seen, count=count: open_now(count))
        run.stop()
        run.stop()
        await run.wait()
        run.adjust(concurrency=5)
    assert not run.running
    assert (outcome.ended.reason, outcome.lost) == ("stopped", [])
    assert [event.concurrency for event in outcome.adjusted] == [20, 1, 9]
    assert outcome.errors == {}
    assert outcome.total("sent") == outcome.total("completed") + outcome.total("abandoned")


async def test_adjustment_during_warm_up_persists() -> None:
    for values, adjusted in (({"concurrency": 1}, {"concurrency": 7}), ({"rate": 50.0}, {"rate": 350.0})):
        outcome = Outcome()
        async with serving(always(SMALL)) as server:
            run = await begin(plan(server.url, duration=600.0, warmup=0.3, tick=0.05, **values), outcome)
            run.adjust(**adjusted)
            await outcome.until(lambda seen: sum(not tick.warmup for tick in seen.ticks) >= 6)
            if "concurrency" in values:
                await outcome.until(lambda seen: seen.ticks[-1].connections == 7)
            run.stop()
            await run.wait()
        counted = [tick for tick in outcome.ticks if not tick.warmup]
        seconds = counted[-2].t - counted[0].start
        assert "concurrency" in values or sum(tick.sent for tick in counted) > 2 * 50.0 * seconds


async def test_connection_closed_in_warm_up_is_counted_when_used_again() -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, concurrency=2, duration=600.0, warmup=0.2, tick=0.02), outcome)
        for count in (1, 2):
            run.adjust(concurrency=count)
            ends = [(count, False)] * 3
            await outcome.until(lambda seen, ends=ends: [(t.connections, t.warmup) for t in seen.ticks[-3:]] == ends)
        run.stop()
        await run.wait()
    # The end of the warm-up leaves out a request in flight.
    assert server.requests - outcome.total("completed") - outcome.total("abandoned") <= 2


async def test_counted_run_stays_exact_when_adjusted() -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, concurrency=8, requests=1500, workers=2, tick=0.02), outcome)
        for count in (2, 30, 3):
            await outcome.until(lambda seen: bool(seen.ticks))
            run.adjust(concurrency=count)
        with pytest.raises(UsageError, match="use at least 2, one for each worker"):
            run.adjust(concurrency=1)
        await run.wait()
        assert server.requests == 1500
    assert outcome.total("sent") == outcome.total("completed") == 1500


async def test_invalid_adjustments_are_refused() -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, duration=600.0), outcome)
        for values, message in (
            ({"rate": 5.0}, "concurrency"),
            ({"concurrency": 0}, "greater than 0"),
            ({}, "concurrency"),
        ):
            with pytest.raises(UsageError, match=message):
                run.adjust(**values)
        with pytest.raises(UsageError, match="ulimit"):
            run.adjust(concurrency=50_000_000)
        run.stop()
        await run.wait()
    assert outcome.adjusted == []


LONG = 3600.0
MODELS: dict[str, dict[str, Any]] = {
    "closed, by count": {"requests": 40, "workers": 2},
    "closed, by time": {"duration": 0.2},
    "closed, new connections": {"requests": 40, "keepalive": False},
    "open, by count": {"requests": 40, "rate": 400.0, "concurrency": 1, "workers": 2},
    "open, by time": {"duration": 0.2, "rate": 400.0, "concurrency": 1},
}


async def start_run(url: str, **values: Any) -> tuple[LoadRun, Outcome, Clock]:
    outcome, clock = Outcome(), Clock()
    return await launch(plan(url, tick=0.05, **values), 1, clock, outcome.emit), outcome, clock


def extensions(outcome: Outcome) -> list[RunExtended]:
    return [event for event in outcome.events if isinstance(event, RunExtended)]


@pytest.mark.parametrize("model", MODELS)
async def test_extended_run_continues_until_released_or_limit(model: str) -> None:
    async with serving(always(SMALL)) as server:
        run, outcome, clock = await start_run(server.url, **MODELS[model])
        run.extend(clock.now() + LONG, "verdict", "A")
        await outcome.until(lambda seen: seen.total("completed") > 150)
        assert run.running
        until = clock.now() + (0.1 if model.endswith("time") else 0.0)
        run.extend(until, "verdict", "A")
        await run.wait()
    assert outcome.ended.reason == "completed" and outcome.ended.t >= until
    assert outcome.total("completed") + outcome.total("abandoned") == outcome.total("sent")
    extended, released = extensions(outcome)
    assert (extended.change, extended.awaited, extended.until > LONG) == ("A", "verdict", True)
    assert released.until == max(until, released.t)


@pytest.mark.parametrize("rate", [None, 400.0])
async def test_run_released_early_sends_exact_number_of_requests(rate: float | None) -> None:
    async with serving(always(SMALL)) as server:
        run, outcome, clock = await start_run(server.url, requests=200, rate=rate, concurrency=1 if rate else 2)
        run.extend(clock.now() + LONG, "baseline")
        run.extend(clock.now(), "baseline")
        await run.wait()
    assert outcome.total("completed") == 200


async def test_extended_run_stops_immediately() -> None:
    async with serving(always(SMALL)) as server:
        run, outcome, clock = await start_run(server.url, duration=0.2)
        run.extend(clock.now() + LONG, "verdict")
        await outcome.until(lambda seen: seen.total("completed") > 50)
        run.stop()
        run.extend(clock.now() + LONG, "verdict")
        await run.wait()
    assert outcome.ended.reason == "stopped"


@pytest.mark.parametrize(
    "values",
    [
        {"duration": LONG},
        {},
        {"stages": (Stage(duration=0.2, concurrency=2),)},
        {"paths": PathList(pattern="/{1..40}", order="once")},
    ],
)
async def test_plans_that_last_longer_or_are_exhausted_are_not_extended(values: dict[str, Any]) -> None:
    async with serving(always(SMALL)) as server:
        run, outcome, clock = await start_run(server.url, **values)
        run.extend(clock.now() + LONG / 2, "verdict")
        run.stop()
        await run.wait()
    assert extensions(outcome) == []
