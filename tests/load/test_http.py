"""Every way a reply can be framed or fail: each request is counted once, under its right name."""

from __future__ import annotations

import asyncio
import itertools
import socket

import pytest

from cockpit.load.closing import Closing
from cockpit.model.load import Expect
from tests.load.servers import POLLERS, SMALL, Behaviour, Conversation, always, engine_load, once, plan, serving

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: 1\r\n\r\n"
CHUNKED_CLOSING = CHUNKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
TO_THE_END = b"HTTP/1.1 200 OK\r\n\r\nhello, and no length"
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
    "until close": (once(TO_THE_END), 200, len(TO_THE_END)),
    "until close in pieces": (once(TO_THE_END[:10], TO_THE_END[10:25], TO_THE_END[25:]), 200, len(TO_THE_END)),
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
    "more than asked for": (once(SMALL + b"more"), 200, len(SMALL) + 4),
}


@pytest.mark.parametrize("poller", POLLERS)
@pytest.mark.parametrize("keepalive", [True, False])
@pytest.mark.parametrize("name", GOOD)
async def test_good_replies(name: str, keepalive: bool, poller: str) -> None:
    behaviour, status, size = GOOD[name]
    async with serving(behaviour) as server:
        outcome = await engine_load(plan(server.url, requests=21, concurrency=4, keepalive=keepalive), poller)
    assert outcome.statuses == {status: 21}
    assert outcome.errors == {}
    assert (outcome.total("sent"), outcome.total("completed"), outcome.total("abandoned")) == (21, 21, 0)
    assert outcome.total("bytes_received") == 21 * size
    assert outcome.merged("service").count == outcome.merged("first_byte").count == 21
    assert outcome.merged("connect").count == len(server.conversations)


async def test_head_has_no_body() -> None:
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"
    async with serving(always(reply)) as server:
        outcome = await engine_load(plan(server.url, method="HEAD", requests=20))
    assert outcome.statuses == {200: 20}
    assert outcome.total("bytes_received") == 20 * len(reply)
    assert len(server.conversations) == 4


async def test_kept_connections_are_kept_and_others_are_not() -> None:
    async with serving(always(SMALL)) as server:
        await engine_load(plan(server.url, requests=40))
        assert len(server.conversations) == 4
        await engine_load(plan(server.url, requests=40, keepalive=False))
        assert len(server.conversations) == 44


async def test_a_server_that_closes_between_requests_is_no_error() -> None:
    async def behave(talk: Conversation) -> None:
        for _ in range(3):
            await talk.request()
            await talk.send(SMALL)

    async with serving(behave) as server:
        outcome = await engine_load(plan(server.url, requests=60))
    assert outcome.errors == {}
    assert outcome.statuses == {200: 60}
    assert len(server.conversations) >= 20
    assert outcome.total("sent") == 60


@pytest.mark.parametrize("poller", POLLERS)
async def test_the_target_of_a_redirect_is_printable(poller: str) -> None:
    location = b"/\x9b31m/caf\xe9 \t?a=%41#b" + b"y" * 9000
    response = b"HTTP/1.1 301 Moved\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n"
    async with serving(always(response)) as server:
        outcome = await engine_load(plan(server.url, requests=5), poller)
    [target] = {tick.redirect for tick in outcome.ticks if tick.completed}
    assert target.startswith("/%9B31m/caf%E9%20%09?a=%41#by")
    assert len(target) < 2100


@pytest.mark.parametrize("poller", POLLERS)
async def test_a_server_that_keeps_open_what_it_announces_to_close_does_not_cap_the_rate(poller: str) -> None:
    """Waiting for its close took 0.1 s per request: these would take 100 s."""

    async def behave(talk: Conversation) -> None:
        await talk.request()
        await talk.send(CLOSING)
        await talk.reader.read()

    async with serving(behave) as server:
        async with asyncio.timeout(60):
            outcome = await engine_load(plan(server.url, requests=1000, concurrency=1), poller)
    assert outcome.statuses == {200: 1000}
    assert outcome.total("unclosed") == 1000


@pytest.mark.parametrize("poller", POLLERS)
async def test_a_server_that_closes_what_it_announces_to_close_is_waited_for(poller: str) -> None:
    async with serving(once(CLOSING)) as server:
        outcome = await engine_load(plan(server.url, requests=40), poller)
    assert outcome.statuses == {200: 40}
    assert outcome.total("unclosed") < 40


def test_a_server_that_closes_again_is_waited_for_again() -> None:
    closing = Closing()
    for _ in range(4):
        assert closing.waits()
        closing.expired()
    waits = [closing.waits() for _ in range(2000)]
    assert waits.count(True) == 2
    closing.closed()
    assert closing.waits()


REDIRECT = b"HTTP/1.1 302 Found\r\nLocation: /login?next=%2Fx\r\nContent-Length: 0\r\nDate: "


async def test_the_target_of_redirects_is_in_every_tick_that_has_one() -> None:
    async def behave(talk: Conversation) -> None:
        for number in itertools.count():
            await talk.request()
            await talk.send(REDIRECT + b"%d\r\n\r\n" % number)

    async with serving(behave) as server:
        outcome = await engine_load(plan(server.url, requests=100, tick=0.005))
        expected = await engine_load(plan(server.url, requests=10, expect=Expect(statuses=(302,))))
    assert outcome.statuses == {302: 100}
    assert {tick.redirect for tick in outcome.ticks if tick.completed} == {"/login?next=%2Fx"}
    assert {tick.redirect for tick in expected.ticks} == {""}


