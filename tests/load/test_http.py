"""All framings and failures of responses, and retries: each request is counted once, with the right kind."""

import asyncio
import itertools
import math
import random
from collections import Counter
from typing import Any

import pytest

from cockpit.load.http.closing import Closing
from cockpit.model.load.plan import Expect, Request
from tests.load.certificates import certificate, server_context, trusting
from tests.load.hostile.cases import drips
from tests.load.pairs import Pairs
from tests.load.servers import (
    POLLERS,
    SMALL,
    Behaviour,
    ClientConnection,
    always,
    engine_load,
    engine_run,
    once,
    plan,
    serving,
)

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: 1\r\n\r\n"
CHUNKED_CLOSING = CHUNKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\nhello, and no length"
CLOSING = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
BARE = b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi"
BARE_CHUNKED = b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n" + CHUNKED.partition(b"\r\n\r\n")[2]
BIG = b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + b"x" * 3_000_000

GOOD: dict[str, tuple[Behaviour, int, int]] = {
    "content-length": (always(SMALL), 200, len(SMALL)),
    "empty": (always(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 200, 38),
    "chunked": (always(CHUNKED), 200, len(CHUNKED)),
    "chunked in pieces": (always(CHUNKED[:20], CHUNKED[20:50], CHUNKED[50:58], CHUNKED[58:]), 200, len(CHUNKED)),
    "no content": (always(b"HTTP/1.1 204 No Content\r\n\r\n"), 204, 27),
    "not modified": (always(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 50\r\n\r\n"), 304, 49),
    "not found": (always(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"), 404, 47),
    "until close": (once(UNTIL_CLOSE), 200, len(UNTIL_CLOSE)),
    "until close in pieces": (once(UNTIL_CLOSE[:10], UNTIL_CLOSE[10:25], UNTIL_CLOSE[25:]), 200, len(UNTIL_CLOSE)),
    "http/1.0": (once(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi"), 200, 40),
    "connection close": (once(CLOSING), 200, len(CLOSING)),
    "connection close, unkept": (always(CLOSING), 200, len(CLOSING)),
    "chunked, then close": (once(CHUNKED_CLOSING), 200, len(CHUNKED_CLOSING)),
    "continue first": (always(b"HTTP/1.1 100 Continue\r\n\r\n", SMALL), 200, 25 + len(SMALL)),
    "head in pieces": (always(SMALL[:3], SMALL[3:19], SMALL[19:38], SMALL[38:]), 200, len(SMALL)),
    "large": (always(BIG), 200, len(BIG)),
    "bare line feeds": (always(BARE), 200, len(BARE)),
    "bare line feeds in pieces": (always(BARE[:9], BARE[9:16], BARE[16:35], BARE[35:]), 200, len(BARE)),
    "bare line feeds, chunked": (always(BARE_CHUNKED), 200, len(BARE_CHUNKED)),
    "some bare line feeds": (always(BARE.replace(b"OK\n", b"OK\r\n")), 200, len(BARE) + 1),
    "excess bytes": (once(SMALL + b"more"), 200, len(SMALL) + 4),
}


@pytest.mark.parametrize(("keepalive", "poller"), [(True, "best"), (False, "level-triggered")])
@pytest.mark.parametrize("name", GOOD)
async def test_good_responses(name: str, keepalive: bool, poller: str) -> None:
    behaviour, status, size = GOOD[name]
    outcome, server = await engine_run(behaviour, poller, requests=21, concurrency=4, keepalive=keepalive)
    assert outcome.statuses == {status: 21}
    assert outcome.errors == {}
    assert (outcome.total("sent"), outcome.total("completed"), outcome.total("abandoned")) == (21, 21, 0)
    assert outcome.total("bytes_received") == 21 * size
    assert outcome.merged("service").count == outcome.merged("first_byte").count == 21
    assert outcome.merged("connect").count == len(server.connections)


async def test_head_has_no_body() -> None:
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"
    outcome, server = await engine_run(always(reply), method="HEAD", requests=20)
    assert outcome.statuses == {200: 20}
    assert outcome.total("bytes_received") == 20 * len(reply)
    assert len(server.connections) == 4


@pytest.mark.parametrize("poller", POLLERS)
async def test_missing_close_after_announcement_does_not_limit_rate(poller: str) -> None:
    """Waiting 0.1 s per request for the announced close would take 30 s."""
    async with serving(once(CLOSING, hold=True)) as server:
        async with asyncio.timeout(25):
            outcome = await engine_load(plan(server.url, requests=300, concurrency=1), poller)
    assert outcome.statuses == {200: 300}
    assert outcome.total("unclosed") == 300


@pytest.mark.parametrize("poller", POLLERS)
async def test_announced_close_is_awaited(poller: str) -> None:
    outcome, _ = await engine_run(once(CLOSING), poller, requests=40)
    assert outcome.statuses == {200: 40}
    assert outcome.total("unclosed") < 40


def test_next_request_starts_when_the_server_closes() -> None:
    engine = Pairs(plan("http://web1/"))
    engine.begin()
    engine.deliver(CLOSING)
    engine.over = False
    engine.end()
    assert engine.over and engine.connection.close_deadline == math.inf
    engine.close()


def test_wait_for_close_resumes_after_a_close() -> None:
    closing = Closing()
    for _ in range(4):
        assert closing.waits()
        closing.expired()
    waits = [closing.waits() for _ in range(2000)]
    assert waits.count(True) == 2
    closing.closed()
    assert closing.waits()


UNPRINTABLE = b"/\x9b31m/caf\xe9 \t?a=%41#b"
REDIRECTS = {
    "known": (b"/login?next=%2Fx", "/login?next=%2Fx"),
    "unprintable": (UNPRINTABLE + b"y" * 9000, "/%9B31m/caf%E9%20%09?a=%41#b" + "y" * (2000 - len(UNPRINTABLE))),
}


@pytest.mark.parametrize("name", REDIRECTS)
async def test_redirect_target_is_printable_and_in_each_tick_with_redirects(name: str) -> None:
    location, printable = REDIRECTS[name]

    async def behave(client: ClientConnection) -> None:
        for number in itertools.count():
            await client.request()
            head = b"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\nDate: %d\r\n\r\n"
            await client.send(head % (location, number))

    async with serving(behave) as server:
        outcome = await engine_load(plan(server.url, requests=100, tick=0.005))
        expected = await engine_load(plan(server.url, requests=10, expect=Expect(statuses=(302,))))
    assert outcome.statuses == {302: 100}
    assert {tick.redirect for tick in outcome.ticks if tick.completed} == {printable}
    assert {tick.redirect for tick in expected.ticks} == {""}


@pytest.mark.parametrize("poller", POLLERS)
async def test_body_larger_than_buffers_is_sent_completely(poller: str) -> None:
    seen: list[int] = []

    async def behave(client: ClientConnection) -> None:
        while True:
            request = await client.request()
            seen.append(request.count(b"y"))
            await client.send(SMALL)

    body = "y" * 9_000_000
    outcome, _ = await engine_run(behave, poller, method="POST", body=body, requests=6, concurrency=2, timeout=20.0)
    assert outcome.errors == {}
    assert seen == [len(body)] * 6
    assert outcome.total("bytes_sent") > 6 * len(body)


@pytest.mark.parametrize("poller", POLLERS)
async def test_timeout_counts_in_latency(poller: str) -> None:
    outcome, _ = await engine_run(once(hold=True), poller, requests=9, timeout=0.15)
    assert outcome.errors == {"timeout": 9}
    assert outcome.merged("service").count == 9
    assert outcome.merged("service").min >= 0.15
    assert outcome.merged("first_byte").count == 0


async def test_timeout_covers_complete_slow_response() -> None:
    async with serving(drips(b"HTTP/1.1 200 OK\r\nContent-Length: 6000\r\n\r\n" + b"x" * 6000, 0.01)) as server:
        # On a busy machine the response may not start within a short time-out.
        for timeout in (0.2, 1.0, 5.0, 25.0):
            outcome = await engine_load(plan(server.url, requests=4, timeout=timeout))
            assert outcome.errors == {"timeout": 4}
            assert outcome.merged("service").count == 4
            if outcome.merged("first_byte").count == 4:
                return
    pytest.fail("no response started")


EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
IDEMPOTENT = ("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE")
OTHERS = ("POST", "PATCH", "PURGE")
EACH_METHOD = 30
ALL = EACH_METHOD * len((*IDEMPOTENT, *OTHERS))
RETRIED: dict[str, dict[str, Any]] = {"closed": {"concurrency": 5}, "open": {"rate": 2000.0, "max_in_flight": 5}}


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("model", RETRIED)
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
        load_plan = plan(server.url, mix=mix, requests=ALL, tls=trusting(), **RETRIED[model])
        outcome = await engine_load(load_plan, poller)
        retries = outcome.total("retries")
        if not secure:
            await server.until(lambda: received.total() >= ALL + retries)
    failing = {method for method, groups in outcome.groups.items() if any(group.errors for group in groups)}
    sent = {method: sum(group.sent for group in groups) for method, groups in outcome.groups.items()}
    assert sent == dict.fromkeys((*IDEMPOTENT, *OTHERS), EACH_METHOD)
    assert outcome.total("completed") + sum(outcome.errors.values()) == ALL
    assert outcome.total("reconnects") > 0 and retries > 0
    assert failing <= set(OTHERS)
    assert set(outcome.errors) == {"closed_before_response"}
    if secure:
        assert all(received[method] <= EACH_METHOD for method in OTHERS)
        assert outcome.total("completed") <= received.total() <= ALL + retries
    else:
        assert all(received[method] == EACH_METHOD for method in OTHERS)
        assert received.total() == ALL + retries
