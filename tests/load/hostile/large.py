"""Responses that are slow, large or endless."""

from tests.load.hostile.cases import CHUNKED, GIANT, OK, HostileCase, case, drips, sends_endlessly
from tests.load.servers import always, once

_OK = b"HTTP/1.1 200 OK\r\n"
_LINES = b"X-Filler: " + b"y" * 54 + b"\r\n"


def _with(header: bytes) -> bytes:
    """Return a small valid response with an additional header."""
    return _OK + header + b"\r\nContent-Length: 5\r\n\r\nhello"


LARGE: tuple[HostileCase, ...] = (
    case("endless headers", sends_endlessly(_OK, _LINES * 64), "head_too_large"),
    case("endless header name", sends_endlessly(_OK, b"x" * 4096), "head_too_large"),
    case("endless header value", sends_endlessly(_OK + b"X: ", b"x" * 4096), "head_too_large"),
    case("endless status line", sends_endlessly(b"HTTP/1.1 200 O", b"K" * 4096), "head_too_large"),
    case("giant header, at once", once(_with(b"X: " + b"y" * GIANT)), "head_too_large"),
    case("giant head, many lines", once(_with(_LINES * (GIANT // 64))), "head_too_large"),
    case("large header", always(_with(b"X: " + b"y" * 60_000)), 200),
    case("a thousand headers", always(_with((_LINES * 1000)[:-2])), 200),
    case("garbage without end", sends_endlessly(b"", b"\xff" * 4096), "not_http"),
    case("slow drip, in time", drips(OK, 0.001), 200),
    case("slow drip, too slow", drips(OK, 0.5), "timeout"),
    case("many 1xx", always(b"HTTP/1.1 103 Hint\r\nX: y\r\n\r\n" * 200 + OK), 200),
    case("endless 1xx", sends_endlessly(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100), "timeout", "head_too_large"),
    case("HEAD with a body", once(OK), 200, plan={"method": "HEAD"}),
    case("endless body", sends_endlessly(_OK + b"\r\n", b"x" * 65536), "timeout"),
    case("many small chunks", always(CHUNKED + b"1\r\nx\r\n" * 5000 + b"0\r\n\r\n"), 200),
    case("endless chunks", sends_endlessly(CHUNKED, b"1000\r\n" + b"x" * 4096 + b"\r\n"), "timeout"),
    case("endless chunk extension", sends_endlessly(CHUNKED + b"5;", b"x" * 4096), "timeout", "invalid_chunks"),
    case("endless trailers", sends_endlessly(CHUNKED + b"0\r\n", b"X: y\r\n" * 500), "timeout", "invalid_chunks"),
)
