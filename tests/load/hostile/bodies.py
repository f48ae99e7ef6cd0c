"""Responses with a valid head and an invalid, incomplete or unusual body."""

from __future__ import annotations

from tests.load.hostile.cases import CHUNKED, OK, HostileCase, case, sends_endlessly
from tests.load.servers import always, once


def _length(value: bytes, body: bytes = b"hello") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: " + value + b"\r\n\r\n" + body


_TO_THE_END = b"HTTP/1.1 200 OK\r\n\r\n"
_BOTH = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"

LENGTHS: tuple[HostileCase, ...] = (
    case("short body, closed", once(_length(b"50")), "closed_early"),
    case("short body, held", once(_length(b"50"), hold=True), "timeout"),
    case("short body, RST", once(_length(b"50"), reset=True), "reset"),
    case("no body, closed", once(_length(b"50", b"")), "closed_early"),
    case("no body, RST", once(_length(b"50", b""), reset=True), "reset"),
    case("long body", once(_length(b"5", b"hello, and more")), 200),
    case("long body, held", once(_length(b"5", b"hello, more"), hold=True), 200),
    case("two lengths", once(_length(b"5\r\nContent-Length: 6")), "malformed"),
    case("two lengths in one", once(_length(b"5, 6")), "malformed"),
    case("negative length", once(_length(b"-5")), "malformed"),
    case("signed length", once(_length(b"+5")), "malformed"),
    case("length in words", once(_length(b"five")), "malformed"),
    case("length in hex", once(_length(b"0x5")), "malformed"),
    case("no length in length", once(_length(b"")), "malformed"),
    case("length over 64 bits", once(_length(b"9" * 30)), "malformed"),
    case("huge length, closed", once(_length(b"9" * 18)), "closed_early"),
    case("huge length, held", once(_length(b"9" * 18), hold=True), "timeout"),
    case("endless body", sends_endlessly(_TO_THE_END, b"x" * 65536), "timeout"),
    case("204 with a body", once(b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello"), 204),
    case("304 with a length", always(b"HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n"), 304),
    case("HEAD with a body", once(OK), 200, plan={"method": "HEAD"}),
    case("HTTP/1.0, until closed", once(b"HTTP/1.0 200 OK\r\n\r\nhello"), 200),
    case("HTTP/1.1, until closed", once(_TO_THE_END + b"hello"), 200),
    case("until RST", once(_TO_THE_END + b"hello", reset=True), "reset"),
    case("HTTP/1.0, with length", once(OK.replace(b"1.1", b"1.0")), 200),
    case(
        "HTTP/1.0, keep-alive",
        always(OK.replace(b"1.1", b"1.0").replace(b"\r\n\r\n", b"\r\nConnection: keep-alive\r\n\r\n")),
        200,
    ),
)

CHUNKS: tuple[HostileCase, ...] = (
    case("chunk size in words", once(CHUNKED + b"zz\r\nhello\r\n"), "malformed"),
    case("chunk size negative", once(CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n"), "malformed"),
    case("chunk size with 0x", once(CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n"), "malformed"),
    case("chunk size empty", once(CHUNKED + b"\r\nhello\r\n0\r\n\r\n"), "malformed"),
    case("chunk size over 64 bits", once(CHUNKED + b"f" * 20 + b"\r\nhello"), "malformed"),
    case("chunk size huge, closed", once(CHUNKED + b"f" * 15 + b"\r\nx"), "closed_early"),
    case("chunk size huge, held", once(CHUNKED + b"f" * 15 + b"\r\nx", hold=True), "timeout"),
    case("chunk without line end", once(CHUNKED + b"5\r\nhelloworld\r\n0\r\n\r\n"), "malformed"),
    case("chunk with bare LF", once(CHUNKED + b"5\nhello\n0\n\n"), "malformed"),
    case("chunk cut short, closed", once(CHUNKED + b"5\r\nhel"), "closed_early"),
    case("chunk cut short, held", once(CHUNKED + b"5\r\nhel", hold=True), "timeout"),
    case("chunk cut short, RST", once(CHUNKED + b"5\r\nhel", reset=True), "reset"),
    case("size cut short, closed", once(CHUNKED + b"5"), "closed_early"),
    case("no last chunk, closed", once(CHUNKED + b"5\r\nhello\r\n"), "closed_early"),
    case("last chunk cut short", once(CHUNKED + b"5\r\nhello\r\n0\r\n"), "closed_early"),
    case("chunk extension", always(CHUNKED + b'5;a=b;c="d"\r\nhello\r\n0\r\n\r\n'), 200),
    case("trailers", always(CHUNKED + b"5\r\nhello\r\n0\r\nX: y\r\nZ: z\r\n\r\n"), 200),
    case("many small chunks", always(CHUNKED + b"1\r\nx\r\n" * 5000 + b"0\r\n\r\n"), 200),
    case("endless chunks", sends_endlessly(CHUNKED, b"1000\r\n" + b"x" * 4096 + b"\r\n"), "timeout"),
    case("endless chunk extension", sends_endlessly(CHUNKED + b"5;", b"x" * 4096), "timeout", "malformed"),
    case("endless trailers", sends_endlessly(CHUNKED + b"0\r\n", b"X: y\r\n" * 500), "timeout", "malformed"),
    case("length and chunks", once(_BOTH), "malformed"),
    case(
        "chunks not last",
        once(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nwhatever"),
        200,
        "malformed",
    ),
    case(
        "chunked in capitals",
        always(b"HTTP/1.1 200 OK\r\ntRANSFER-eNCODING: CHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        200,
    ),
    case("more after the last chunk", once(CHUNKED + b"0\r\n\r\nmore"), 200),
)
