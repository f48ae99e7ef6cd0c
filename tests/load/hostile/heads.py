"""Replies whose head is missing, broken, endless or strange."""

from __future__ import annotations

from tests.load.hostile.rows import (
    GIANT,
    OK,
    Row,
    drips,
    repeats,
    row,
    says,
    says_and_holds,
    says_and_resets,
    says_without_end,
)

_LINES = b"X-Filler: " + b"y" * 54 + b"\r\n"


def _with(header: bytes) -> bytes:
    """A small good reply with one header more."""
    return b"HTTP/1.1 200 OK\r\n" + header + b"\r\nContent-Length: 5\r\n\r\nhello"


def _status_line(line: bytes) -> bytes:
    return line + b"\r\nContent-Length: 5\r\n\r\nhello"


HEADS: tuple[Row, ...] = (
    row("no reply, held", "takes the request and says nothing", says_and_holds(), "timeout"),
    row("no reply, closed", "takes the request and closes", says(), "closed_before_response"),
    row("no reply, RST", "takes the request and resets", says_and_resets(), "reset"),
    row("half a status line, closed", "HTTP/1.1 2, then closes", says(b"HTTP/1.1 2"), "closed_early"),
    row("half a status line, held", "HTTP/1.1 2, then nothing", says_and_holds(b"HTTP/1.1 2"), "timeout"),
    row("half a header, closed", "closes within a header", says(b"HTTP/1.1 200 OK\r\nContent-"), "closed_early"),
    row("half a header, held", "stops within a header", says_and_holds(b"HTTP/1.1 200 OK\r\nContent-"), "timeout"),
    row("half a header, RST", "resets within a header", says_and_resets(b"HTTP/1.1 200 OK\r\nContent-"), "reset"),
    row("no empty line, closed", "headers but no end of them", says(b"HTTP/1.1 200 OK\r\nX: y\r\n"), "closed_early"),
    row(
        "endless headers",
        "header after header without end",
        says_without_end(b"HTTP/1.1 200 OK\r\n", _LINES * 64),
        "malformed",
    ),
    row(
        "endless header name",
        "a header name without end",
        says_without_end(b"HTTP/1.1 200 OK\r\n", b"x" * 4096),
        "malformed",
    ),
    row(
        "endless header value",
        "a header value without end",
        says_without_end(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 4096),
        "malformed",
    ),
    row(
        "endless status line",
        "a reason phrase without end",
        says_without_end(b"HTTP/1.1 200 O", b"K" * 4096),
        "malformed",
    ),
    row("giant header, at once", "a complete head over the limit", says(_with(b"X: " + b"y" * GIANT)), "malformed"),
    row("giant head, many lines", "a complete head over the limit", says(_with(_LINES * (GIANT // 64))), "malformed"),
    row("large header", "a header of 60 kB, within the limit", repeats(_with(b"X: " + b"y" * 60_000)), 200),
    row("a thousand headers", "a head of 64 kB, within the limit", repeats(_with((_LINES * 1000)[:-2])), 200),
    row("garbage line", "a line that is no status line", says(b"\x01\x02 this is not HTTP\r\n\r\n"), "malformed"),
    row("garbage, closed", "bytes without a line end, then closes", says(bytes(range(128, 256))), "malformed"),
    row("garbage, held", "bytes without a line end, then nothing", says_and_holds(bytes(range(128, 256))), "malformed"),
    row(
        "garbage without end", "bytes without a line end or any end", says_without_end(b"", b"\xff" * 4096), "malformed"
    ),
    row("NULs, closed", "binary zeros, then closes", says(bytes(64)), "malformed"),
    row("NULs, held", "binary zeros, then nothing", says_and_holds(bytes(64)), "malformed"),
    row("NUL in a value", "a binary zero within a header", says(_with(b"X: a\0b")), "malformed"),
    row("control character in a name", "a bell within a header's name", says(_with(b"X\x07: y")), "malformed"),
    row("other protocol", "greets as SSH does, and waits", says_and_holds(b"SSH-2.0-OpenSSH_9.2\r\n"), "malformed"),
    row("ICY", "a status line of SHOUTcast", says(_status_line(b"ICY 200 OK")), "malformed"),
    row("HTTP/9.9", "a version that does not exist", says(_status_line(b"HTTP/9.9 200 OK")), "malformed"),
    row("HTTP/2 in text", "a version without a minor number", says(_status_line(b"HTTP/2 200 OK")), "malformed"),
    row("http/1.1", "the protocol's name in small letters", says(_status_line(b"http/1.1 200 OK")), "malformed"),
    row("no status code", "a status line without a code", says(_status_line(b"HTTP/1.1 OK")), "malformed"),
    row("status 99", "a code of two digits", says(_status_line(b"HTTP/1.1 99 Low")), "malformed"),
    row("status 1000", "a code of four digits", says(_status_line(b"HTTP/1.1 1000 High")), "malformed"),
    row("status -200", "a negative code", says(_status_line(b"HTTP/1.1 -200 OK")), "malformed"),
    row("status 2x0", "a code with a letter", says(_status_line(b"HTTP/1.1 2x0 OK")), "malformed"),
    row("status 999", "a code without meaning, but a code", repeats(_status_line(b"HTTP/1.1 999 Odd")), 999),
    row("no reason", "a status line that ends with the code", repeats(_status_line(b"HTTP/1.1 200 ")), 200),
    row("HTTP/0.9", "a body and no head", says(b"<html>hello</html>\n"), "malformed"),
    row("bare line feeds", "LF where CR LF belongs", repeats(b"HTTP/1.1 200 OK\nContent-Length: 0\n\n"), 200),
    row("bare line feeds, held", "the same, kept open", says_and_holds(b"HTTP/1.1 200 OK\nX: y\n\n"), "timeout"),
    row("folded header", "a header continued on the next line", repeats(_with(b"X: a\r\n b")), 200),
    row("header without colon", "a header line without a colon", says(_with(b"nonsense")), "malformed"),
    row("space before colon", "a header name that ends in a space", says(_with(b"X : y")), "malformed"),
    row("empty header name", "a header line that begins with its colon", says(_with(b": y")), "malformed"),
    row("latin-1 in a value", "a header value beyond ASCII", repeats(_with(b"X: caf\xe9")), 200),
    row("byte by byte", "a good reply, a segment a byte", repeats(*(bytes([byte]) for byte in OK)), 200),
    row("slow drip, in time", "a byte every 10 ms", drips(OK, 0.01), 200),
    row("slow drip, too slow", "a byte every 50 ms", drips(OK, 0.05), "timeout"),
    row("continue, then final", "100 before the reply", repeats(b"HTTP/1.1 100 Continue\r\n\r\n", OK), 200),
    row("continue and final at once", "100 and the reply in one", repeats(b"HTTP/1.1 100 Continue\r\n\r\n" + OK), 200),
    row("many 1xx", "200 early hints before the reply", repeats(b"HTTP/1.1 103 Hint\r\nX: y\r\n\r\n" * 200 + OK), 200),
    row(
        "endless 1xx",
        "100 after 100 without end",
        says_without_end(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
        "timeout",
        "malformed",
    ),
    row("continue, closed", "100 and then closes", says(b"HTTP/1.1 100 Continue\r\n\r\n"), "closed_early"),
    row("continue, held", "100 and then nothing", says_and_holds(b"HTTP/1.1 100 Continue\r\n\r\n"), "timeout"),
    row(
        "switches protocols",
        "101, though nobody asked",
        says(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
        "malformed",
    ),
)
