"""Runs: exact counts, ends, stops, and dead workers."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from cockpit.load import preflight
from cockpit.load.pool import launch
from cockpit.model.clock import Clock
from cockpit.model.errors import TargetError, UsageError
from tests.load.servers import (
    DEADLINE,
    SMALL,
    ClientConnection,
    Outcome,
    always,
    begin,
    load,
    load_until,
    plan,
    serving,
)
from tests.processes import newer_children


@pytest.mark.parametrize(
    ("requests", "concurrency", "workers"),
    [(1, 1, 1), (20, 20, 2), (23, 20, 3), (1000, 20, 1), (1001, 7, 2), (50, 5, 5)],
)
@pytest.mark.parametrize("keepalive", [True, False])
async def test_number_of_requests_is_exact(requests: int, concurrency: int, workers: int, keepalive: bool) -> None:
    async with serving(always(SMALL)) as server:
        outcome = await load(
            plan(server.url, requests=requests, concurrency=concurrency, workers=workers, keepalive=keepalive)
        )
    assert server.requests == requests
    assert outcome.total("sent") == outcome.total("completed") == requests
    assert outcome.total("bytes_received") == requests * len(SMALL)
    assert outcome.merged("service").count == outcome.merged("first_byte").count == requests
    assert len(server.connections) <= (concurrency if keepalive else requests)
    assert outcome.merged("connect").count == len(server.connections)
    assert {tick.worker for tick in outcome.ticks} == set(range(min(workers, concurrency)))


async def test_events_are_ordered_and_ticks_have_no_gap() -> None:
    async with serving(always(SMALL)) as server:
        outcome = await load_until(
            lambda factor: plan(server.url, duration=0.5 * factor, workers=2, tick=0.05),
            lambda seen: min(Counter(tick.worker for tick in seen.ticks).values()) > 2,
        )
    assert outcome.events[0] is outcome.started
    assert outcome.events[-1] is outcome.ended
    assert outcome.started.addresses == ("127.0.0.1",)
    for worker in (0, 1):
        ticks = [tick for tick in outcome.ticks if tick.worker == worker]
        assert ticks[0].start == pytest.approx(outcome.started.t)
        assert all(before.t == after.start for before, after in pairwise(ticks))
        assert ticks[-1].connections == 0
        assert len(ticks) > 2
        assert all(tick.lag.count for tick in ticks[:-1])
    assert outcome.ended.t >= max(tick.t for tick in outcome.ticks)
    assert outcome.total("cpu") > 0


async def test_requests_in_flight_at_end_are_abandoned_without_errors() -> None:
    async def behave(client: ClientConnection) -> None:
        await client.request()
        await client.reader.read()

    async with serving(behave) as server:
        outcome = await load_until(
            lambda factor: plan(server.url, duration=0.3 * factor, concurrency=5), lambda seen: seen.total("sent") == 5
        )
    assert (outcome.total("sent"), outcome.total("completed"), outcome.total("abandoned")) == (5, 0, 5)
    assert outcome.errors == {}
    assert outcome.merged("service").count == 0
    assert outcome.ended.reason == "completed"


@pytest.mark.usefixtures("real_workers")
async def test_run_with_duration_accounts_for_all_requests() -> None:
    async with serving(always(SMALL)) as server:
        outcome = await load(plan(server.url, duration=0.4, workers=2))
    assert outcome.total("sent") == outcome.total("completed") + outcome.total("abandoned")
    assert outcome.total("completed") <= server.requests <= outcome.total("sent")
    assert outcome.total("abandoned") <= 4


@pytest.mark.usefixtures("real_workers")
async def test_stopped_run_accounts_for_all_requests() -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, duration=600.0, workers=2), outcome)
        await outcome.until(lambda seen: seen.total("completed") > 50)
        run.stop()
        run.stop()
        async with asyncio.timeout(DEADLINE):
            await run.wait()
    assert not run.running
    assert outcome.ended.reason == "stopped"
    assert outcome.lost == []
    assert outcome.total("sent") == outcome.total("completed") + outcome.total("abandoned")


@pytest.mark.usefixtures("real_workers")
async def test_dead_worker_is_reported_and_others_continue() -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, duration=600.0, workers=2), outcome)
        await outcome.until(lambda seen: {tick.worker for tick in seen.ticks} == {0, 1})
        os.kill(run.pids[1], signal.SIGKILL)
        await outcome.until(lambda seen: bool(seen.lost))
        [lost] = outcome.lost
        assert (lost.run, lost.worker) == (1, 1)
        assert "SIGKILL" in lost.detail
        before = len(outcome.ticks)
        await outcome.until(lambda seen: len(seen.ticks) > before + 2)
        assert all(tick.worker == 0 for tick in outcome.ticks[before:])
        run.stop()
        await run.wait()
    assert outcome.ended.reason == "stopped"
    assert "partial" in outcome.ended.detail


@pytest.mark.usefixtures("real_workers")
async def test_run_fails_if_all_workers_die() -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, duration=600.0), outcome)
        await outcome.until(lambda seen: bool(seen.ticks))
        os.kill(run.pids[0], signal.SIGKILL)
        async with asyncio.timeout(DEADLINE):
            await run.wait()
    assert outcome.ended.reason == "failed"
    assert "SIGKILL" in outcome.ended.detail


@pytest.mark.usefixtures("real_workers")
async def test_suspended_worker_does_not_block_end_of_run() -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, duration=600.0), outcome)
        await outcome.until(lambda seen: bool(seen.ticks))
        os.kill(run.pids[0], signal.SIGSTOP)
        run.stop()
        async with asyncio.timeout(DEADLINE):
            await run.wait()
    assert [lost.worker for lost in outcome.lost] == [0]


async def test_secrets_are_not_in_events() -> None:
    async with serving(always(SMALL)) as server:
        url = server.url.replace("//", "//user:pass@")
        outcome = await load(plan(url, requests=2, headers=(("Authorization", "Bearer abc"), ("X", "y"))))
    assert "pass" not in repr(outcome.started)
    assert "abc" not in repr(outcome.started)
    assert outcome.total("completed") == 2


@pytest.mark.usefixtures("real_workers")
async def test_workers_run_on_given_cpus() -> None:
    cpu = max(os.sched_getaffinity(0))
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, duration=600.0, cpus=(cpu,)), outcome)
        assert os.sched_getaffinity(run.pids[0]) == {cpu}
        run.stop()
        await run.wait()


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"cpus": (4095,)}, UsageError, "CPU 4095"),
        ({"concurrency": 0}, UsageError, "load.concurrency: found 0"),
        ({"timeout": 0.0}, UsageError, "load.timeout: found 0"),
        ({"concurrency": 50_000_000}, UsageError, "ulimit -Hn"),
        ({"url": "ftp://127.0.0.1/"}, UsageError, "http://"),
        ({"url": "http://no-such-host.invalid/"}, TargetError, "no-such-host.invalid"),
    ],
)
async def test_invalid_plan_is_refused_before_any_event(
    values: dict[str, Any], error: type[Exception], message: str
) -> None:
    outcome = Outcome()
    with pytest.raises(error, match=message):
        await launch(plan(**{"url": "http://127.0.0.1:9/", **values}), 1, Clock(), outcome.emit)
    assert outcome.events == []


@pytest.mark.usefixtures("real_workers")
async def test_cancelled_launch_ends_and_leaves_no_process() -> None:
    load = plan("http://127.0.0.1:9/", rate=50.0, duration=600.0, workers=2)
    addresses = await preflight.resolve(load)
    found = preflight.Preflight(address=addresses[0], addresses=("127.0.0.1",))
    workers = newer_children()
    for iterations in range(20):
        outcome = Outcome()
        starting = asyncio.create_task(launch(load, 1, Clock(), outcome.emit, found))
        for _ in range(iterations):
            await asyncio.sleep(0)
        starting.cancel()
        done, _ = await asyncio.wait([starting], timeout=DEADLINE)
        assert done and starting.cancelled(), f"cancelled after {iterations} iterations of the event loop"
        assert workers() == []
