"""Responses with a missing, invalid, endless or unusual head."""

from __future__ import annotations

from tests.load.hostile.cases import (
    GIANT,
    OK,
    HostileCase,
    case,
    drips,
    repeats,
    sends,
    sends_and_holds,
    sends_and_resets,
    sends_endlessly,
)

_LINES = b"X-Filler: " + b"y" * 54 + b"\r\n"


def _with(header: bytes) -> bytes:
    """Return a small valid response with an additional header."""
    return b"HTTP/1.1 200 OK\r\n" + header + b"\r\nContent-Length: 5\r\n\r\nhello"


def _status_line(line: bytes) -> bytes:
    return line + b"\r\nContent-Length: 5\r\n\r\nhello"


HEADS: tuple[HostileCase, ...] = (
    case("no response, held", "accepts the request and sends nothing", sends_and_holds(), "timeout"),
    case("no response, closed", "accepts the request and closes", sends(), "closed_before_response"),
    case("no response, RST", "accepts the request and resets", sends_and_resets(), "reset"),
    case("half a status line, closed", "HTTP/1.1 2, then closes", sends(b"HTTP/1.1 2"), "closed_early"),
    case("half a status line, held", "HTTP/1.1 2, then nothing", sends_and_holds(b"HTTP/1.1 2"), "timeout"),
    case("half a header, closed", "closes within a header", sends(b"HTTP/1.1 200 OK\r\nContent-"), "closed_early"),
    case("half a header, held", "stops within a header", sends_and_holds(b"HTTP/1.1 200 OK\r\nContent-"), "timeout"),
    case("half a header, RST", "resets within a header", sends_and_resets(b"HTTP/1.1 200 OK\r\nContent-"), "reset"),
    case("no empty line, closed", "headers without an end", sends(b"HTTP/1.1 200 OK\r\nX: y\r\n"), "closed_early"),
    case(
        "endless headers",
        "an endless series of headers",
        sends_endlessly(b"HTTP/1.1 200 OK\r\n", _LINES * 64),
        "malformed",
    ),
    case(
        "endless header name",
        "an endless header name",
        sends_endlessly(b"HTTP/1.1 200 OK\r\n", b"x" * 4096),
        "malformed",
    ),
    case(
        "endless header value",
        "an endless header value",
        sends_endlessly(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 4096),
        "malformed",
    ),
    case(
        "endless status line",
        "an endless reason phrase",
        sends_endlessly(b"HTTP/1.1 200 O", b"K" * 4096),
        "malformed",
    ),
    case("giant header, at once", "a complete head over the limit", sends(_with(b"X: " + b"y" * GIANT)), "malformed"),
    case("giant head, many lines", "a complete head over the limit", sends(_with(_LINES * (GIANT // 64))), "malformed"),
    case("large header", "a header of 60 kB, within the limit", repeats(_with(b"X: " + b"y" * 60_000)), 200),
    case("a thousand headers", "a head of 64 kB, within the limit", repeats(_with((_LINES * 1000)[:-2])), 200),
    case("garbage line", "a line that is no status line", sends(b"\x01\x02 this is not HTTP\r\n\r\n"), "malformed"),
    case("garbage, closed", "bytes without a line end, then closes", sends(bytes(range(128, 256))), "malformed"),
    case(
        "garbage, held", "bytes without a line end, then nothing", sends_and_holds(bytes(range(128, 256))), "malformed"
    ),
    case(
        "garbage without end",
        "an endless series of bytes without a line end",
        sends_endlessly(b"", b"\xff" * 4096),
        "malformed",
    ),
    case("NULs, closed", "binary zeros, then closes", sends(bytes(64)), "malformed"),
    case("NULs, held", "binary zeros, then nothing", sends_and_holds(bytes(64)), "malformed"),
    case("NUL in a value", "a binary zero within a header", sends(_with(b"X: a\0b")), "malformed"),
    case("control character in a name", "a bell within a header's name", sends(_with(b"X\x07: y")), "malformed"),
    case(
        "other protocol",
        "sends the greeting of SSH, and waits",
        sends_and_holds(b"SSH-2.0-OpenSSH_9.2\r\n"),
        "malformed",
    ),
    case("ICY", "a status line of SHOUTcast", sends(_status_line(b"ICY 200 OK")), "malformed"),
    case("HTTP/9.9", "a version that does not exist", sends(_status_line(b"HTTP/9.9 200 OK")), "malformed"),
    case("HTTP/2 in text", "a version without a minor number", sends(_status_line(b"HTTP/2 200 OK")), "malformed"),
    case("http/1.1", "the protocol's name in small letters", sends(_status_line(b"http/1.1 200 OK")), "malformed"),
    case("no status code", "a status line without a code", sends(_status_line(b"HTTP/1.1 OK")), "malformed"),
    case("status 99", "a code of two digits", sends(_status_line(b"HTTP/1.1 99 Low")), "malformed"),
    case("status 1000", "a code of four digits", sends(_status_line(b"HTTP/1.1 1000 High")), "malformed"),
    case("status -200", "a negative code", sends(_status_line(b"HTTP/1.1 -200 OK")), "malformed"),
    case("status 2x0", "a code with a letter", sends(_status_line(b"HTTP/1.1 2x0 OK")), "malformed"),
    case("status 999", "an undefined but valid code", repeats(_status_line(b"HTTP/1.1 999 Odd")), 999),
    case("no reason", "a status line that ends with the code", repeats(_status_line(b"HTTP/1.1 200 ")), 200),
    case("HTTP/0.9", "a body and no head", sends(b"<html>hello</html>\n"), "malformed"),
    case("bare line feeds", "LF instead of CR LF", repeats(b"HTTP/1.1 200 OK\nContent-Length: 0\n\n"), 200),
    case("bare line feeds, held", "the same, kept open", sends_and_holds(b"HTTP/1.1 200 OK\nX: y\n\n"), "timeout"),
    case("folded header", "a header continued on the next line", repeats(_with(b"X: a\r\n b")), 200),
    case("header without colon", "a header line without a colon", sends(_with(b"nonsense")), "malformed"),
    case("space before colon", "a header name that ends in a space", sends(_with(b"X : y")), "malformed"),
    case("empty header name", "a header line that begins with its colon", sends(_with(b": y")), "malformed"),
    case("latin-1 in a value", "a header value beyond ASCII", repeats(_with(b"X: caf\xe9")), 200),
    case("byte by byte", "a valid response, a segment per byte", repeats(*(bytes([byte]) for byte in OK)), 200),
    case("slow drip, in time", "a byte every 10 ms", drips(OK, 0.01), 200),
    case("slow drip, too slow", "a byte every 50 ms", drips(OK, 0.05), "timeout"),
    case("continue, then final", "100 before the response", repeats(b"HTTP/1.1 100 Continue\r\n\r\n", OK), 200),
    case(
        "continue and final at once",
        "100 and the response in a segment",
        repeats(b"HTTP/1.1 100 Continue\r\n\r\n" + OK),
        200,
    ),
    case(
        "many 1xx", "200 early hints before the response", repeats(b"HTTP/1.1 103 Hint\r\nX: y\r\n\r\n" * 200 + OK), 200
    ),
    case(
        "endless 1xx",
        "an endless series of 100",
        sends_endlessly(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
        "timeout",
        "malformed",
    ),
    case("continue, closed", "100 and then closes", sends(b"HTTP/1.1 100 Continue\r\n\r\n"), "closed_early"),
    case("continue, held", "100 and then nothing", sends_and_holds(b"HTTP/1.1 100 Continue\r\n\r\n"), "timeout"),
    case(
        "switches protocols",
        "101 without a request for it",
        sends(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
        "malformed",
    ),
)
