"""Retries after the server closes a kept connection: by method, and with equal counts on both sides."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cockpit.model.load import PathList, Request, Tls
from tests.load.hostile.certificates import good, server_context
from tests.load.servers import POLLERS, ClientConnection, Outcome, Server, engine_load, plan, serving

EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
REQUESTS = 400
MODELS: dict[str, dict[str, Any]] = {
    "closed": {"concurrency": 5},
    "open": {"rate": 2000.0, "max_in_flight": 5},
}


class Received(Counter[bytes]):
    """The number of requests that the server received, by path."""

    async def request(self, client: ClientConnection) -> None:
        self[(await client.request()).split(b" ", 2)[1]] += 1


@asynccontextmanager
async def _closing_at_random(received: Received, *, secure: bool) -> AsyncIterator[Server]:
    """Run a server that closes kept connections at random, before or after the next request; it reads until the end."""
    rng = random.Random(1)

    async def behave(client: ClientConnection) -> None:
        for _ in range(rng.randrange(1, 6)):
            await received.request(client)
            await client.send(EMPTY)
        if rng.random() < 0.5:
            await received.request(client)
        if secure:
            return
        client.writer.write_eof()
        while True:
            await received.request(client)

    async with serving(behave, server_context(good()) if secure else None) as server:
        yield server


async def _run(method: str, model: str, *, secure: bool, poller: str = "best") -> tuple[Outcome, Received]:
    received = Received()
    async with _closing_at_random(received, secure=secure) as server:
        url = server.url.replace("http:", "https:") if secure else server.url
        paths = PathList(pattern=f"/{{1..{REQUESTS}}}", order="once")
        load_plan = plan(url, method=method, paths=paths, tls=Tls(ca=str(good())), **MODELS[model])
        outcome = await engine_load(load_plan, poller)
        if not secure:
            await server.until(lambda: received.total() >= REQUESTS + outcome.total("retries"))
    errors = sum(outcome.errors.values())
    assert outcome.total("sent") == outcome.total("completed") + errors == REQUESTS
    assert outcome.total("reconnects") > 0
    return outcome, received


@pytest.mark.parametrize("poller", POLLERS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"])
async def test_idempotent_request_is_retried_and_counted(method: str, model: str, poller: str) -> None:
    outcome, received = await _run(method, model, secure=False, poller=poller)
    assert outcome.errors == {}
    assert outcome.total("retries") > 0
    assert received.total() == outcome.total("sent") + outcome.total("retries")


@pytest.mark.parametrize("poller", POLLERS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["POST", "PATCH", "PURGE"])
async def test_other_request_is_not_retried_and_counts_as_error(method: str, model: str, poller: str) -> None:
    outcome, received = await _run(method, model, secure=False, poller=poller)
    assert outcome.total("retries") == 0
    assert set(outcome.errors) == {"closed_before_response"}
    assert received.total() == outcome.total("sent")
    assert set(received.values()) == {1}


@pytest.mark.parametrize("model", MODELS)
async def test_post_over_tls_is_not_retried(model: str) -> None:
    outcome, received = await _run("POST", model, secure=True)
    assert outcome.total("retries") == 0
    assert set(outcome.errors) == {"closed_before_response"}
    assert set(received.values()) == {1}
    assert outcome.total("completed") <= received.total() <= outcome.total("sent")


@pytest.mark.parametrize("model", MODELS)
async def test_get_over_tls_is_retried_and_counted(model: str) -> None:
    outcome, received = await _run("GET", model, secure=True)
    assert outcome.errors == {}
    assert outcome.total("retries") > 0
    assert outcome.total("sent") <= received.total() <= outcome.total("sent") + outcome.total("retries")


async def test_mix_retries_by_method_of_request() -> None:
    received = Received()
    async with _closing_at_random(received, secure=False) as server:
        mix = (Request(name="read", url=server.url), Request(name="write", url=server.url, method="POST"))
        outcome = await engine_load(plan(server.url, mix=mix, requests=REQUESTS))
        await server.until(lambda: received.total() >= REQUESTS + outcome.total("retries"))
    assert received.total() == outcome.total("sent") + outcome.total("retries")
    assert outcome.total("retries") > 0
    groups = outcome.groups
    assert not any(group.errors for group in groups["read"])
    assert {kind for group in groups["write"] for kind in group.errors} == {"closed_before_response"}
