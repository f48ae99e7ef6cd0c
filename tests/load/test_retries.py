"""Retries after the server closes a kept connection: by method, and with equal counts on both sides."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from cockpit.model.load import Request
from tests.load.certificates import certificate, server_context, trusting
from tests.load.servers import POLLERS, ClientConnection, engine_load, plan, serving

EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
IDEMPOTENT = ("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE")
OTHERS = ("POST", "PATCH", "PURGE")
EACH = 30
REQUESTS = EACH * len((*IDEMPOTENT, *OTHERS))
MODELS: dict[str, dict[str, Any]] = {
    "closed": {"concurrency": 5},
    "open": {"rate": 2000.0, "max_in_flight": 5},
}


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("poller", POLLERS)
async def test_only_idempotent_requests_are_retried_and_counted(model: str, poller: str, secure: bool) -> None:
    """The server closes kept connections at random, before or after the next request; it reads until the end."""
    received: Counter[str] = Counter()
    rng = random.Random(1)

    async def receive(client: ClientConnection) -> None:
        received[(await client.request()).split(b" ", 1)[0].decode()] += 1

    async def behave(client: ClientConnection) -> None:
        for _ in range(rng.randrange(1, 6)):
            await receive(client)
            await client.send(EMPTY)
        if rng.random() < 0.5:
            await receive(client)
        if secure:
            return
        client.writer.write_eof()
        while True:
            await receive(client)

    async with serving(behave, server_context(certificate()) if secure else None) as server:
        mix = tuple(Request(name=method, url=server.url, method=method) for method in (*IDEMPOTENT, *OTHERS))
        load_plan = plan(server.url, mix=mix, requests=REQUESTS, tls=trusting(), **MODELS[model])
        outcome = await engine_load(load_plan, poller)
        retries = outcome.total("retries")
        if not secure:
            await server.until(lambda: received.total() >= REQUESTS + retries)
    failing = {method for method, groups in outcome.groups.items() if any(group.errors for group in groups)}
    sent = {method: sum(group.sent for group in groups) for method, groups in outcome.groups.items()}
    assert sent == dict.fromkeys((*IDEMPOTENT, *OTHERS), EACH)
    assert outcome.total("completed") + sum(outcome.errors.values()) == REQUESTS
    assert outcome.total("reconnects") > 0 and retries > 0
    assert failing <= set(OTHERS)
    assert set(outcome.errors) == {"closed_before_response"}
    if secure:
        assert all(received[method] <= EACH for method in OTHERS)
        assert outcome.total("completed") <= received.total() <= REQUESTS + retries
    else:
        assert all(received[method] == EACH for method in OTHERS)
        assert received.total() == REQUESTS + retries
