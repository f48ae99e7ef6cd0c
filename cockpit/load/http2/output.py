"""What a connection of HTTP/2 sends: requests, their bodies under flow control, and answers to the server's frames.

All requests that start in one wake-up leave in one send.
"""

from __future__ import annotations

import errno
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from cockpit.load.http.load_socket import ConnectionOwner, LoadSocket
from cockpit.load.http2 import frames
from cockpit.load.http2.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    FIRST_WINDOW,
    FRAME_LIMIT,
    HEADER_SIZE,
    HEADERS,
    LARGEST_WINDOW,
    Http2Fault,
    number_bytes,
)
from cockpit.load.poller import WRITABLE

if TYPE_CHECKING:
    from cockpit.load.http2.stream import Http2Stream

# Maximum size (bytes) of answers to SETTINGS and PING that the server does not read.
_ANSWERS_LIMIT = 1 << 18


class Http2Output(LoadSocket):
    """The sending side of a connection, and its streams in flight. `established`: requests can be sent; `draining`: no
    further requests are, and it closes after the last response."""

    def __init__(self, load: ConnectionOwner) -> None:
        super().__init__(load)
        self.established = self.draining = self._corked = False
        self._streams: dict[int, Http2Stream] = {}
        self._waiting: dict[Http2Stream, None] = {}
        self._next = 1
        # Maximum number of streams in flight; 0 until the connection is established.
        self._limit = 0
        self._last = min(2 * load.requests_per_connection - 1, frames.LAST_STREAM)
        self._out: list[bytes] = []
        self._begun: list[Http2Stream] = []
        self._unsent: memoryview | None = None
        # The errno of a failed send.
        self._broken: int | None = None
        self._answers = 0
        # Bytes that may be sent on the connection, and first on a stream; streams that wait for a window.
        self._window = self._stream_window = FIRST_WINDOW
        self._blocked: dict[Http2Stream, None] = {}

    def submit(self, stream: Http2Stream) -> None:
        """Send the request of a stream as soon as the server allows it."""
        if self._waiting or len(self._streams) >= self._limit:
            if not self.established:
                # As in HTTP/1, the time of a request includes that of its connect.
                stream.sent = stream.started
            self._waiting[stream] = None
            return
        self._send_request(stream)
        if not self._corked:
            self.flush()

    def _hand_over(self) -> None:
        """Drain the connection, and send the requests that wait on another."""
        raise NotImplementedError

    def on_frames(self, mask: int, now: float) -> None:
        """Read and handle frames."""
        raise NotImplementedError

    def _send_request(self, stream: Http2Stream) -> None:
        number = self._next
        self._next = number + 2
        self._streams[number] = stream
        stream.number = number
        request = stream.head_start + number_bytes(number) + stream.head_rest
        if len(request) > HEADER_SIZE + FRAME_LIMIT:
            request = _split_block(stream.head_start, number_bytes(number), stream.head_rest)
        self._out.append(request)
        stream.counts.sent_bytes += len(request)
        self._begun.append(stream)
        stream.window = self._stream_window
        if stream.body:
            stream.unsent = memoryview(stream.body)
            self._send_body(stream)
        if number >= self._last:
            self._hand_over()

    def _send_waiting(self) -> None:
        while self._waiting and len(self._streams) < self._limit:
            stream = next(iter(self._waiting))
            del self._waiting[stream]
            self._send_request(stream)

    def _send_body(self, stream: Http2Stream) -> None:
        """Send as much of the body as the windows allow."""
        name, rest = number_bytes(stream.number), stream.unsent
        while rest:
            size = min(len(rest), stream.window, self._window, FRAME_LIMIT)
            if size <= 0:
                stream.unsent = rest
                self._blocked[stream] = None
                return
            flags = END_STREAM if size == len(rest) else 0
            self._out += (size.to_bytes(3, "big") + bytes((DATA, flags)) + name, bytes(rest[:size]))
            stream.counts.sent_bytes += HEADER_SIZE + size
            stream.window -= size
            self._window -= size
            rest = rest[size:]
        stream.unsent = None

    def _open_window(self, number: int, increment: int) -> None:
        """Send more of the bodies that waited for this window. Raises Http2Fault if it is too large."""
        if not number:
            self._window += increment
        elif number in self._streams:
            self._streams[number].window += increment
        if max(self._window, self._streams[number].window if number in self._streams else 0) > LARGEST_WINDOW:
            raise Http2Fault("a window of flow control is too large")
        self._send_blocked()

    def _change_stream_window(self, size: int) -> None:
        """Follow the server's first window of a stream, which changes those in use, too."""
        for stream in self._streams.values():
            stream.window += size - self._stream_window
        self._stream_window = size
        self._send_blocked()

    def _send_blocked(self) -> None:
        blocked, self._blocked = self._blocked, {}
        for stream in blocked:
            if stream.unsent is not None and self._streams.get(stream.number) is stream:
                self._send_body(stream)

    def _answer(self, data: bytes) -> None:
        """Send an answer to a frame. Raises Http2Fault if the server reads none of many."""
        self._out.append(data)
        self._answers += len(data)
        if self._answers > _ANSWERS_LIMIT:
            raise Http2Fault("the server sends frames faster than it reads the answers", "http2_flood")

    def flush(self) -> None:
        """Send all frames that are due."""
        if self._unsent is not None or not self._out or self._fd < 0 or self._broken is not None:
            return
        out = self._out
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._break(error.errno)
            return
        now = monotonic()
        for stream in self._begun:
            if stream.sent == inf:
                stream.sent = now
        self._begun.clear()
        if sent == len(data):
            self._answers = 0
            return
        self._unsent = memoryview(data)[sent:]
        self._handlers[self._fd] = self.on_both
        self._load.poller.watch_both(self._fd)

    def _break(self, code: int | None) -> None:
        """Note that nothing can be sent. What the server sent before is read first: it is more specific."""
        self._broken = code or errno.EPIPE
        for stream in self._begun:
            stream.unprocessed = True
        self._begun.clear()
        if not self._corked:
            self.on_frames(0, monotonic())

    def on_both(self, mask: int, now: float) -> None:
        """Send the rest of the frames, and read what arrives."""
        while mask & WRITABLE and self._unsent:
            try:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
            except BlockingIOError:
                break
            except OSError as error:
                self._unsent = None
                self._break(error.errno)
                return
        if not self._unsent:
            self._unsent = None
            self._answers = 0
            self._handlers[self._fd] = self.on_frames
            self._load.poller.watch_responses(self._fd)
            self.flush()
        if self._fd >= 0:
            self.on_frames(mask, now)


def _split_block(start: bytes, name: bytes, block: bytes) -> bytes:
    """Return the frames of a header block that is too long for one. `start`: the first bytes of its HEADERS frame."""
    pieces = [block[at : at + FRAME_LIMIT] for at in range(0, len(block), FRAME_LIMIT)]
    out = b""
    for at, piece in enumerate(pieces):
        kind = CONTINUATION if at else HEADERS
        flags = (0 if at else start[4] & END_STREAM) | (END_HEADERS if at == len(pieces) - 1 else 0)
        out += len(piece).to_bytes(3, "big") + bytes((kind, flags)) + name + piece
    return out
