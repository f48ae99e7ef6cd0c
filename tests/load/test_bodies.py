"""Expectations check bodies of any size in bounded memory."""

from __future__ import annotations

import asyncio
import hashlib
import sys
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.load.expect import MATCH_LIMIT, Expectation
from cockpit.load.responses import HeadCache, ResponseReader
from cockpit.model.load import Expect
from tests.load.servers import DEADLINE, ClientConnection, Outcome, begin, engine_load, load, plan, serving
from tests.load.test_memory import resident

MIB = 1024 * 1024
PIECE = b"x" * MIB
NEEDLE = "the needle"
FRAMINGS = {
    "length": (b"Content-Length: %d\r\n\r\n" % (64 * MIB + len(NEEDLE)), b"%s", b""),
    "chunked": (b"Transfer-Encoding: chunked\r\n\r\n", b"%x\r\n%s\r\n", b"0\r\n\r\n"),
}


def _framed(form: bytes, piece: bytes) -> bytes:
    return form % ((len(piece), piece) if form.count(b"%") > 1 else piece)


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize(
    ("expect", "verdict"),
    [
        (Expect(contains=NEEDLE), ""),
        (Expect(contains="another"), "contains"),
        (Expect(sha256=hashlib.sha256(PIECE * 64 + NEEDLE.encode()).hexdigest()), ""),
        (Expect(sha256="0" * 64), "digest"),
        (Expect(matches="needle"), "too_large"),
        (Expect(matches="x"), "too_large"),
    ],
)
def test_body_of_64_mib_is_checked_in_4_mib(framing: str, expect: Expect, verdict: str) -> None:
    head, form, end = FRAMINGS[framing]
    response = ResponseReader(HeadCache(bodiless=False, keepalive=True, expectation=Expectation(expect)))
    assert not response.feed(b"HTTP/1.1 200 OK\r\n" + head)
    piece = memoryview(_framed(form, PIECE))
    tracemalloc.start()
    try:
        for _ in range(64):
            assert not response.feed(piece)
        ended = response.feed(_framed(form, NEEDLE.encode()) + end)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert ended
    assert response.verdict() == verdict
    assert peak < 4 * MIB


@given(st.binary(max_size=200), st.binary(min_size=1, max_size=4), st.lists(st.integers(0, 200), max_size=8))
def test_contained_text_is_found_in_any_segmentation(body: bytes, needle: bytes, cuts: list[int]) -> None:
    text = needle.decode("latin-1").encode("ascii", "ignore").decode() or "a"
    selected = Expectation(Expect(contains=text)).body()
    assert selected is not None
    edges = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    for start, stop in pairwise(edges):
        selected.add(memoryview(body)[start:stop])
    assert (selected.verdict() == "") == (text.encode() in body)


@pytest.mark.parametrize(("size", "unexpected"), [(MATCH_LIMIT, {}), (MATCH_LIMIT + 1, {"too_large": 6})])
async def test_pattern_is_searched_up_to_limit(size: int, unexpected: dict[str, int]) -> None:
    body = b"y" * (size - 1) + b"!"

    async def behave(client: ClientConnection) -> None:
        while True:
            await client.request()
            await client.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size, body)

    async with serving(behave) as server:
        outcome = await engine_load(plan(server.url, requests=6, expect=Expect(matches="!$"), timeout=20.0))
    assert outcome.statuses == {200: 6}
    assert outcome.unexpected == unexpected


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_memory_of_worker_is_bounded_for_endless_bodies() -> None:
    async def behave(client: ClientConnection) -> None:
        await client.request()
        await client.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await client.send(PIECE)

    expect = Expect(contains=NEEDLE, matches="z", sha256="0" * 64)
    async with serving(behave) as server:
        outcome = Outcome()
        run = await begin(plan(server.url, duration=600.0, concurrency=2, timeout=600.0, expect=expect), outcome)
        async with asyncio.timeout(6 * DEADLINE):
            await outcome.until(lambda seen: seen.total("bytes_received") > 8 * MIB)
            before = resident(run.pids[0])
            await outcome.until(lambda seen: seen.total("bytes_received") > 300 * MIB)
            after = resident(run.pids[0])
            run.stop()
            await run.wait()
    assert after - before < 30 * MIB


async def test_unexpected_bodies_are_counted_by_kind() -> None:
    async def behave(client: ClientConnection) -> None:
        while True:
            await client.request()
            await client.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (2 * MIB), PIECE, PIECE)

    async with serving(behave) as server:
        outcome = await load(plan(server.url, requests=8, expect=Expect(contains="y"), timeout=20.0))
    assert outcome.unexpected == {"contains": 8}
