"""The end of a response is found in any segmentation."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cockpit.load.failures import Malformed
from cockpit.load.responses import CHUNKED, UNTIL_CLOSE, HeadCache, ResponseReader

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


@given(st.lists(st.binary(max_size=60), max_size=6), st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n"]))
def test_arbitrary_bytes_are_parsed_or_malformed(pieces: list[bytes], begin: bytes) -> None:
    reply = ResponseReader(HeadCache(bodiless=False, keepalive=True))
    try:
        for piece in [begin, *pieces]:
            if reply.feed(piece):
                break
    except Malformed:
        pass


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
    assert harvest.received == sum(
        len(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nDate: %d\r\n\r\n" % number) + 1 for number in range(1000)
    )
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
