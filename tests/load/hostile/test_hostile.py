"""For any behaviour of a server, a run ends, and each request is counted once with the right kind."""

from typing import Any

import pytest

from tests.load.hostile.cases import OK, SHORT
from tests.load.hostile.registry import CASES
from tests.load.servers import ClientConnection, Outcome, engine_load, engine_run, plan

REQUESTS = 5
VARIANTS: dict[str, dict[str, Any]] = {"kept": {}, "unkept": {"keepalive": False}, "virtual users": {"cookies": True}}


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


@pytest.mark.parametrize("variant", VARIANTS)
async def test_each_request_is_counted_once_as_expected(variant: str) -> None:
    poller = "level-triggered" if variant == "unkept" else "best"
    for name, case in CASES.items():
        waits = case.timeout == SHORT
        if waits and variant != "kept":
            continue
        async with case.serve() as server:
            # Requests that time out do so at the same time.
            values = {"requests": REQUESTS, "concurrency": REQUESTS if waits else 3} | VARIANTS[variant] | case.plan
            outcome = await engine_load(plan(server.url, timeout=case.timeout, tls=case.tls(), **values), poller)
        check_counts(outcome, name)
        assert outcome.total("sent") == REQUESTS, name
        assert {*outcome.statuses, *outcome.errors} <= set(case.expected), name


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

    outcome, _ = await engine_run(behave, requests=10, rate=50.0)
    check_counts(outcome)
    assert 10 - outcome.statuses[200] <= hit
    assert outcome.total("body_bytes") <= hit * len(OK)