@pytest.mark.parametrize("poller", POLLERS)
async def test_a_body_larger_than_all_buffers_goes_out_whole(poller: str) -> None:
    seen: list[int] = []

    async def behave(talk: Conversation) -> None:
        while True:
            request = await talk.request()
            seen.append(request.count(b"y"))
            await talk.send(SMALL)

    body = "y" * 9_000_000
    async with serving(behave) as server:
        outcome = await engine_load(
            plan(server.url, method="POST", body=body, requests=6, concurrency=2, timeout=20.0), poller
        )
    assert outcome.errors == {}
    assert seen == [len(body)] * 6
    assert outcome.total("bytes_sent") > 6 * len(body)


@pytest.mark.parametrize("poller", POLLERS)
async def test_a_reply_before_the_request_is_through(poller: str) -> None:
    async def behave(talk: Conversation) -> None:
        await talk.reader.readuntil(b"\r\n\r\n")
        await talk.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        while await talk.reader.read(1 << 20):
            pass

    body = "y" * 9_000_000
    async with serving(behave) as server:
        outcome = await engine_load(plan(server.url, method="POST", body=body, requests=6, concurrency=2), poller)
    assert outcome.statuses == {413: 6}
    assert outcome.errors == {}


async def _break_off(talk: Conversation) -> None:
    await talk.request()
    await talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nonly a few")
    talk.reset()


BAD: dict[str, tuple[Behaviour, str]] = {
    "garbage": (once(b"\x00\x01\x02 this is not HTTP \r\n\r\n"), "malformed"),
    "other protocol": (once(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "malformed"),
    "bad status": (once(b"HTTP/1.1 2x0 OK\r\n\r\n"), "malformed"),
    "two lengths": (once(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"), "malformed"),
    "bad chunk": (once(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n"), "malformed"),
    "endless head": (once(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 60_000), "malformed"),
    "switches protocol": (once(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), "malformed"),
    "no answer": (once(), "closed_before_response"),
    "half a head": (once(b"HTTP/1.1 200 OK\r\nContent-"), "closed_early"),
    "body cut short": (once(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"), "closed_early"),
    "chunks cut short": (once(CHUNKED[:-5]), "closed_early"),
    "reset": (_break_off, "reset"),
}


@pytest.mark.parametrize("poller", POLLERS)
@pytest.mark.parametrize("keepalive", [True, False])
@pytest.mark.parametrize("name", BAD)
async def test_bad_replies(name: str, keepalive: bool, poller: str) -> None:
    behaviour, kind = BAD[name]
    async with serving(behaviour) as server:
        outcome = await engine_load(plan(server.url, requests=13, concurrency=3, keepalive=keepalive), poller)
    assert outcome.errors == {kind: 13}
    assert outcome.statuses == {}
    assert outcome.total("sent") == 13
    assert outcome.merged("service").count == 0


@pytest.mark.parametrize("poller", POLLERS)
async def test_refused(poller: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        outcome = await engine_load(plan(f"http://127.0.0.1:{closed.getsockname()[1]}/", requests=20), poller)
    assert outcome.errors == {"refused": 20}
    assert outcome.total("bytes_sent") == outcome.merged("connect").count == 0


@pytest.mark.parametrize("poller", POLLERS)
async def test_a_timeout_stays_among_the_latencies(poller: str) -> None:
    async def behave(talk: Conversation) -> None:
        await talk.request()
        await talk.reader.read()

    async with serving(behave) as server:
        outcome = await engine_load(plan(server.url, requests=9, timeout=0.15), poller)
    assert outcome.errors == {"timeout": 9}
    assert outcome.merged("service").count == 9
    assert outcome.merged("service").min >= 0.15
    assert outcome.merged("first_byte").count == 0


async def test_a_timeout_is_for_the_whole_request_however_much_of_the_reply_drips_in() -> None:
    async def behave(talk: Conversation) -> None:
        await talk.request()
        await talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while True:
            await talk.send(b"x")
            await asyncio.sleep(0.01)

    async with serving(behave) as server:
        # On a busy machine the response may not even begin within a short time-out.
        for timeout in (0.2, 1.0, 5.0, 25.0):
            outcome = await engine_load(plan(server.url, requests=4, timeout=timeout))
            assert outcome.errors == {"timeout": 4}
            assert outcome.merged("service").count == 4
            if outcome.merged("first_byte").count == 4:
                return
    pytest.fail("no response began")


async def test_a_connect_that_nobody_takes_is_a_connect_timeout() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        port = deaf.getsockname()[1]
        # Fill the backlog; from then on the kernel drops what comes.
        fillers = [socket.socket() for _ in range(3)]
        try:
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.1", port))
            outcome = await engine_load(plan(f"http://127.0.0.1:{port}/", requests=3, concurrency=3, timeout=0.3))
        finally:
            for filler in fillers:
                filler.close()
    assert outcome.errors == {"connect_timeout": 3}
    assert outcome.merged("service").count == 3


async def test_good_and_bad_replies_side_by_side() -> None:
    async def behave(talk: Conversation) -> None:
        for answer in (SMALL, SMALL, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", b"junk\r\n\r\n"):
            await talk.request()
            await talk.send(answer)

    async with serving(behave) as server:
        outcome = await engine_load(plan(server.url, requests=40, concurrency=1))
    assert outcome.statuses == {200: 20, 503: 10}
    assert outcome.errors == {"malformed": 10}
