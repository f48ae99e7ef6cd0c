"""Makes HTTP responses from their parts, and breaks some of the parts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random

STATUS_LINES = (
    b"HTTP/1.1 200 OK",
    b"HTTP/1.1 200 ",
    b"HTTP/1.0 200 OK",
    b"HTTP/1.1 404 Not Found",
    b"HTTP/1.1 302 Found",
    b"HTTP/1.1 999 Odd",
)
BROKEN_STATUS_LINES = (
    b"HTTP/1.1 2x0 OK",
    b"HTTP/1.1 -200 OK",
    b"HTTP/1.1 99 Low",
    b"HTTP/1.1 1000 High",
    b"HTTP/9.9 200 OK",
    b"HTTP/2 200",
    b"http/1.1 200 OK",
    b"ICY 200 OK",
    b"SSH-2.0-OpenSSH_9.2",
    b"",
    b"HTTP/1.1 204 No Content",
    b"HTTP/1.1 304 Not Modified",
    b"HTTP/1.1 101 Switching Protocols",
    b"HTTP/1.1 200 " + b"x" * 5000,
)
FIELDS = (
    b"Server: x",
    b"Date: now",
    b"Location: /elsewhere",
    b"Connection: keep-alive",
    b"Set-Cookie: a=b; c=\xe9",
    b"X-Empty:",
    b"X: " + b"y" * 300,
    b"X-Folded: a\r\n b",
)
BROKEN_FIELDS = (
    b"Content-Length: 5",
    b"Content-Length: 6",
    b"content-length:  7 ",
    b"Content-Length: -5",
    b"Content-Length: +5",
    b"Content-Length: 0x5",
    b"Content-Length: 5, 6",
    b"Content-Length: ",
    b"Content-Length: 999999999999999999",
    b"Content-Length: " + b"9" * 5000,
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip",
    b"Transfer-Encoding: chunked, gzip",
    b"tRANSFER-eNCODING: CHUNKED",
    b"Connection: close",
    b"Connection: upgrade\r\nUpgrade: x",
    b"X: a\0b",
    b"X\x07: y",
    b"X : y",
    b": y",
    b"nonsense",
    b" folded",
    b"X: a\rb",
    b"X: a\nContent-Length: 3",
    b"X: " + b"y" * 140_000,
)
CHUNK_SIZES = (b"%x", b"%X;a=b", b"0%x", b'%x;a="b;c"')
BROKEN_CHUNK_SIZES = (
    b"zz%x",
    b"-%x",
    b"0x%x",
    b"f%xf",
    b"ffffffffffffffffffff%.0x",
    b"%.0x",
    b"%x ",
    b" %x",
    b"%x;" + b"e" * 3000,
)
INTERIM = (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
EXCESS = (b"\r\n", b"more", b"\0", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 408 Slow\r\n\r\n")


@dataclass(frozen=True)
class Response:
    """`data` is sent in `pieces`; `whole`: it is intact and closes as its framing says, with this `status`."""

    data: bytes
    whole: bool
    status: int
    size: int
    until_close: bool

    def pieces(self, chance: Random) -> list[bytes]:
        """The bytes cut at a few random places; now and then at each."""
        if len(self.data) < 400 and chance.random() < 0.02:
            return [self.data[at : at + 1] for at in range(len(self.data))]
        cuts = sorted(chance.randrange(len(self.data) + 1) for _ in range(chance.choice((0, 0, 1, 1, 2, 5))))
        edges = [0, *cuts, len(self.data)]
        return [self.data[a:b] for a, b in pairwise(edges) if a < b]


def response(chance: Random) -> Response:
    """A response that is intact, or broken in one or several ways."""
    broken = chance.random() < 0.7
    line, fields = chance.choice(STATUS_LINES), [chance.choice(FIELDS) for _ in range(chance.randrange(4))]
    body = chance.randbytes(chance.choice((0, 0, 1, 5, 5, 50, 2000)))
    framing = chance.choice(("length", "length", "chunked", "chunked", "close"))
    sizes = CHUNK_SIZES
    if broken:
        line, fields, sizes = _broken_parts(chance, line, fields)
    if framing == "length":
        fields.insert(chance.randrange(len(fields) + 1), b"Content-Length: %d" % len(body))
    if framing == "chunked":
        fields.insert(chance.randrange(len(fields) + 1), b"Transfer-Encoding: chunked")
    payload = _chunked(chance, body, sizes) if framing == "chunked" else body
    data = b"\r\n".join([line, *fields]) + b"\r\n\r\n"
    if chance.random() < 0.1:
        data = data.replace(b"\r\n", b"\n")
    data = b"".join(chance.choices(INTERIM, k=chance.choice((0, 0, 0, 1, 2)))) + data + payload
    if broken:
        data = _damaged(chance, data)
    status = int(line.split(b" ")[1]) if not broken else 0
    return Response(data, not broken, status, len(body), framing == "close")


def _broken_parts(chance: Random, line: bytes, fields: list[bytes]) -> tuple[bytes, list[bytes], tuple[bytes, ...]]:
    sizes = CHUNK_SIZES
    if chance.random() < 0.2:
        line = chance.choice(BROKEN_STATUS_LINES)
    if chance.random() < 0.4:
        fields = [*fields, *chance.choices(BROKEN_FIELDS, k=chance.choice((1, 1, 2)))]
    if chance.random() < 0.3:
        sizes = BROKEN_CHUNK_SIZES
    return line, fields, sizes


def _chunked(chance: Random, body: bytes, sizes: tuple[bytes, ...]) -> bytes:
    step = max(1, len(body) // chance.choice((1, 2, 3)))
    chunks = [body[at : at + step] for at in range(0, len(body), step)]
    coded = b"".join(chance.choice(sizes) % len(chunk) + b"\r\n" + chunk + b"\r\n" for chunk in chunks)
    return coded + b"0\r\n" + chance.choice((b"", b"", b"X: trailer\r\n")) + b"\r\n"


def _damaged(chance: Random, data: bytes) -> bytes:
    """The bytes cut short, followed by others, or with some of them changed."""
    way = chance.randrange(6)
    at = chance.randrange(len(data) + 1)
    if way == 0:
        return data[:at]
    if way == 1:
        return data + chance.choice(EXCESS)
    if way == 2:
        return data[:at] + chance.choice((b"\0", b"\n", b"\r", b"\r\n\r\n", b" ", b"\xff")) + data[at:]
    if way == 3:
        return data[:at] + data[at + chance.randrange(1, 9) :]
    if way == 4:
        return data[:at] + chance.randbytes(1) + data[at + 1 :]
    return data
