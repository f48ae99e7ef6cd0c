"""Requests in flight in ticks: their number, the age of the oldest, and each counted once."""

from __future__ import annotations

import asyncio

import pytest

from tests.load.servers import SMALL, ClientConnection, Outcome, always, begin, plan, serving


@pytest.mark.parametrize("load", [{"concurrency": 4}, {"rate": 40.0}], ids=["closed", "open"])
async def test_unanswered_requests_are_in_flight_with_growing_age(load: dict[str, object]) -> None:
    released = asyncio.Event()

    async def behave(client: ClientConnection) -> None:
        while True:
            await client.request()
            await released.wait()
            await client.send(SMALL)

    async with serving(behave) as server:
        outcome = Outcome()
        run = await begin(plan(server.url, duration=60.0, **load), outcome)
        await outcome.until(lambda seen: bool(seen.ticks) and seen.ticks[-1].oldest >= 0.5)
        stalled = outcome.ticks[-1]
        assert stalled.in_flight == outcome.total("sent"), "all sent requests are in flight"
        assert stalled.silence >= 0.5
        assert stalled.completed == 0
        released.set()
        await outcome.until(lambda seen: seen.ticks[-1].completed > 0)
        first = next(tick for tick in outcome.ticks if tick.completed)
        assert first.silence == 0.0
        await outcome.until(lambda seen: seen.ticks[-1].oldest < 0.5)
        run.stop()
        await run.wait()
    ended = outcome.total("completed") + outcome.total("abandoned") + sum(outcome.errors.values())
    assert outcome.total("sent") == ended
    assert outcome.ticks[-1].in_flight == 0


async def test_responding_server_is_never_silent() -> None:
    async with serving(always(SMALL)) as server:
        outcome = Outcome()
        run = await begin(plan(server.url, requests=2000), outcome)
        await run.wait()
    assert all(tick.silence == 0.0 for tick in outcome.ticks if tick.completed)
    assert all(tick.in_flight <= 4 for tick in outcome.ticks)
