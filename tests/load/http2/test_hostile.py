"""Broken and malicious HTTP/2 servers: each request is counted once, with the right kind, and no run hangs."""

import os
import random
import struct
import tracemalloc
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from cockpit.load.http2 import frames
from cockpit.load.http2.frames import (
    ACK,
    END_HEADERS,
    END_STREAM,
    PADDED,
    PRIORITIZED,
    frame,
    number_bytes,
    reset,
    settings,
    window_update,
)
from tests.load.http2.raw import (
    OK_BLOCK,
    SETTINGS,
    SETTINGS_ACK,
    FrameClient,
    block,
    data,
    framed,
    head,
    response,
    sends,
)
from tests.load.servers import Behaviour, ClientConnection, engine_run, once

# Each case runs this number of requests. Timeout (s) of requests that are never answered.
REQUESTS = 4
# Number of streams of the fuzzer.
STREAMS = int(os.environ.get("COCKPIT_FUZZ_STREAMS", "240"))
SHORT = 0.15

GREETING = SETTINGS + SETTINGS_ACK


class HostileCase(NamedTuple):
    """A server, and the results of its requests: statuses or kinds of errors; several if the order of packets decides.
    `plan`: fields of the load plan."""

    behave: Behaviour
    expected: set[int | str]
    plan: Mapping[str, Any] = MappingProxyType({})


def _raw_header(length: int, kind: int, flags: int, number: int) -> bytes:
    return struct.pack(">BHBBL", length >> 16, length & 0xFFFF, kind, flags, number)


def _answered(*pieces: Any, **more: Any) -> Behaviour:
    """Send these pieces before each complete response."""
    return sends(*pieces, response, **more)


def _at_once(first: bytes) -> Behaviour:
    """Send these bytes in place of the first SETTINGS, and respond to nothing."""
    return framed(_nothing, first)


async def _nothing(peer: FrameClient, number: int) -> None:
    pass


async def _closes(client: ClientConnection) -> None:
    pass


async def _endless(peer: FrameClient, piece: bytes) -> None:
    """Send a piece until the client closes the connection; the peer of a load that ended is gone."""
    while not peer.client.writer.is_closing():
        await peer.send(piece)


def _floods(piece: bytes, *, reads: bool = True) -> Behaviour:
    async def answer(peer: FrameClient, number: int) -> None:
        if not reads:
            peer.client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await _endless(peer, piece)

    return framed(answer)


def _continuations(piece: bytes) -> Behaviour:
    async def answer(peer: FrameClient, number: int) -> None:
        await peer.send(head(number, OK_BLOCK, 0))
        await _endless(peer, frame(frames.CONTINUATION, 0, number, piece))

    return framed(answer)


def _number(kind: int, flags: int = 0, payload: bytes = b"") -> Any:
    """Return a function that makes a frame of the stream of the request."""
    return lambda number: frame(kind, flags, number, payload)


def _bomb() -> bytes:
    """Return a block of 60 kB whose header list has many megabytes: a long field, then references to it."""
    entry = b"\x40" + b"\x01a" + b"\x7f\xd1\x1e" + b"v" * 4048
    return b"\x88" + entry + b"\xbe" * 16_000


def _twice(number: int) -> bytes:
    return head(number) + head(number)


def _late(number: int) -> bytes:
    return response(number) + data(number) + head(number) + reset(number, 1) + window_update(number, 5)


VIOLATION: set[int | str] = {"http2_protocol"}
INVALID: set[int | str] = {"invalid_head"}
LENGTH: set[int | str] = {"ambiguous_length"}
FINE: set[int | str] = {200}
TIMES_OUT: set[int | str] = {"timeout"}

