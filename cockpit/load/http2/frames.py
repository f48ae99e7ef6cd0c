"""Frames of HTTP/2 (RFC 9113 sections 4 to 6)."""

from __future__ import annotations

import struct

from cockpit.load.failures import Malformed
from cockpit.model.load.plan import ErrorKind

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
# Flags; ACK is that of SETTINGS and PING.
END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITIZED = 0x20

# Identifiers of SETTINGS.
HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = (
    range(1, 7)
)

# Error codes of RST_STREAM and GOAWAY.
NO_ERROR, PROTOCOL_ERROR, CANCEL, REFUSED_STREAM = 0x0, 0x1, 0x8, 0x7

# Length of a frame's header; maximum length of a frame's payload, which neither side raises.
HEADER_SIZE = 9
FRAME_LIMIT = 16384
# Windows (bytes): of each stream and of the connection before any SETTINGS; the largest.
FIRST_WINDOW = 65535
LARGEST_WINDOW = (1 << 31) - 1
# The last stream that a client can open.
LAST_STREAM = (1 << 31) - 1

# Of control frames: the length of the payload, and whether they belong to the connection or a stream; None: any.
FORMS: dict[int, tuple[int | None, bool | None]] = {
    PRIORITY: (5, False),
    RST_STREAM: (4, False),
    SETTINGS: (None, True),
    PING: (8, True),
    GOAWAY: (None, True),
    WINDOW_UPDATE: (4, None),
}

# Length and type (its last byte), flags, stream.
_HEADER = struct.Struct(">LBL")
unpack_header = _HEADER.unpack_from
number_bytes = struct.Struct(">L").pack
_SETTING = struct.Struct(">HL")


class Http2Fault(Malformed):
    """The server violates HTTP/2: the whole connection is unusable."""

    def __init__(self, fault: str, kind: ErrorKind = "http2_protocol") -> None:
        super().__init__(kind, fault)


def frame(kind: int, flags: int, number: int, payload: bytes = b"") -> bytes:
    """Return a frame of stream `number`; 0: of the connection."""
    return _HEADER.pack(len(payload) << 8 | kind, flags, number) + payload


def reset(number: int, code: int) -> bytes:
    return frame(RST_STREAM, 0, number, number_bytes(code))


def window_update(number: int, increment: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, number, number_bytes(increment))


def settings(values: dict[int, int]) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(*item) for item in values.items()))


def settings_of(payload: bytes) -> dict[int, int]:
    """Return the values of a SETTINGS frame. Raises Http2Fault for values outside their limits."""
    if len(payload) % _SETTING.size:
        raise Http2Fault("a SETTINGS frame has an invalid length")
    values = dict(_SETTING.iter_unpack(payload))
    if values.get(INITIAL_WINDOW_SIZE, 0) > LARGEST_WINDOW:
        raise Http2Fault("the initial window is too large")
    if not FRAME_LIMIT <= values.get(MAX_FRAME_SIZE, FRAME_LIMIT) < 1 << 24:
        raise Http2Fault("the maximum frame size is invalid")
    if values.get(ENABLE_PUSH, 0):
        raise Http2Fault("the server enables push")
    return values


def check_frame(kind: int, flags: int, length: int, *, greeted: bool) -> None:
    """Raise Http2Fault for a frame that is too large, or if the server does not begin with SETTINGS."""
    if not greeted and (kind != SETTINGS or flags & ACK or length > FRAME_LIMIT):
        raise Http2Fault("the server does not speak HTTP/2", "not_http")
    if length > FRAME_LIMIT:
        raise Http2Fault("a frame is too large")


def head_too_large() -> Http2Fault:
    return Http2Fault("the head of a response is too large", "head_too_large")


def payload_of(payload: bytes, flags: int) -> bytes:
    """Return the payload of a frame without padding, and without the priority of HEADERS. Raises Http2Fault."""
    start, end = 0, len(payload)
    if flags & PADDED:
        start, end = 1, end - (payload[0] if payload else 0)
    if flags & PRIORITIZED:
        start += 5
    if start > end:
        raise Http2Fault("a frame is shorter than its padding")
    return payload[start:end]


# What a client sends first: the preface; no pushes, stateless header blocks, and windows that no response exhausts.
OPENING = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    + settings({HEADER_TABLE_SIZE: 0, ENABLE_PUSH: 0, INITIAL_WINDOW_SIZE: LARGEST_WINDOW})
    + window_update(0, LARGEST_WINDOW - FIRST_WINDOW)
)
