"""Requests as HTTP/2 header blocks (RFC 7541) without the dynamic table: a request is the same bytes every time.

A request is one HEADERS frame of stream 0 with the whole block, and the body after it. `Stream` sets the number.
"""

from __future__ import annotations

from cockpit.load.http2.frames import END_HEADERS, END_STREAM, HEADER_SIZE, HEADERS, frame

# Fields of the connection, which HTTP/2 does not have (RFC 9113 section 8.2.2).
CONNECTION_FIELDS = frozenset({"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"})
# Indices of the static table.
_AUTHORITY, _METHOD, _PATH, _SCHEME = 1, 2, 4, 6
_INDEXED = {
    (_METHOD, b"GET"): 2,
    (_METHOD, b"POST"): 3,
    (_PATH, b"/"): 4,
    (_SCHEME, b"http"): 6,
    (_SCHEME, b"https"): 7,
}


def _integer(value: int, bits: int, first: int = 0) -> bytes:
    """Encode an integer with a prefix of `bits` bits in its first byte (RFC 7541 section 5.1)."""
    most = (1 << bits) - 1
    if value < most:
        return bytes((first | value,))
    encoded = bytearray((first | most,))
    value -= most
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _text(text: bytes) -> bytes:
    return _integer(len(text), 7) + text


def _pseudo(index: int, value: bytes) -> bytes:
    if (index, value) in _INDEXED:
        return _integer(_INDEXED[index, value], 7, 0x80)
    return _integer(index, 4) + _text(value)


def with_path(path: bytes, before: bytes, after: bytes) -> bytes:
    """Return the request for `path`. `before` and `after`: as returned by `split_request`."""
    size = int.from_bytes(after[:4], "big")
    block = before + _pseudo(_PATH, path) + after[4 : 4 + size]
    body = after[4 + size :]
    return frame(HEADERS, END_HEADERS if body else END_HEADERS | END_STREAM, 0, block) + body


def split_request(before: bytes, after: bytes, secure: bool) -> tuple[bytes, bytes]:
    """Convert the bytes before and after the path of an HTTP/1 request. The second part starts with the size of its
    headers (4 bytes), which the body follows."""
    head, _, body = after.partition(b"\r\n\r\n")
    fields, authority = b"", b""
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        name, value = name.strip().lower(), value.strip()
        if name == b"host":
            authority = _pseudo(_AUTHORITY, value)
        elif name.decode("latin-1") not in CONNECTION_FIELDS:
            fields += b"\x00" + _text(name) + _text(value)
    method = _pseudo(_METHOD, before.strip())
    block = _pseudo(_SCHEME, b"https" if secure else b"http") + authority + fields
    return method, len(block).to_bytes(4, "big") + block + body


def convert_request(request: bytes, secure: bool) -> bytes:
    """Convert a whole HTTP/1 request."""
    method, path, after = request.split(b" ", 2)
    return with_path(path, *split_request(method, b" " + after, secure))


def split_frames(request: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the bytes before and after the stream's number in the HEADERS frame of a request, and its body."""
    end = HEADER_SIZE + int.from_bytes(request[:3], "big")
    return request[:5], request[HEADER_SIZE:end], request[end:]