CASES: dict[str, HostileCase] = {
    # --- the start of the connection ---
    "closes at once": HostileCase(_closes, {"closed_before_response", "reset"}),
    "HTTP/1": HostileCase(once(b"HTTP/1.1 400 Bad Request\r\n\r\n"), {"not_http"}),
    "not HTTP": HostileCase(_at_once(b"220 mail.example ESMTP\r\n"), {"not_http"}),
    "no SETTINGS first": HostileCase(_at_once(frame(frames.PING, 0, 0, bytes(8))), {"not_http"}),
    "an acknowledgement first": HostileCase(_at_once(SETTINGS_ACK), {"not_http"}),
    "nothing": HostileCase(_at_once(b""), TIMES_OUT),
    "half a SETTINGS frame": HostileCase(_at_once(SETTINGS[:5]), TIMES_OUT),
    "SETTINGS and silence": HostileCase(_at_once(SETTINGS), TIMES_OUT),
    "SETTINGS of a stream": HostileCase(_at_once(SETTINGS + frame(frames.SETTINGS, 0, 1)), VIOLATION),
    "SETTINGS of 5 bytes": HostileCase(_at_once(frame(frames.SETTINGS, 0, 0, bytes(5))), VIOLATION),
    "an acknowledgement with values": HostileCase(
        _at_once(SETTINGS + frame(frames.SETTINGS, ACK, 0, bytes(6))), VIOLATION
    ),
    "a window too large": HostileCase(_at_once(settings({frames.INITIAL_WINDOW_SIZE: 1 << 31})), VIOLATION),
    "a frame size too small": HostileCase(_at_once(settings({frames.MAX_FRAME_SIZE: 100})), VIOLATION),
    "push enabled": HostileCase(_at_once(settings({frames.ENABLE_PUSH: 1})), VIOLATION),
    "unknown settings": HostileCase(_answered(first=settings({99: 7, 0xFFFF: 1}) + SETTINGS_ACK), FINE),
    "no acknowledgement": HostileCase(_answered(first=SETTINGS), FINE),
    "no streams allowed": HostileCase(
        _answered(first=settings({frames.MAX_CONCURRENT_STREAMS: 0}) + SETTINGS_ACK), {200, "timeout"}
    ),
    # --- control frames ---
    "unknown frames": HostileCase(_answered(_number(0xEE, 0xFF, b"x" * 100), frame(0xBA, 0, 0)), FINE),
    "PRIORITY": HostileCase(_answered(_number(frames.PRIORITY, 0, bytes(5))), FINE),
    "PRIORITY of 4 bytes": HostileCase(_answered(_number(frames.PRIORITY, 0, bytes(4))), VIOLATION),
    "PRIORITY of the connection": HostileCase(_answered(frame(frames.PRIORITY, 0, 0, bytes(5))), VIOLATION),
    "PING": HostileCase(_answered(frame(frames.PING, 0, 0, b"12345678")), FINE),
    "PING of 7 bytes": HostileCase(_answered(frame(frames.PING, 0, 0, bytes(7))), VIOLATION),
    "PING of a stream": HostileCase(_answered(_number(frames.PING, 0, bytes(8))), VIOLATION),
    "a PING flood without a pause": HostileCase(
        _floods(frame(frames.PING, 0, 0, bytes(8)) * 500), {"http2_flood", "timeout"}
    ),
    "a PING flood": HostileCase(
        _floods(frame(frames.PING, 0, 0, bytes(8)) * 500, reads=False), {"http2_flood", "timeout"}
    ),
    "a SETTINGS flood": HostileCase(_floods(SETTINGS * 900, reads=False), {"http2_flood", "timeout"}),
    "WINDOW_UPDATE of 0": HostileCase(_answered(window_update(0, 0)), VIOLATION),
    "WINDOW_UPDATE of 3 bytes": HostileCase(_answered(frame(frames.WINDOW_UPDATE, 0, 0, bytes(3))), VIOLATION),
    "WINDOW_UPDATE beyond the maximum": HostileCase(_answered(window_update(0, (1 << 31) - 1)), VIOLATION),
    "WINDOW_UPDATE of a stream beyond": HostileCase(_answered(lambda n: window_update(n, (1 << 31) - 1)), VIOLATION),
    "WINDOW_UPDATE of an unopened stream": HostileCase(_answered(window_update(999, 1)), VIOLATION),
    "windows in small steps": HostileCase(_answered(window_update(0, 1) * 50), FINE),
    "RST_STREAM of 3 bytes": HostileCase(sends(_number(frames.RST_STREAM, 0, bytes(3))), VIOLATION),
    "RST_STREAM of the connection": HostileCase(_answered(frame(frames.RST_STREAM, 0, 0, bytes(4))), VIOLATION),
    "RST_STREAM of an unopened stream": HostileCase(_answered(reset(2001, 0)), VIOLATION),
    "RST_STREAM of everything": HostileCase(sends(lambda n: reset(n, 0x8)), {"stream_reset"}),
    "RST_STREAM within the body": HostileCase(
        sends(lambda n: head(n) + data(n, b"he", 0) + reset(n, 2)), {"stream_reset"}
    ),
    "GOAWAY of 7 bytes": HostileCase(_answered(frame(frames.GOAWAY, 0, 0, bytes(7))), VIOLATION),
    "GOAWAY of a stream": HostileCase(_answered(_number(frames.GOAWAY, 0, bytes(8))), VIOLATION),
    "GOAWAY before each response": HostileCase(
        _answered(lambda n: frame(frames.GOAWAY, 0, 0, number_bytes(n) + bytes(4))), FINE
    ),
    "GOAWAY of nothing": HostileCase(sends(frame(frames.GOAWAY, 0, 0, bytes(8))), {"refused_stream"}),
    "PUSH_PROMISE": HostileCase(
        _answered(_number(frames.PUSH_PROMISE, END_HEADERS, number_bytes(2) + OK_BLOCK)), VIOLATION
    ),
    # --- heads ---
    "a frame too large": HostileCase(
        sends(lambda n: _raw_header(16385, frames.HEADERS, 4, n) + bytes(16385)), VIOLATION
    ),
    "a giant frame": HostileCase(sends(lambda n: _raw_header((1 << 24) - 1, frames.DATA, 0, n)), VIOLATION),
    "HEADERS of an unopened stream": HostileCase(_answered(head(4001)), VIOLATION),
    "HEADERS of an even stream": HostileCase(_answered(head(2)), VIOLATION),
    "HEADERS of the connection": HostileCase(_answered(head(0)), VIOLATION),
    "padding beyond the frame": HostileCase(
        sends(lambda n: head(n, b"\xff" + OK_BLOCK, END_HEADERS | PADDED)), VIOLATION
    ),
    "empty and padded": HostileCase(sends(lambda n: head(n, b"", END_HEADERS | PADDED)), VIOLATION | {"invalid_head"}),
    "priority beyond the frame": HostileCase(sends(lambda n: head(n, b"abc", END_HEADERS | PRIORITIZED)), VIOLATION),
    "padding and priority": HostileCase(
        sends(
            lambda n: head(n, b"\x03" + bytes(5) + OK_BLOCK + bytes(3), END_HEADERS | PADDED | PRIORITIZED) + data(n)
        ),
        FINE,
    ),
    "no status": HostileCase(sends(lambda n: head(n, block(("content-length", "5"))) + data(n)), INVALID),
    "an empty block": HostileCase(sends(lambda n: head(n, b"") + data(n)), INVALID),
    "two statuses": HostileCase(sends(lambda n: head(n, block((":status", "200"), (":status", "200")))), INVALID),
    "status after a field": HostileCase(sends(lambda n: head(n, block(("a", "b"), (":status", "200")))), INVALID),
    "a status of letters": HostileCase(sends(lambda n: head(n, block((":status", "abc")))), INVALID),
    "status 99": HostileCase(sends(lambda n: head(n, block((":status", "099")))), INVALID),
    "an unknown pseudo-header": HostileCase(sends(lambda n: head(n, block((":status", "200"), (":x", "y")))), INVALID),
    "Connection": HostileCase(sends(lambda n: head(n, block((":status", "200"), ("connection", "close")))), INVALID),
    "capitals": HostileCase(sends(lambda n: head(n, b"\x88\x00\x01A\x01b")), INVALID),
    "a line break in a value": HostileCase(sends(lambda n: head(n, b"\x88\x00\x01a\x04b\r\nc")), INVALID),
    "101": HostileCase(sends(lambda n: head(n, block((":status", "101")))), {"protocol_switch"}),
    "an interim head that ends": HostileCase(sends(lambda n: head(n, block((":status", "103")), 5)), INVALID),
    "interim heads": HostileCase(_answered(lambda n: head(n, block((":status", "103"))) * 20), FINE),
    "interim heads without end": HostileCase(
        framed(lambda peer, n: _endless(peer, head(n, block((":status", "103"))))), TIMES_OUT
    ),
    "two heads": HostileCase(sends(_twice), INVALID),
    "an invalid index": HostileCase(sends(lambda n: head(n, b"\xff\xff\xff\x7f")), {"http2_compression"}),
    "a reference to a dynamic table": HostileCase(sends(lambda n: head(n, b"\x88\xbe")), {"http2_compression"}),
    "a dynamic table": HostileCase(sends(lambda n: head(n, b"\x3f\xe1\x1f\x88")), {"http2_compression"}),
    "a truncated block": HostileCase(sends(lambda n: head(n, OK_BLOCK[:-1])), {"http2_compression"}),
    "invalid Huffman": HostileCase(
        sends(lambda n: head(n, b"\x88\x00\x81\xff\x81\xff")), {"http2_compression", "invalid_head"}
    ),
    "an endless integer": HostileCase(sends(lambda n: head(n, b"\x7f" + b"\xff" * 16_000)), {"http2_compression"}),
    "a bomb": HostileCase(_answered(lambda n: head(n, _bomb()[:16_384]), first=SETTINGS), {"head_too_large"}),
    "a giant head": HostileCase(
        _continuations(b"\x00\x01a\x7f\x80\x7e" + b"v" * 16_250), {"head_too_large", "http2_flood"}
    ),
    "empty CONTINUATION frames": HostileCase(_continuations(b""), {"http2_flood"}),
    "CONTINUATION alone": HostileCase(_answered(_number(frames.CONTINUATION, END_HEADERS, OK_BLOCK)), VIOLATION),
    "CONTINUATION of another stream": HostileCase(
        sends(lambda n: head(n, OK_BLOCK, 0) + frame(frames.CONTINUATION, END_HEADERS, n + 2, b"")), VIOLATION
    ),
    "a PING within a block": HostileCase(
        sends(lambda n: head(n, OK_BLOCK, 0) + frame(frames.PING, 0, 0, bytes(8))), VIOLATION
    ),
    "DATA within a block": HostileCase(sends(lambda n: head(n, OK_BLOCK, 0) + data(n)), VIOLATION),
    "a block that never ends": HostileCase(sends(lambda n: head(n, OK_BLOCK, 0)), TIMES_OUT | VIOLATION),
    # --- bodies ---
    "DATA before HEADERS": HostileCase(sends(data), INVALID),
    "DATA of the connection": HostileCase(_answered(data(0)), VIOLATION),
    "DATA of an unopened stream": HostileCase(_answered(data(3001)), VIOLATION),
    "DATA with padding beyond": HostileCase(
        sends(lambda n: head(n) + data(n, b"\x09hi", END_STREAM | PADDED)), VIOLATION
    ),
    "DATA without its padding": HostileCase(sends(lambda n: head(n) + data(n, b"", END_STREAM | PADDED)), VIOLATION),
    "DATA with nothing but padding": HostileCase(
        sends(
            lambda n: (
                head(n) + data(n, b"\x03" + bytes(3), PADDED) + data(n, b"\x02hello" + bytes(2), END_STREAM | PADDED)
            )
        ),
        FINE,
    ),
    "empty DATA": HostileCase(sends(lambda n: head(n) + data(n, b"", 0) * 100 + data(n)), FINE),
    "DATA too long": HostileCase(sends(lambda n: head(n) + data(n, b"hello!")), LENGTH),
    "DATA too short": HostileCase(sends(lambda n: head(n) + data(n, b"hell")), LENGTH),
    "two lengths": HostileCase(
        sends(lambda n: head(n, block((":status", "200"), ("content-length", "5"), ("content-length", "6")))), LENGTH
    ),
    "a negative length": HostileCase(
        sends(lambda n: head(n, block((":status", "200"), ("content-length", "-5")))), LENGTH
    ),
    "a body to HEAD": HostileCase(sends(response), LENGTH, {"method": "HEAD"}),
    "frames of ended streams": HostileCase(sends(_late), FINE),
    "trailers that do not end": HostileCase(
        sends(lambda n: head(n) + data(n, b"hello", 0) + head(n, block(("a", "b")))), INVALID
    ),
    "a body without end": HostileCase(
        framed(lambda peer, n: _endless(peer, head(n, block((":status", "200"))) + data(n, bytes(16_000), 0))),
        INVALID | TIMES_OUT,
    ),
    "closes within a body": HostileCase(
        sends(lambda n: head(n) + data(n, b"he", 0), close=True), {"closed_early", "reset"}
    ),
    "closes within a frame": HostileCase(sends(lambda n: response(n)[:-3], close=True), {"closed_early", "reset"}),
    "closes without a response": HostileCase(sends(close=True), {"closed_before_response", "reset"}),
}


