"""The end of a response is found in any segmentation; expectations check bodies of any size in bounded memory."""

import hashlib
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cockpit.load.failures import Malformed
from cockpit.load.http.expect import MATCH_LIMIT, Expectation
from cockpit.load.http.heads import CHUNKED, UNTIL_CLOSE
from cockpit.load.http.responses import HeadCache, ResponseReader
from cockpit.model.load.plan import Expect
from tests.load.servers import always, engine_run

REPLIES = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world",
    "empty": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;a=b\r\n!\r\n0\r\nX: y\r\n\r\n",
    "none": b"HTTP/1.1 204 No Content\r\n\r\n",
    "continue": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
}


@given(st.sampled_from(sorted(REPLIES)), st.lists(st.integers(0, 120), max_size=12), st.integers(1, 4))
def test_end_is_found_in_any_segmentation(name: str, cuts: list[int], times: int) -> None:
    whole = REPLIES[name]
    edges = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    reply = ResponseReader(HeadCache(bodiless=False, keepalive=True))
    for _ in range(times):
        pieces = [whole[a:b] for a, b in pairwise(edges)]
        ends = [reply.feed(piece) for piece in pieces]
        assert ends == [False] * (len(pieces) - 1) + [True]
        assert reply.head is not None and reply.head.reuse
        assert not reply.excess
        reply.reset()


@given(st.sampled_from(sorted(REPLIES)), st.binary(min_size=1, max_size=20))
def test_excess_bytes_are_detected(name: str, extra: bytes) -> None:
    # An empty line between responses is ignored (RFC 9112 section 2.2).
    assume(extra.strip(b"\r\n"))
    reply = ResponseReader(HeadCache(bodiless=False, keepalive=True))
    assert reply.feed(REPLIES[name] + extra)
    assert reply.excess


FIELDS = st.sampled_from(
    [
        b"Content-Length: 5",
        b"content-length:7 ",
        b"Content-Length: 18446744073709551616",
        b"Content-Length: 0x5",
        b"Content-Length:",
        b"Connection: close",
        b"Connection: keep-alive",
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: gzip",
        b"X-Id: 1",
        b"X-Id: 2:3",
        b"X-Id: \x00",
        b"X-Id: a\rb",
        b"X-Id: a\nContent-Length: 6",
        b"X-Id : 1",
        b" X-Id: folded",
        b"X-Id",
        b"",
    ]
)
LINES = st.tuples(
    st.sampled_from([b"HTTP/1.1 200 OK", b"HTTP/1.1 204 No", b"HTTP/1.0 200 OK"]), st.lists(FIELDS, max_size=3)
)


@given(st.lists(LINES, min_size=2, max_size=8), st.booleans(), st.booleans())
def test_cached_head_equals_parsed_head(
    lines: list[tuple[bytes, list[bytes]]], bodiless: bool, keepalive: bool
) -> None:
    """In any order of heads, each equals the result of a parser that has seen no other head."""
    heads = HeadCache(bodiless=bodiless, keepalive=keepalive)
    for status_line, fields in lines:
        raw = b"\r\n".join([status_line, *fields]) + b"\r\n\r\n"
        assert _parsed_fields(heads, raw) == _parsed_fields(HeadCache(bodiless=bodiless, keepalive=keepalive), raw)


def _parsed_fields(heads: HeadCache, raw: bytes) -> tuple[object, ...]:
    try:
        head = heads.known(raw) or heads.like_last(raw) or heads.parse(raw)
    except Malformed:
        return ()
    return (head.status, head.size, head.length, head.total, head.keeps, head.reuse)


def test_hits_are_harvested_once_including_evicted_heads() -> None:
    heads = HeadCache(bodiless=False, keepalive=True)
    for number in range(1000):
        head = heads.parse(b"HTTP/1.1 %d OK\r\nContent-Length: 1\r\nDate: %d\r\n\r\n" % (200 + number % 2, number))
        head.hits += 1
    harvest = heads.harvest()
    assert harvest.statuses == {200: 500, 201: 500}
    assert harvest.body == 1000
    # Dates of one, two and three digits, and a body of one byte.
    size = len(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nDate: \r\n\r\n")
    assert harvest.received == 1000 * (size + 1) + 10 + 2 * 90 + 3 * 900
    assert heads.harvest() == ({}, 0, 0, 0, {})


@pytest.mark.parametrize(
    ("raw", "length", "keeps"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", UNTIL_CLOSE, True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", CHUNKED, True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", UNTIL_CLOSE, True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: Upgrade, Close\r\n\r\n", 7, False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\n", 7, False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 7\r\nConnection: Keep-Alive\r\n\r\n", 7, True),
        (b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", 0, True),
    ],
)
def test_framing(raw: bytes, length: int, keeps: bool) -> None:
    head = HeadCache(bodiless=False, keepalive=True).parse(raw)
    assert (head.length, head.keeps) == (length, keeps)
    assert head.reuse == (keeps and length != UNTIL_CLOSE)
    assert not HeadCache(bodiless=False, keepalive=False).parse(raw).reuse


MIB = 1024 * 1024
PIECE = b"x" * MIB
NEEDLE = "the needle"
FRAMINGS = {
    "length": (b"Content-Length: %d\r\n\r\n" % (16 * MIB + len(NEEDLE)), b"%s", b""),
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
        (Expect(sha256=hashlib.sha256(PIECE * 16 + NEEDLE.encode()).hexdigest()), ""),
        (Expect(sha256="0" * 64), "digest"),
        (Expect(matches="needle"), "too_large"),
        (Expect(matches="x"), "too_large"),
    ],
)
def test_body_of_16_mib_is_checked_in_4_mib(framing: str, expect: Expect, verdict: str) -> None:
    head, form, end = FRAMINGS[framing]
    response = ResponseReader(HeadCache(bodiless=False, keepalive=True, expectation=Expectation(expect)))
    assert not response.feed(b"HTTP/1.1 200 OK\r\n" + head)
    piece = memoryview(_framed(form, PIECE))
    tracemalloc.start()
    try:
        for _ in range(16):
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
    outcome, _ = await engine_run(
        always(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size, body),
        requests=6,
        expect=Expect(matches="!$"),
        timeout=20.0,
    )
    assert outcome.statuses == {200: 6}
    assert outcome.unexpected == unexpected
