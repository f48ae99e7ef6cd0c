"""Responses with a missing, invalid, endless or unusual head."""

from __future__ import annotations

from tests.load.hostile.cases import GIANT, OK, HostileCase, case, drips, sends_endlessly
from tests.load.servers import always, once

_LINES = b"X-Filler: " + b"y" * 54 + b"\r\n"


def _with(header: bytes) -> bytes:
    """Return a small valid response with an additional header."""
    return b"HTTP/1.1 200 OK\r\n" + header + b"\r\nContent-Length: 5\r\n\r\nhello"


def _status_line(line: bytes) -> bytes:
    return line + b"\r\nContent-Length: 5\r\n\r\nhello"


HEADS: tuple[HostileCase, ...] = (
    case("no response, held", once(hold=True), "timeout"),
    case("no response, closed", once(), "closed_before_response"),
    case("no response, RST", once(reset=True), "reset"),
    case("half a status line, closed", once(b"HTTP/1.1 2"), "closed_early"),
    case("half a status line, held", once(b"HTTP/1.1 2", hold=True), "timeout"),
    case("half a header, closed", once(b"HTTP/1.1 200 OK\r\nContent-"), "closed_early"),
    case("half a header, held", once(b"HTTP/1.1 200 OK\r\nContent-", hold=True), "timeout"),
    case("half a header, RST", once(b"HTTP/1.1 200 OK\r\nContent-", reset=True), "reset"),
    case("no empty line, closed", once(b"HTTP/1.1 200 OK\r\nX: y\r\n"), "closed_early"),
    case("endless headers", sends_endlessly(b"HTTP/1.1 200 OK\r\n", _LINES * 64), "malformed"),
    case("endless header name", sends_endlessly(b"HTTP/1.1 200 OK\r\n", b"x" * 4096), "malformed"),
    case("endless header value", sends_endlessly(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 4096), "malformed"),
    case("endless status line", sends_endlessly(b"HTTP/1.1 200 O", b"K" * 4096), "malformed"),
    case("giant header, at once", once(_with(b"X: " + b"y" * GIANT)), "malformed"),
    case("giant head, many lines", once(_with(_LINES * (GIANT // 64))), "malformed"),
    case("large header", always(_with(b"X: " + b"y" * 60_000)), 200),
    case("a thousand headers", always(_with((_LINES * 1000)[:-2])), 200),
    case("garbage line", once(b"\x01\x02 this is not HTTP\r\n\r\n"), "malformed"),
    case("garbage, closed", once(bytes(range(128, 256))), "malformed"),
    case("garbage, held", once(bytes(range(128, 256)), hold=True), "malformed"),
    case("garbage without end", sends_endlessly(b"", b"\xff" * 4096), "malformed"),
    case("NULs, closed", once(bytes(64)), "malformed"),
    case("NULs, held", once(bytes(64), hold=True), "malformed"),
    case("NUL in a value", once(_with(b"X: a\0b")), "malformed"),
    case("control character in a name", once(_with(b"X\x07: y")), "malformed"),
    case("other protocol", once(b"SSH-2.0-OpenSSH_9.2\r\n", hold=True), "malformed"),
    case("ICY", once(_status_line(b"ICY 200 OK")), "malformed"),
    case("HTTP/9.9", once(_status_line(b"HTTP/9.9 200 OK")), "malformed"),
    case("HTTP/2 in text", once(_status_line(b"HTTP/2 200 OK")), "malformed"),
    case("http/1.1", once(_status_line(b"http/1.1 200 OK")), "malformed"),
    case("no status code", once(_status_line(b"HTTP/1.1 OK")), "malformed"),
    case("status 99", once(_status_line(b"HTTP/1.1 99 Low")), "malformed"),
    case("status 1000", once(_status_line(b"HTTP/1.1 1000 High")), "malformed"),
    case("status -200", once(_status_line(b"HTTP/1.1 -200 OK")), "malformed"),
    case("status 2x0", once(_status_line(b"HTTP/1.1 2x0 OK")), "malformed"),
    case("status 999", always(_status_line(b"HTTP/1.1 999 Odd")), 999),
    case("no reason", always(_status_line(b"HTTP/1.1 200 ")), 200),
    case("HTTP/0.9", once(b"<html>hello</html>\n"), "malformed"),
    case("bare line feeds", always(b"HTTP/1.1 200 OK\nContent-Length: 0\n\n"), 200),
    case("bare line feeds, held", once(b"HTTP/1.1 200 OK\nX: y\n\n", hold=True), "timeout"),
    case("folded header", always(_with(b"X: a\r\n b")), 200),
    case("header without colon", once(_with(b"nonsense")), "malformed"),
    case("space before colon", once(_with(b"X : y")), "malformed"),
    case("empty header name", once(_with(b": y")), "malformed"),
    case("latin-1 in a value", always(_with(b"X: caf\xe9")), 200),
    case("byte by byte", always(*(bytes([byte]) for byte in OK)), 200),
    case("slow drip, in time", drips(OK, 0.01), 200),
    case("slow drip, too slow", drips(OK, 0.5), "timeout"),
    case("continue, then final", always(b"HTTP/1.1 100 Continue\r\n\r\n", OK), 200),
    case("continue and final at once", always(b"HTTP/1.1 100 Continue\r\n\r\n" + OK), 200),
    case("many 1xx", always(b"HTTP/1.1 103 Hint\r\nX: y\r\n\r\n" * 200 + OK), 200),
    case("endless 1xx", sends_endlessly(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100), "timeout", "malformed"),
    case("continue, closed", once(b"HTTP/1.1 100 Continue\r\n\r\n"), "closed_early"),
    case("continue, held", once(b"HTTP/1.1 100 Continue\r\n\r\n", hold=True), "timeout"),
    case(
        "switches protocols",
        once(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
        "malformed",
    ),
)
