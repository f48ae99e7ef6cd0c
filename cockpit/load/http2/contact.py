"""The first response of a server before a load over HTTP/2, and its limit of streams."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from cockpit.load.failures import Malformed
from cockpit.load.http.responses import HEAD_LIMIT
from cockpit.load.http2 import frames
from cockpit.load.http2.frames import ACK, END_HEADERS
from cockpit.load.http2.heads import BlockDecoder, Http2Heads
from cockpit.load.http2.requests import split_frames

# Maximum number of frames before the response.
_FRAMES_LIMIT = 1000
_NUMBER = 1


class FirstContact(NamedTuple):
    """The status of the response (None: no request was sent), and the streams that the server allows per connection
    (None: any number)."""

    status: int | None
    streams: int | None


async def contact(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes | None, heads: Http2Heads
) -> FirstContact:
    """Send a request without a body, or None, and wait for SETTINGS and the head of the response. Raises Malformed,
    EOFError, OSError."""
    writer.write(frames.OPENING)
    if request is not None:
        start, rest, _ = split_frames(request)
        writer.write(start + frames.number_bytes(_NUMBER) + rest)
    decoder, block, settings, status = BlockDecoder(), b"", None, None
    for _ in range(_FRAMES_LIMIT):
        kind, flags, number, payload = await _frame(reader, greeted=settings is not None)
        if kind == frames.SETTINGS and not flags & ACK:
            settings = frames.settings_of(payload)
            writer.write(frames.frame(frames.SETTINGS, ACK, 0))
        elif kind == frames.PING and not flags & ACK:
            writer.write(frames.frame(frames.PING, ACK, 0, payload))
        elif kind == frames.GOAWAY:
            raise Malformed("goaway", f"the server ends the connection ({_code(payload[4:8])})")
        elif kind == frames.RST_STREAM and number == _NUMBER:
            raise Malformed("stream_reset", f"the server resets the request ({_code(payload)})")
        elif kind in (frames.HEADERS, frames.CONTINUATION) and number == _NUMBER and status is None:
            block += frames.payload_of(payload, flags) if kind == frames.HEADERS else payload
            if len(block) > HEAD_LIMIT:
                raise frames.head_too_large()
            if flags & END_HEADERS:
                head, block = heads.head_of(decoder.decode(block), len(block)), b""
                status = head.status if head.status >= 200 else None
        if settings is not None and (request is None or status is not None):
            return FirstContact(status, settings.get(frames.MAX_CONCURRENT_STREAMS))
    raise Malformed("http2_flood", f"the server sends {_FRAMES_LIMIT} frames and no response")


async def _frame(reader: asyncio.StreamReader, *, greeted: bool) -> tuple[int, int, int, bytes]:
    word, flags, number = frames.unpack_header(await reader.readexactly(frames.HEADER_SIZE))
    kind, length = word & 0xFF, word >> 8
    frames.check_frame(kind, flags, length, greeted=greeted)
    return kind, flags, number & frames.LAST_STREAM, await reader.readexactly(length)


def _code(payload: bytes) -> str:
    return f"error code {int.from_bytes(payload[:4], 'big')}"
