"""Replies whose head is good and whose body is not what it says, or ends in a way of its own."""

from __future__ import annotations

from tests.load.hostile.rows import (
    CHUNKED,
    OK,
    Row,
    repeats,
    row,
    says,
    says_and_holds,
    says_and_resets,
    says_without_end,
)


def _length(value: bytes, body: bytes = b"hello") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: " + value + b"\r\n\r\n" + body


_TO_THE_END = b"HTTP/1.1 200 OK\r\n\r\n"
_BOTH = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"

LENGTHS: tuple[Row, ...] = (
    row("short body, closed", "5 of 50 bytes, then closes", says(_length(b"50")), "closed_early"),
    row("short body, held", "5 of 50 bytes, then nothing", says_and_holds(_length(b"50")), "timeout"),
    row("short body, RST", "5 of 50 bytes, then resets", says_and_resets(_length(b"50")), "reset"),
    row("no body, closed", "a head that promises, then closes", says(_length(b"50", b"")), "closed_early"),
    row("no body, RST", "a head that promises, then resets", says_and_resets(_length(b"50", b"")), "reset"),
    row("long body", "more bytes than it said", says(_length(b"5", b"hello, and more")), 200),
    row("long body, held", "more bytes than it said, kept open", says_and_holds(_length(b"5", b"hello, more")), 200),
    row("two lengths", "lengths that contradict", says(_length(b"5\r\nContent-Length: 6")), "malformed"),
    row("two lengths in one", "a list of lengths", says(_length(b"5, 6")), "malformed"),
    row("negative length", "Content-Length: -5", says(_length(b"-5")), "malformed"),
    row("signed length", "Content-Length: +5", says(_length(b"+5")), "malformed"),
    row("length in words", "Content-Length: five", says(_length(b"five")), "malformed"),
    row("length in hex", "Content-Length: 0x5", says(_length(b"0x5")), "malformed"),
    row("no length in length", "Content-Length without a value", says(_length(b"")), "malformed"),
    row("length over 64 bits", "a length of 30 digits", says(_length(b"9" * 30)), "malformed"),
    row("huge length, closed", "a length of 18 digits, then closes", says(_length(b"9" * 18)), "closed_early"),
    row("huge length, held", "a length of 18 digits, then nothing", says_and_holds(_length(b"9" * 18)), "timeout"),
    row("endless body", "a body without end, to be closed", says_without_end(_TO_THE_END, b"x" * 65536), "timeout"),
    row("204 with a body", "a body where none may be", says(b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello"), 204),
    row(
        "304 with a length",
        "a length that stands for no body",
        repeats(b"HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n"),
        304,
    ),
    row("HEAD with a body", "a body after a HEAD", says(OK), 200, plan={"method": "HEAD"}),
    row("HTTP/1.0, until closed", "a body that ends with the connection", says(b"HTTP/1.0 200 OK\r\n\r\nhello"), 200),
    row("HTTP/1.1, until closed", "the same from a newer server", says(_TO_THE_END + b"hello"), 200),
    row("until RST", "a body that ends with a reset", says_and_resets(_TO_THE_END + b"hello"), "reset"),
    row("HTTP/1.0, with length", "no keep-alive by default", says(OK.replace(b"1.1", b"1.0")), 200),
    row(
        "HTTP/1.0, keep-alive",
        "keep-alive by agreement",
        repeats(OK.replace(b"1.1", b"1.0").replace(b"\r\n\r\n", b"\r\nConnection: keep-alive\r\n\r\n")),
        200,
    ),
)

CHUNKS: tuple[Row, ...] = (
    row("chunk size in words", "zz for a size", says(CHUNKED + b"zz\r\nhello\r\n"), "malformed"),
    row("chunk size negative", "-5 for a size", says(CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n"), "malformed"),
    row("chunk size with 0x", "0x5 for a size", says(CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n"), "malformed"),
    row("chunk size empty", "no size at all", says(CHUNKED + b"\r\nhello\r\n0\r\n\r\n"), "malformed"),
    row("chunk size over 64 bits", "a size of 20 hex digits", says(CHUNKED + b"f" * 20 + b"\r\nhello"), "malformed"),
    row(
        "chunk size huge, closed",
        "a size of 15 digits, then closes",
        says(CHUNKED + b"f" * 15 + b"\r\nx"),
        "closed_early",
    ),
    row("chunk size huge, held", "the same, then nothing", says_and_holds(CHUNKED + b"f" * 15 + b"\r\nx"), "timeout"),
    row("chunk without line end", "data that runs on", says(CHUNKED + b"5\r\nhelloworld\r\n0\r\n\r\n"), "malformed"),
    row("chunk with bare LF", "LF where CR LF belongs", says(CHUNKED + b"5\nhello\n0\n\n"), "malformed"),
    row("chunk cut short, closed", "closes within a chunk", says(CHUNKED + b"5\r\nhel"), "closed_early"),
    row("chunk cut short, held", "stops within a chunk", says_and_holds(CHUNKED + b"5\r\nhel"), "timeout"),
    row("chunk cut short, RST", "resets within a chunk", says_and_resets(CHUNKED + b"5\r\nhel"), "reset"),
    row("size cut short, closed", "closes within a chunk's size", says(CHUNKED + b"5"), "closed_early"),
    row("no last chunk, closed", "closes before the last chunk", says(CHUNKED + b"5\r\nhello\r\n"), "closed_early"),
    row("last chunk cut short", "closes within the last chunk", says(CHUNKED + b"5\r\nhello\r\n0\r\n"), "closed_early"),
    row(
        "chunk extension",
        "extensions, which mean nothing",
        repeats(CHUNKED + b'5;a=b;c="d"\r\nhello\r\n0\r\n\r\n'),
        200,
    ),
    row("trailers", "headers after the body", repeats(CHUNKED + b"5\r\nhello\r\n0\r\nX: y\r\nZ: z\r\n\r\n"), 200),
    row("many small chunks", "a chunk a byte", repeats(CHUNKED + b"1\r\nx\r\n" * 5000 + b"0\r\n\r\n"), 200),
    row(
        "endless chunks",
        "chunk after chunk without end",
        says_without_end(CHUNKED, b"1000\r\n" + b"x" * 4096 + b"\r\n"),
        "timeout",
    ),
    row(
        "endless chunk extension",
        "an extension without end",
        says_without_end(CHUNKED + b"5;", b"x" * 4096),
        "timeout",
        "malformed",
    ),
    row(
        "endless trailers",
        "trailer after trailer without end",
        says_without_end(CHUNKED + b"0\r\n", b"X: y\r\n" * 500),
        "timeout",
        "malformed",
    ),
    row("length and chunks", "both ways of framing at once", says(_BOTH), "malformed"),
    row(
        "chunks not last",
        "an encoding after chunked: it ends with the connection",
        says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nwhatever"),
        200,
        "malformed",
    ),
    row(
        "chunked in capitals",
        "the encoding's name in other letters",
        repeats(b"HTTP/1.1 200 OK\r\ntRANSFER-eNCODING: CHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        200,
    ),
    row("more after the last chunk", "bytes that belong to nothing", says(CHUNKED + b"0\r\n\r\nmore"), 200),
)
