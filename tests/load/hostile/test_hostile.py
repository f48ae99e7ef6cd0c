"""For any behaviour of a server, a run ends, each request is counted once with the right kind, and no worker fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cockpit.model.load import LoadPlan
from tests.load.hostile.cases import OK, SHORT
from tests.load.hostile.registry import CASES
from tests.load.servers import ClientConnection, Outcome, begin, engine_load, plan, serving
from tests.waiting import DEADLINE

REQUESTS = 5
# Concurrent runs, each with a worker process.
PARALLEL = 6
VARIANTS: dict[str, dict[str, Any]] = {
    "kept": {},
    "unkept": {"keepalive": False},
    "virtual users": {"cookies": True},
}


async def _run(name: str, variant: str, processes: asyncio.Semaphore, thread: asyncio.Semaphore) -> Outcome:
    """Run load against a case: kept connections with a worker process, all others in a thread."""
    case = CASES[name]
    kept = variant == "kept"
    async with processes if kept else thread, case.serve() as server:
        # Requests that time out do so at the same time.
        values = {"requests": REQUESTS, "concurrency": REQUESTS if case.timeout == SHORT else 3} | VARIANTS[variant]
        load_plan = plan(server.url, timeout=case.timeout, tls=case.tls(), **values, **case.plan)
        if kept:
            return await bounded(load_plan)
        return await engine_load(load_plan, "level-triggered" if variant == "unkept" else "best")


async def bounded(load_plan: LoadPlan) -> Outcome:
    """Run a plan; stop it at the deadline, so that it counts as stopped."""
    outcome = Outcome()
    run = await begin(load_plan, outcome)
    try:
        async with asyncio.timeout(DEADLINE):
            await run.wait()
    except TimeoutError:
        run.stop()
        await run.wait()
    return outcome


def check_end(outcome: Outcome, name: str = "") -> None:
    assert outcome.lost == [], name
    assert outcome.ended.reason == "completed", name


def check_counts(outcome: Outcome, name: str = "") -> None:
    """Check that each request is counted exactly once, and that the latencies agree with the counts."""
    errors = outcome.errors
    assert outcome.total("abandoned") == 0, name
    assert outcome.total("sent") == outcome.total("completed") + sum(errors.values()), name
    assert outcome.total("completed") == sum(outcome.statuses.values()), name
    given_up = errors.get("timeout", 0) + errors.get("connect_timeout", 0)
    assert outcome.merged("service").count == outcome.total("completed") + given_up, name
    assert outcome.merged("response").count in (0, outcome.merged("service").count), name
    assert outcome.ticks[-1].connections == 0, name


async def test_each_request_is_counted_once_as_expected() -> None:
    # Engines of a process share a buffer.
    processes, thread = asyncio.Semaphore(PARALLEL), asyncio.Semaphore(1)
    runs = [
        (name, variant)
        for variant in VARIANTS
        for name, case in CASES.items()
        if variant != "virtual users" or (case.behave and case.timeout > SHORT)
    ]
    outcomes = await asyncio.gather(*(_run(*run, processes, thread) for run in runs))
    for (name, variant), outcome in zip(runs, outcomes, strict=True):
        check_counts(outcome, name)
        if variant == "kept":
            check_end(outcome, name)
        assert outcome.total("sent") == REQUESTS, name
        assert {*outcome.statuses, *outcome.errors} <= set(CASES[name].expected), f"{name}, {variant}"


IDLE_BYTES: dict[str, bytes] = {
    "closes": b"",
    "sends 408": b"HTTP/1.1 408 Too Slow\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "sends garbage": b"\x00\x01\x02",
    "responds again": OK,
}


@pytest.mark.parametrize("idle", IDLE_BYTES)
async def test_bytes_on_idle_connection_are_no_response(idle: str) -> None:
    """Open load keeps idle connections; after unexpected bytes, the next request uses a new connection.

    Only a request that is sent before these bytes arrive may be affected.
    """
    hit = 0

    async def behave(client: ClientConnection) -> None:
        nonlocal hit
        await client.request()
        await client.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await client.send(IDLE_BYTES[idle])
        if idle != "closes":
            await client.request()
            hit += 1

    async with serving(behave) as server:
        outcome = await bounded(plan(server.url, requests=10, rate=50.0))
    check_counts(outcome)
    check_end(outcome)
    assert 10 - outcome.statuses[200] <= hit
    assert outcome.total("body_bytes") <= hit * len(OK)
