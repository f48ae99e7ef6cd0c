"""A kept connection that the server closes: what is sent again, what is not, and that both sides count the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cockpit.model.load import PathList, Request, Tls
from tests.load.hostile.certificates import good, server_context
from tests.load.servers import POLLERS, Conversation, Outcome, Server, engine_load, plan, serving

EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
REQUESTS = 400
MODELS: dict[str, dict[str, Any]] = {
    "closed": {"concurrency": 5},
    "open": {"rate": 2000.0, "max_in_flight": 5},
}


class Received(Counter[bytes]):
    """How often the server received a request, by path."""

    async def request(self, talk: Conversation) -> None:
        self[(await talk.request()).split(b" ", 2)[1]] += 1


@asynccontextmanager
async def _closing_at_random(received: Received, *, secure: bool) -> AsyncIterator[Server]:
    """Closes a kept connection now and then: before the next request comes, or when it has come. Reads to its end."""
    chance = random.Random(1)

    async def behave(talk: Conversation) -> None:
        for _ in range(chance.randrange(1, 6)):
            await received.request(talk)
            await talk.send(EMPTY)
        if chance.random() < 0.5:
            await received.request(talk)
        if secure:
            return
        talk.writer.write_eof()
        while True:
            await received.request(talk)

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
async def test_an_idempotent_request_is_sent_again_and_counted(method: str, model: str, poller: str) -> None:
    outcome, received = await _run(method, model, secure=False, poller=poller)
    assert outcome.errors == {}
    assert outcome.total("retries") > 0
    assert received.total() == outcome.total("sent") + outcome.total("retries")


@pytest.mark.parametrize("poller", POLLERS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["POST", "PATCH", "PURGE"])
async def test_any_other_request_is_received_once_and_is_an_error_of_its_own_kind(
    method: str, model: str, poller: str
) -> None:
    outcome, received = await _run(method, model, secure=False, poller=poller)
    assert outcome.total("retries") == 0
    assert set(outcome.errors) == {"closed_before_response"}
    assert received.total() == outcome.total("sent")
    assert set(received.values()) == {1}


@pytest.mark.parametrize("model", MODELS)
async def test_over_tls_no_post_is_received_twice(model: str) -> None:
    outcome, received = await _run("POST", model, secure=True)
    assert outcome.total("retries") == 0
    assert set(outcome.errors) == {"closed_before_response"}
    assert set(received.values()) == {1}
    assert outcome.total("completed") <= received.total() <= outcome.total("sent")


@pytest.mark.parametrize("model", MODELS)
async def test_over_tls_each_get_that_is_received_twice_is_a_retry(model: str) -> None:
    outcome, received = await _run("GET", model, secure=True)
    assert outcome.errors == {}
    assert outcome.total("retries") > 0
    assert outcome.total("sent") <= received.total() <= outcome.total("sent") + outcome.total("retries")


async def test_a_mix_retries_by_the_method_of_each_request() -> None:
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
