"""Requests per connection and think time, as observed by a server."""

from random import Random
from statistics import fmean
from time import monotonic
from typing import Any

import pytest

from cockpit.load.think_time import pauses_of
from cockpit.model.load.plan import Request, ThinkTime
from tests.load.servers import (
    SMALL,
    ClientConnection,
    Outcome,
    always,
    begin,
    closing_after,
    engine_load,
    engine_run,
    once,
    plan,
    serving,
)
from tests.waiting import DEADLINE

MODELS: dict[str, dict[str, Any]] = {"closed": {"concurrency": 3}, "open": {"rate": 2000.0, "max_in_flight": 3}}
MODELS["think time"] = MODELS["closed"] | {"think_time": ThinkTime(seconds=0.001)}
CLOSING = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"


async def closes_on_request(client: ClientConnection) -> None:
    """Respond to all requests; close the connection if a request announces it."""
    last = False
    while not last:
        last = b"\r\nConnection: close\r\n" in await client.request()
        await client.send(CLOSING if last else SMALL)


# --- requests per connection ---


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("behave", "poller"), [(closes_on_request, "best"), (always(SMALL), "level-triggered")], ids=["closes", "stays"]
)
async def test_connections_carry_planned_number_of_requests(model: str, poller: str, behave: Any) -> None:
    async with serving(behave) as server:
        outcome = await engine_load(plan(server.url, requests=62, requests_per_connection=5, **MODELS[model]), poller)
        carried = [client.requests for client in server.connections if client.requests]
    assert sum(carried) == outcome.total("completed") == 62
    assert max(carried) == 5
    # All but the last connection of each of the three users carry five.
    assert 13 <= len(carried) <= 15
    assert outcome.errors == {} and outcome.total("reconnects") == 0
    assert outcome.merged("connect").count == len(server.connections)


async def test_last_request_of_connection_announces_close() -> None:
    seen: list[bytes] = []

    async def behave(client: ClientConnection) -> None:
        while True:
            seen.append(await client.request())
            await client.send(SMALL)

    async with serving(behave) as server:
        mix = (Request(name="a", url=server.url), Request(name="b", url=server.url, method="POST", body="x HTTP/1.1"))
        await engine_load(plan(server.url, mix=mix, requests=9, concurrency=1, requests_per_connection=3))
    assert [b"Connection: close" in request for request in seen] == 3 * [False, False, True]
    assert all(request.count(b"close") <= 1 and request.count(b"Host:") == 1 for request in seen)


async def test_reconnect_restarts_requests_per_connection() -> None:
    async with serving(closing_after(2)) as server:
        outcome = await engine_load(plan(server.url, requests=20, concurrency=1, requests_per_connection=3))
        assert max(client.requests for client in server.connections) == 2
    assert outcome.total("completed") == 20 and outcome.errors == {}


# --- think time ---


async def test_each_connection_pauses_for_think_time() -> None:
    think, gaps = 0.1, list[float]()

    async def behave(client: ClientConnection) -> None:
        await client.request()
        while True:
            responded = monotonic()
            await client.send(SMALL)
            await client.request()
            gaps.append(monotonic() - responded)

    outcome, _ = await engine_run(behave, requests=16, concurrency=4, think_time=ThinkTime(seconds=think))
    assert len(gaps) == 12 and min(gaps) >= think
    assert outcome.total("completed") == outcome.merged("service").count == 16
    # Latency excludes the pause: the latency of all requests is less than their pauses.
    assert outcome.merged("service").mean * 16 < sum(gaps)
    assert outcome.merged("service").min < think


async def test_first_requests_are_spread_over_think_time() -> None:
    arrivals: list[float] = []

    async def behave(client: ClientConnection) -> None:
        await client.request()
        arrivals.append(monotonic())
        await client.send(SMALL)

    async with serving(behave) as server:
        await engine_load(plan(server.url, requests=4, concurrency=4, think_time=ThinkTime(seconds=0.8)))
    # The fourth is due 0.6 s after the first; a busy machine may delay the first by some of that.
    assert arrivals[-1] - arrivals[0] > 0.3


async def test_counted_run_does_not_wait_for_last_think_time() -> None:
    """The think time is longer than the test may take."""
    outcome, _ = await engine_run(always(SMALL), requests=1, concurrency=1, think_time=ThinkTime(seconds=2 * DEADLINE))
    assert outcome.total("completed") == 1


async def test_close_during_think_time_reconnects_without_error() -> None:
    async with serving(once(SMALL)) as server:
        outcome = await engine_load(plan(server.url, requests=10, concurrency=5, think_time=ThinkTime(seconds=0.5)))
        assert len(server.connections) == 10
    assert outcome.total("completed") == 10
    assert outcome.errors == {} and outcome.total("retries") == 0
    # A close that arrives with the last response counts, too.
    assert 8 <= outcome.total("reconnects") <= 10


async def test_thinking_connections_are_adjusted() -> None:
    outcome = Outcome()

    def open_connections(seen: Outcome) -> int:
        return seen.ticks[-1].connections if seen.ticks else 0

    async with serving(always(SMALL)) as server:
        think = ThinkTime(seconds=DEADLINE)
        run = await begin(plan(server.url, duration=600.0, concurrency=1, think_time=think), outcome)
        await outcome.until(lambda seen: seen.total("completed") == 1)
        run.adjust(concurrency=5)
        # The first of the four added connections starts immediately.
        await outcome.until(lambda seen: open_connections(seen) == 2 and seen.total("completed") == 2)
        run.adjust(concurrency=1)
        await outcome.until(lambda seen: open_connections(seen) <= 1)
        run.stop()
        await run.wait()
    assert outcome.errors == {} and outcome.total("abandoned") == 0


@pytest.mark.parametrize(
    ("think", "low", "mean", "high"),
    [
        (ThinkTime(seconds=0.5), 0.5, 0.5, 0.5),
        (ThinkTime(seconds=0.2, most=2.0, distribution="uniform"), 0.2, 1.1, 2.0),
        (ThinkTime(seconds=1.0, distribution="exponential"), 0.0, 1.0, 20.0),
    ],
)
def test_think_times_follow_distribution(think: ThinkTime, low: float, mean: float, high: float) -> None:
    draw = pauses_of(think, Random(1))
    drawn = [draw() for _ in range(20_000)]
    assert low <= min(drawn) and max(drawn) <= high
    assert fmean(drawn) == pytest.approx(mean, rel=0.05)
    assert len(set(drawn)) == (1 if think.distribution == "constant" else len(drawn))