@pytest.mark.parametrize("name", CASES)
async def test_each_request_is_counted_once(name: str) -> None:
    behave, expected, more = CASES[name]
    waits = {"timeout", "flow_stalled"} & expected
    outcome, _ = await engine_run(
        behave, requests=REQUESTS, concurrency=1, http="2", timeout=SHORT if waits else 60.0, **more
    )
    results = {**outcome.statuses, **outcome.errors}
    assert set(results) <= expected
    assert sum(results.values()) == REQUESTS
    assert (outcome.total("sent"), outcome.total("abandoned")) == (REQUESTS, 0)


@pytest.mark.parametrize(
    "name", ["a PING flood", "a giant head", "a body without end", "a bomb", "interim heads without end"]
)
async def test_memory_is_bounded(name: str) -> None:
    behave, _, more = CASES[name]
    tracemalloc.start()
    try:
        await engine_run(behave, requests=6, concurrency=2, streams=2, http="2", timeout=SHORT, **more)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def fuzzed(draw: random.Random, number: int) -> bytes:
    """Return a few frames, mostly well-formed, some in the wrong state or with wrong bytes."""
    blocks = [OK_BLOCK, block((":status", "204")), block((":status", "103")), block(("a", "b")), draw.randbytes(9), b""]
    out = b""
    for _ in range(draw.randrange(1, 6)):
        stream = draw.choice([number, number, number, number, 0, max(1, number - 2), number + 2, 2])
        made = [
            head(stream, draw.choice(blocks), draw.choice([4, 4, 4, 5, 0, 0xFF])),
            data(stream, draw.randbytes(draw.choice([0, 2, 5, 5, 300])), draw.choice([0, 1, 1, 8, 9])),
            response(stream),
            reset(stream, draw.randrange(14)),
            settings({draw.randrange(1, 8): draw.choice([0, 1, 100, 65535, 1 << 20])}),
            window_update(stream, draw.choice([0, 1, 65535, (1 << 31) - 1])),
            frame(frames.PING, draw.choice([0, 1]), 0, bytes(8)),
            frame(frames.CONTINUATION, draw.choice([0, 4]), stream, draw.choice(blocks)),
            frame(draw.randrange(12), draw.randrange(256), stream, draw.randbytes(draw.randrange(12))),
        ]
        out += draw.choice(made + [response(number)] * 6)
    if draw.random() < 0.1 and out:
        at = draw.randrange(len(out))
        out = out[:at] + draw.randbytes(1) + out[at + 1 :]
    return out


async def fuzz(seed: int, requests: int) -> dict[int | str, int]:
    """Run requests against frames of this seed; return the results."""
    draw = random.Random(seed)

    async def answer(peer: FrameClient, number: int) -> None:
        pieces = fuzzed(draw, number)
        cut = draw.randrange(len(pieces) + 1)
        await peer.send(pieces[:cut], pieces[cut:])
        if draw.random() < 0.05:
            raise EOFError

    outcome, _ = await engine_run(
        framed(answer),
        requests=requests,
        concurrency=3,
        streams=3,
        http="2",
        timeout=0.1,
        method=draw.choice(["GET", "POST"]),
    )
    assert outcome.total("sent") == requests
    results = {**outcome.statuses, **outcome.errors}
    assert sum(results.values()) == requests
    return results


async def test_random_frames() -> None:
    results: set[int | str] = set()
    for seed in range(4):
        results |= set(await fuzz(seed, STREAMS // 4))
    assert len(results) > 2
