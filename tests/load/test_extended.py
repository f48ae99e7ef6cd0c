"""A run that is extended past the end of its plan while a verdict or baseline is awaited, and then ends by its plan."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cockpit.load.pool import LoadRun, launch
from cockpit.model.clock import Clock
from cockpit.model.events import RunExtended
from cockpit.model.load import PathList, Stage
from tests.load.servers import DEADLINE, SMALL, Outcome, always, plan, serving

LONG = 3600.0
MODELS: dict[str, dict[str, Any]] = {
    "closed, by count": {"requests": 40, "workers": 2},
    "closed, by time": {"duration": 0.3},
    "closed, new connections": {"requests": 40, "keepalive": False},
    "open, by count": {"requests": 40, "rate": 400.0, "concurrency": 1, "workers": 2},
    "open, by time": {"duration": 0.3, "rate": 400.0, "concurrency": 1},
}


async def start_run(url: str, **values: Any) -> tuple[LoadRun, Outcome, Clock]:
    outcome, clock = Outcome(), Clock()
    return await launch(plan(url, tick=0.05, **values), 1, clock, outcome.emit), outcome, clock


async def wait_for_end(run: LoadRun) -> None:
    async with asyncio.timeout(DEADLINE):
        await run.wait()


def extensions(outcome: Outcome) -> list[RunExtended]:
    return [event for event in outcome.events if isinstance(event, RunExtended)]


@pytest.mark.parametrize("model", MODELS)
async def test_extended_run_continues_until_released(model: str) -> None:
    async with serving(always(SMALL)) as server:
        run, outcome, clock = await start_run(server.url, **MODELS[model])
        run.extend(clock.now() + LONG, "verdict", "A")
        await outcome.until(lambda seen: seen.total("completed") > 400)
        assert run.running
        run.extend(clock.now(), "verdict", "A")
        await wait_for_end(run)
    assert outcome.ended.reason == "completed"
    assert outcome.total("completed") + outcome.total("abandoned") == outcome.total("sent")
    extended, released = extensions(outcome)
    assert (extended.change, extended.awaited, extended.until > LONG) == ("A", "verdict", True)
    assert released.until == released.t


@pytest.mark.parametrize("model", MODELS)
async def test_extended_run_ends_at_limit(model: str) -> None:
    async with serving(always(SMALL)) as server:
        run, outcome, clock = await start_run(server.url, **MODELS[model])
        until = clock.now() + 1.0
        run.extend(until, "verdict")
        await wait_for_end(run)
    assert outcome.ended.reason == "completed" and outcome.ended.t >= until


@pytest.mark.parametrize("rate", [None, 200.0])
async def test_run_released_early_sends_exact_number_of_requests(rate: float | None) -> None:
    async with serving(always(SMALL)) as server:
        run, outcome, clock = await start_run(server.url, requests=400, rate=rate, concurrency=1 if rate else 2)
        run.extend(clock.now() + LONG, "baseline")
        run.extend(clock.now(), "baseline")
        await wait_for_end(run)
    assert outcome.total("completed") == 400


async def test_extended_run_stops_immediately() -> None:
    async with serving(always(SMALL)) as server:
        run, outcome, clock = await start_run(server.url, duration=0.2)
        run.extend(clock.now() + LONG, "verdict")
        await outcome.until(lambda seen: seen.total("completed") > 50)
        run.stop()
        run.extend(clock.now() + LONG, "verdict")
        await wait_for_end(run)
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
        await wait_for_end(run)
    assert extensions(outcome) == []
