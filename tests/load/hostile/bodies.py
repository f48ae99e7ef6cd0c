"""Responses with a valid head and an invalid, incomplete or unusual body."""

from __future__ import annotations

from tests.load.hostile.cases import (
    CHUNKED,
    OK,
    HostileCase,
    case,
    repeats,
    sends,
    sends_and_holds,
    sends_and_resets,
    sends_endlessly,
)


def _length(value: bytes, body: bytes = b"hello") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: " + value + b"\r\n\r\n" + body


_TO_THE_END = b"HTTP/1.1 200 OK\r\n\r\n"
_BOTH = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"

LENGTHS: tuple[HostileCase, ...] = (
    case("short body, closed", "5 of 50 bytes, then closes", sends(_length(b"50")), "closed_early"),
    case("short body, held", "5 of 50 bytes, then nothing", sends_and_holds(_length(b"50")), "timeout"),
    case("short body, RST", "5 of 50 bytes, then resets", sends_and_resets(_length(b"50")), "reset"),
    case("no body, closed", "a head without its body, then closes", sends(_length(b"50", b"")), "closed_early"),
    case("no body, RST", "a head without its body, then resets", sends_and_resets(_length(b"50", b"")), "reset"),
    case("long body", "more bytes than announced", sends(_length(b"5", b"hello, and more")), 200),
    case(
        "long body, held", "more bytes than announced, kept open", sends_and_holds(_length(b"5", b"hello, more")), 200
    ),
    case("two lengths", "contradictory lengths", sends(_length(b"5\r\nContent-Length: 6")), "malformed"),
    case("two lengths in one", "a list of lengths", sends(_length(b"5, 6")), "malformed"),
    case("negative length", "Content-Length: -5", sends(_length(b"-5")), "malformed"),
    case("signed length", "Content-Length: +5", sends(_length(b"+5")), "malformed"),
    case("length in words", "Content-Length: five", sends(_length(b"five")), "malformed"),
    case("length in hex", "Content-Length: 0x5", sends(_length(b"0x5")), "malformed"),
    case("no length in length", "Content-Length without a value", sends(_length(b"")), "malformed"),
    case("length over 64 bits", "a length of 30 digits", sends(_length(b"9" * 30)), "malformed"),
    case("huge length, closed", "a length of 18 digits, then closes", sends(_length(b"9" * 18)), "closed_early"),
    case("huge length, held", "a length of 18 digits, then nothing", sends_and_holds(_length(b"9" * 18)), "timeout"),
    case("endless body", "an endless body, delimited by close", sends_endlessly(_TO_THE_END, b"x" * 65536), "timeout"),
    case(
        "204 with a body",
        "a body that is not allowed",
        sends(b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello"),
        204,
    ),
    case(
        "304 with a length",
        "a length without a body",
        repeats(b"HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n"),
        304,
    ),
    case("HEAD with a body", "a body after a HEAD", sends(OK), 200, plan={"method": "HEAD"}),
    case("HTTP/1.0, until closed", "a body that ends with the connection", sends(b"HTTP/1.0 200 OK\r\n\r\nhello"), 200),
    case("HTTP/1.1, until closed", "the same with HTTP/1.1", sends(_TO_THE_END + b"hello"), 200),
    case("until RST", "a body that ends with a reset", sends_and_resets(_TO_THE_END + b"hello"), "reset"),
    case("HTTP/1.0, with length", "no keep-alive by default", sends(OK.replace(b"1.1", b"1.0")), 200),
    case(
        "HTTP/1.0, keep-alive",
        "keep-alive by agreement",
        repeats(OK.replace(b"1.1", b"1.0").replace(b"\r\n\r\n", b"\r\nConnection: keep-alive\r\n\r\n")),
        200,
    ),
)

CHUNKS: tuple[HostileCase, ...] = (
    case("chunk size in words", "zz for a size", sends(CHUNKED + b"zz\r\nhello\r\n"), "malformed"),
    case("chunk size negative", "-5 for a size", sends(CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n"), "malformed"),
    case("chunk size with 0x", "0x5 for a size", sends(CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n"), "malformed"),
    case("chunk size empty", "no size at all", sends(CHUNKED + b"\r\nhello\r\n0\r\n\r\n"), "malformed"),
    case("chunk size over 64 bits", "a size of 20 hex digits", sends(CHUNKED + b"f" * 20 + b"\r\nhello"), "malformed"),
    case(
        "chunk size huge, closed",
        "a size of 15 digits, then closes",
        sends(CHUNKED + b"f" * 15 + b"\r\nx"),
        "closed_early",
    ),
    case("chunk size huge, held", "the same, then nothing", sends_and_holds(CHUNKED + b"f" * 15 + b"\r\nx"), "timeout"),
    case(
        "chunk without line end",
        "data longer than the chunk",
        sends(CHUNKED + b"5\r\nhelloworld\r\n0\r\n\r\n"),
        "malformed",
    ),
    case("chunk with bare LF", "LF instead of CR LF", sends(CHUNKED + b"5\nhello\n0\n\n"), "malformed"),
    case("chunk cut short, closed", "closes within a chunk", sends(CHUNKED + b"5\r\nhel"), "closed_early"),
    case("chunk cut short, held", "stops within a chunk", sends_and_holds(CHUNKED + b"5\r\nhel"), "timeout"),
    case("chunk cut short, RST", "resets within a chunk", sends_and_resets(CHUNKED + b"5\r\nhel"), "reset"),
    case("size cut short, closed", "closes within a chunk's size", sends(CHUNKED + b"5"), "closed_early"),
    case("no last chunk, closed", "closes before the last chunk", sends(CHUNKED + b"5\r\nhello\r\n"), "closed_early"),
    case(
        "last chunk cut short", "closes within the last chunk", sends(CHUNKED + b"5\r\nhello\r\n0\r\n"), "closed_early"
    ),
    case(
        "chunk extension",
        "extensions, which are ignored",
        repeats(CHUNKED + b'5;a=b;c="d"\r\nhello\r\n0\r\n\r\n'),
        200,
    ),
    case("trailers", "headers after the body", repeats(CHUNKED + b"5\r\nhello\r\n0\r\nX: y\r\nZ: z\r\n\r\n"), 200),
    case("many small chunks", "a chunk per byte", repeats(CHUNKED + b"1\r\nx\r\n" * 5000 + b"0\r\n\r\n"), 200),
    case(
        "endless chunks",
        "an endless series of chunks",
        sends_endlessly(CHUNKED, b"1000\r\n" + b"x" * 4096 + b"\r\n"),
        "timeout",
    ),
    case(
        "endless chunk extension",
        "an endless extension",
        sends_endlessly(CHUNKED + b"5;", b"x" * 4096),
        "timeout",
        "malformed",
    ),
    case(
        "endless trailers",
        "an endless series of trailers",
        sends_endlessly(CHUNKED + b"0\r\n", b"X: y\r\n" * 500),
        "timeout",
        "malformed",
    ),
    case("length and chunks", "both ways of framing at once", sends(_BOTH), "malformed"),
    case(
        "chunks not last",
        "an encoding after chunked: delimited by close",
        sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nwhatever"),
        200,
        "malformed",
    ),
    case(
        "chunked in capitals",
        "the encoding's name in mixed case",
        repeats(b"HTTP/1.1 200 OK\r\ntRANSFER-eNCODING: CHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        200,
    ),
    case("more after the last chunk", "excess bytes", sends(CHUNKED + b"0\r\n\r\nmore"), 200),
)
