"""Open load against real servers: all arrivals are sent, and both latencies are correct."""

from __future__ import annotations

import pytest

from cockpit.load.protocol import assignments
from tests.load.servers import (
    POLLERS,
    SMALL,
    Outcome,
    always,
    begin,
    closing_after,
    engine_load,
    load,
    once,
    plan,
    serving,
)

RATE = 400.0


def finished(outcome: Outcome) -> int:
    return outcome.total("completed") + outcome.total("abandoned") + sum(outcome.errors.values())


@pytest.mark.parametrize(("keepalive", "workers"), [(True, 1), (False, 3)])
async def test_all_arrivals_are_sent(keepalive: bool, workers: int) -> None:
    async with serving(always(SMALL)) as server:
        outcome = await load(plan(server.url, rate=RATE, duration=0.5, keepalive=keepalive, workers=workers))
    assert outcome.total("sent") == RATE / 2
    assert outcome.total("queued") == 0
    assert finished(outcome) == RATE / 2
    assert outcome.merged("response").count == outcome.merged("service").count == outcome.total("completed")
    # A lag value per arrival, and per tick except the last.
    assert outcome.merged("lag").count >= RATE / 2
    assert {tick.worker for tick in outcome.ticks} == set(range(workers))
    if not keepalive:
        assert outcome.merged("connect").count >= outcome.total("completed")


@pytest.mark.parametrize("poller", POLLERS)
async def test_number_of_requests_is_exact(poller: str) -> None:
    async with serving(always(SMALL)) as server:
        outcome = await engine_load(plan(server.url, rate=2000.0, requests=301, arrivals="poisson"), poller)
        assert server.requests == 301
    assert outcome.total("sent") == outcome.total("completed") == 301
    assert outcome.statuses == {200: 301}
    assert outcome.total("body_bytes") == 301 * 5


def test_arrivals_are_shared_exactly() -> None:
    shares = assignments(plan("http://web1/", rate=10.0, requests=11, workers=4, max_in_flight=9), 1, ("x", 1))
    assert [share.requests for share in shares] == [3, 3, 3, 2]
    assert sum(share.in_flight for share in shares) == 9
    assert len(assignments(plan("http://web1/", rate=10.0, duration=1.0, workers=4, max_in_flight=3), 1, ("x", 1))) == 3


async def test_connections_are_reused_and_close_is_no_error() -> None:
    async with serving(closing_after(5)) as server:
        outcome = await engine_load(plan(server.url, rate=300.0, requests=150))
        assert 30 <= len(server.connections) < 150
    assert outcome.errors == {}
    assert outcome.total("completed") == outcome.total("sent") == 150


@pytest.mark.parametrize("poller", POLLERS)
async def test_connection_close_frees_slot_in_flight(poller: str) -> None:
    closing = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    async with serving(always(closing)) as server:
        outcome = await engine_load(plan(server.url, rate=100.0, requests=20, max_in_flight=1), poller)
    assert outcome.statuses == {200: 20}


async def test_timeout_counts_in_both_latencies() -> None:
    async with serving(once(hold=True)) as server:
        outcome = await engine_load(plan(server.url, rate=100.0, requests=12, timeout=0.1))
    assert outcome.errors == {"timeout": 12}
    assert outcome.merged("service").count == outcome.merged("response").count == 12
    assert outcome.merged("service").min >= 0.1
    assert outcome.merged("response").total_ns >= outcome.merged("service").total_ns


async def test_each_refused_arrival_is_counted() -> None:
    async with serving(always(SMALL)) as server:
        pass
    outcome = await engine_load(plan(server.url, rate=200.0, requests=50))
    assert outcome.errors == {"refused": 50}
    assert outcome.total("sent") == 50


async def test_rate_of_current_run_is_adjusted() -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, rate=1.0, duration=600.0, workers=2), outcome)
        run.adjust(rate=500.0)
        await server.until(lambda: server.requests >= 150)
        run.stop()
        await run.wait()
    [adjusted] = outcome.adjusted
    assert (adjusted.run, adjusted.rate, adjusted.concurrency) == (1, 500.0, None)
    assert outcome.ended.reason == "stopped"
    assert finished(outcome) == outcome.total("sent")
