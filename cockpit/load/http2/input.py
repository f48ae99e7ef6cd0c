"""What a connection of HTTP/2 receives (RFC 9113): responses, and frames of the server that control the connection."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from cockpit.load.failures import Malformed
from cockpit.load.http.heads import UNTIL_CLOSE
from cockpit.load.http.load_socket import ConnectionOwner
from cockpit.load.http.responses import HEAD_LIMIT
from cockpit.load.http2 import frames
from cockpit.load.http2.frames import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    FRAME_LIMIT,
    HEADER_SIZE,
    HEADERS,
    LAST_STREAM,
    PADDED,
    PROTOCOL_ERROR,
    Http2Fault,
    unpack_header,
)
from cockpit.load.http2.heads import BlockDecoder, HeaderField
from cockpit.load.http2.output import Http2Output
from cockpit.model.load.plan import ErrorKind

if TYPE_CHECKING:
    from cockpit.load.http2.stream import Http2Stream

# Bytes received before a window is opened again.
_TOP_UP = 1 << 30
# Maximum number of frames of a header block.
_FRAGMENTS_LIMIT = 32
_UNLIMITED = 1 << 31


class Http2Input(Http2Output):
    """The receiving side of a connection; `served`: responses and pieces of responses so far."""

    def __init__(self, load: ConnectionOwner) -> None:
        super().__init__(load)
        self.served = 0
        self._greeted = self._acknowledged = False
        # Bytes of bodies received since the window was opened.
        self._received = 0
        # A partial frame; the block that CONTINUATION frames continue: its stream, flags and fragments.
        self._partial = b""
        self._block: tuple[int, int, list[bytes]] | None = None
        self._decoder: BlockDecoder | None = None
        # The kind of the errors if the server ends the connection.
        self._end_kind: ErrorKind | None = None

    def _parse(self, data: bytes, now: float) -> None:
        """Handle all complete frames in `data`."""
        at, size = 0, len(data)
        while size - at >= HEADER_SIZE:
            if self._acknowledged and self._block is None:
                at = self._count_whole(data, at, now)
                if size - at < HEADER_SIZE:
                    break
            word, flags, number = unpack_header(data, at)
            kind, start = word & 0xFF, at + HEADER_SIZE
            end = start + (word >> 8)
            if end - start > FRAME_LIMIT or not self._greeted:
                frames.check_frame(kind, flags, end - start, greeted=self._greeted)
            if end > size:
                break
            at = end
            self._handle(kind, flags, number & LAST_STREAM, data[start:end], now)
        self._partial = data[at:]
        if self._received >= _TOP_UP:
            self._out.append(frames.window_update(0, self._received))
            self._received = 0

    def _count_whole(self, data: bytes, at: int, now: float) -> int:
        """Count the complete responses from `at` on that need no check: HEADERS, and the body in one frame. Return the
        position of the first other frame."""
        streams, proceed, size = self._streams, self._load.next, len(data)
        served = received = 0
        while size - at >= HEADER_SIZE:
            word, flags, number = unpack_header(data, at)
            stream = streams.get(number)
            if word & 0xFF != HEADERS or stream is None:
                break
            end = at + HEADER_SIZE + (word >> 8)
            if end > size or not stream.first == inf != stream.sent or stream.unsent is not None:
                break
            block = data[at + HEADER_SIZE : end]
            head = stream.known(block) or stream.heads.learn(block)
            if head is None:
                break
            if flags == END_HEADERS:
                following = end + HEADER_SIZE
                if data[end:following] != head.tail + data[at + 5 : at + HEADER_SIZE]:
                    break
                end = following + head.length
                if end > size:
                    break
            elif flags != END_HEADERS | END_STREAM or not head.length == 0 <= head.total:
                break
            at = end
            received += head.length
            served += 1
            head.hits += 1
            del streams[number]
            stream.whole(now - stream.sent)
            proceed(stream)
        self.served += served
        self._received += received
        return at

    def _reset_stream(self, stream: Http2Stream, code: int) -> None:
        self._end_stream(stream)
        self._out.append(frames.reset(stream.number, code))

    def _end_stream(self, stream: Http2Stream) -> None:
        del self._streams[stream.number]
        stream.unsent = None

    # --- bodies ---

    def _on_data(self, flags: int, number: int, payload: bytes, now: float) -> None:
        self._check_opened(number)
        self._received += len(payload)
        body = frames.payload_of(payload, flags & PADDED)
        stream = self._streams.get(number)
        if stream is None:
            return
        self.served += 1
        stream.counts.received += HEADER_SIZE + len(payload)
        if stream.size % _TOP_UP + len(body) >= _TOP_UP:
            self._out.append(frames.window_update(number, _TOP_UP))
        stream.add(body)
        if stream.head is None:
            self._malformed(stream, Malformed("invalid_head", "the body of a response precedes its head"))
        elif stream.size > stream.head.length >= 0:
            self._malformed(stream, Malformed("ambiguous_length", "the body is longer than content-length"))
        elif flags & END_STREAM:
            self._complete(stream, now)

    def _complete(self, stream: Http2Stream, now: float) -> None:
        assert stream.head is not None
        if stream.head.length not in (stream.size, UNTIL_CLOSE):
            self._malformed(stream, Malformed("ambiguous_length", "the body is shorter than content-length"))
            return
        if stream.unsent is not None:
            # A response without the whole request: the server needs no more of it.
            self._reset_stream(stream, frames.NO_ERROR)
        else:
            self._end_stream(stream)
        stream.finish(now)

    def _malformed(self, stream: Http2Stream, fault: Malformed) -> None:
        """Fail the request of one stream."""
        self._reset_stream(stream, PROTOCOL_ERROR)
        stream.fail(fault.kind)

    # --- heads ---

    def _begin_block(self, flags: int, number: int, payload: bytes, now: float) -> None:
        self._check_opened(number)
        block = frames.payload_of(payload, flags)
        if flags & END_HEADERS:
            self._on_block(flags, number, block, now)
        else:
            self._block = (number, flags, [block])

    def _continue_block(self, flags: int, number: int, payload: bytes, now: float) -> None:
        if self._block is None or self._block[0] != number:
            raise Http2Fault("a CONTINUATION frame without a header block")
        _, first_flags, fragments = self._block
        fragments.append(payload)
        if sum(map(len, fragments)) > HEAD_LIMIT:
            raise frames.head_too_large()
        if len(fragments) > _FRAGMENTS_LIMIT:
            raise Http2Fault("a header block has too many frames", "http2_flood")
        if flags & END_HEADERS:
            self._block = None
            self._on_block(first_flags, number, b"".join(fragments), now)

    def _on_block(self, flags: int, number: int, block: bytes, now: float) -> None:
        """Handle a complete header block: a head or trailers."""
        stream = self._streams.get(number)
        if stream is not None:
            self.served += 1
            stream.arrived(HEADER_SIZE + len(block), now)
        try:
            fields = None if self._acknowledged else self._first_decoder().decode(block)
            # Without a stream, the block is late, after a timeout.
            if stream is not None:
                self._on_head(stream, block, fields, bool(flags & END_STREAM), now)
        except Http2Fault:
            raise
        except Malformed as fault:
            if stream is not None:
                self._malformed(stream, fault)

    def _on_head(
        self, stream: Http2Stream, block: bytes, fields: list[HeaderField] | None, ends: bool, now: float
    ) -> None:
        """Handle a head or trailers; `fields`: of a block that may depend on a dynamic table. Raises Malformed."""
        if stream.head is not None:
            if not ends:
                raise Malformed("invalid_head", "a second head in the response")
            self._complete(stream, now)
            return
        heads = stream.heads
        head = heads.known(block) or heads.parse(block) if fields is None else heads.head_of(fields, len(block))
        if head.status >= 200:
            stream.head = head
            if ends:
                self._complete(stream, now)
        elif ends:
            raise Malformed("invalid_head", "the response ends after an interim head")

    def _first_decoder(self) -> BlockDecoder:
        """Return the decoder of blocks that may use a dynamic table: before the server acknowledged SETTINGS."""
        self._decoder = self._decoder or BlockDecoder()
        return self._decoder

    # --- control frames ---

    def _handle(self, kind: int, flags: int, number: int, payload: bytes, now: float) -> None:
        """Handle a frame. Raises Http2Fault."""
        if self._block is not None and kind != frames.CONTINUATION:
            raise Http2Fault("a frame interrupts a header block")
        if kind == DATA:
            self._on_data(flags, number, payload, now)
        elif kind == HEADERS:
            self._begin_block(flags, number, payload, now)
        elif kind == frames.CONTINUATION:
            self._continue_block(flags, number, payload, now)
        elif kind == frames.PUSH_PROMISE:
            raise Http2Fault("the server pushes, although that is disabled")
        elif kind in frames.FORMS:
            length, of_connection = frames.FORMS[kind]
            if (length is not None and len(payload) != length) or of_connection not in (None, number == 0):
                raise Http2Fault("a frame has an invalid length or stream")
            self._control(kind, flags, number, payload)

    def _control(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if kind == frames.SETTINGS:
            self._on_settings(flags, payload)
        elif kind == frames.PING:
            if not flags & ACK:
                self._answer(frames.frame(frames.PING, ACK, 0, payload))
        elif kind == frames.GOAWAY:
            self._on_goaway(payload)
        elif kind == frames.WINDOW_UPDATE:
            if number:
                self._check_opened(number)
            increment = int.from_bytes(payload, "big") & LAST_STREAM
            if not increment:
                raise Http2Fault("a WINDOW_UPDATE frame without an increment")
            self._open_window(number, increment)
        elif kind == frames.RST_STREAM:
            self._check_opened(number)
            self._on_reset(number, int.from_bytes(payload, "big"))

    def _on_settings(self, flags: int, payload: bytes) -> None:
        if flags & ACK:
            if payload:
                raise Http2Fault("an acknowledgement of SETTINGS has values")
            self._acknowledged = True
            return
        values = frames.settings_of(payload)
        if not self._greeted or frames.MAX_CONCURRENT_STREAMS in values:
            self._limit = values.get(frames.MAX_CONCURRENT_STREAMS, _UNLIMITED)
        self._greeted = True
        if frames.INITIAL_WINDOW_SIZE in values:
            self._change_stream_window(values[frames.INITIAL_WINDOW_SIZE])
        self._answer(frames.frame(frames.SETTINGS, ACK, 0))

    def _on_reset(self, number: int, code: int) -> None:
        stream = self._streams.get(number)
        if stream is None:
            return
        self._end_stream(stream)
        if code == frames.REFUSED_STREAM:
            stream.refused()
        else:
            stream.fail("stream_reset")

    def _on_goaway(self, payload: bytes) -> None:
        """Send further requests, and those that the server did not process, on another connection."""
        if len(payload) < 8:
            raise Http2Fault("a GOAWAY frame is too short")
        last, code = int.from_bytes(payload[:4], "big") & LAST_STREAM, int.from_bytes(payload[4:8], "big")
        if code:
            self._end_kind = "goaway"
        if not self.draining:
            self._tally.reconnects += 1
        self._hand_over()
        for number in [number for number in self._streams if number > last]:
            stream = self._streams[number]
            self._end_stream(stream)
            stream.refused()

    def _check_opened(self, number: int) -> None:
        """Raise Http2Fault for a stream that was never opened."""
        if not (number & 1 and number < self._next):
            raise Http2Fault("a frame of a stream that was never opened")
        if number in self._streams and self._streams[number].sent == inf:
            raise Http2Fault("a response precedes its request")
