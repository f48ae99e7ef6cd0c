"""A connection of HTTP/2 (RFC 9113): connect, wake-ups, end.

As in HTTP/1, the time of a wake-up is the arrival time of all that it reads.
"""

from __future__ import annotations

from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from cockpit.load.failures import TLS_CUT, transfer_failure
from cockpit.load.http.load_socket import ConnectionOwner
from cockpit.load.http2 import frames
from cockpit.load.http2.frames import CANCEL, PROTOCOL_ERROR, Http2Fault
from cockpit.load.http2.input import Http2Input
from cockpit.load.poller import HANGUP, READABLE
from cockpit.model.load.plan import ErrorKind

if TYPE_CHECKING:
    from cockpit.load.http2.stream import Http2Stream, StreamGroup

# Size (bytes) of a read: larger buffers cost more than the additional reads.
_READ = 16 * 1024
# Maximum number of reads before other connections are served.
_MAX_READS = 8
# Streams of a connection until the server's SETTINGS limit them.
_FIRST_STREAMS = 1


class Http2Connection(Http2Input):
    """A connection with its streams."""

    def __init__(self, load: ConnectionOwner, group: StreamGroup) -> None:
        super().__init__(load)
        self._group = group
        self._last_arrival = -inf

    def open(self) -> None:
        self._connect(monotonic())
        # The garbage collector is off in a worker: only without this cycle is a closed connection freed.
        del self._on_connected

    @property
    def is_open(self) -> bool:
        return self._fd >= 0

    @property
    def connected(self) -> bool:
        return self._connected

    def _ready(self, mask: int, now: float) -> None:
        if self._secured and self._socket.parameters.alpn != "h2":
            self._fail("not_http")
            return
        self._handlers[self._fd] = self.on_frames
        self.established = True
        self._limit = _FIRST_STREAMS
        self._out.append(frames.OPENING)
        self._send_waiting()
        self.flush()
        if mask & (READABLE | HANGUP) and self._fd >= 0:
            # Edge-triggered: there is no further wake-up for data that arrived before.
            self.on_frames(mask, now)

    def _connect_failed(self, kind: ErrorKind) -> None:
        for stream in self._leave():
            stream.not_connected(kind)

    def _fail(self, kind: ErrorKind) -> None:
        self.close()
        for stream in self._leave():
            stream.fail(kind)

    def _leave(self) -> list[Http2Stream]:
        streams = [*self._streams.values(), *self._waiting]
        self._streams, self._waiting = {}, {}
        self._group.forget(self)
        return streams

    def drain(self) -> None:
        """Take no further requests; close the connection after the last response."""
        self.draining = True
        self._group.forget(self)
        if not self._streams and not self._waiting and not self._corked:
            self.close()

    def _hand_over(self) -> None:
        waiting, self._waiting = self._waiting, {}
        self.drain()
        for stream in waiting:
            self._group.submit(stream)

    def abort(self) -> None:
        """Close the connection at the end of the run."""
        self._leave()
        self.close()

    def cancel(self, stream: Http2Stream) -> None:
        """Forget a stream whose request timed out."""
        self._waiting.pop(stream, None)
        if not self.established:
            # The connect is stuck: the other requests try a new one.
            self.close()
            for other in self._leave():
                self._group.submit(other)
            return
        if self._streams.get(stream.number) is stream:
            self._reset_stream(stream, CANCEL)
            self.flush()
        if self._last_arrival < stream.started:
            # The server is silent: further requests need another connection.
            self._hand_over()
        elif self.draining:
            self.drain()

    def _lost(self, code: int | None) -> bool:
        """Handle the end of the connection, which the server closed, or reset with this errno; return True."""
        kind = self._end_kind
        if code is not None and code != TLS_CUT:
            kind = kind or transfer_failure(code)
        if not self.draining and self.served:
            self._tally.reconnects += 1
        self.close()
        in_flight, self._streams = self._streams, {}
        self._hand_over()
        for stream in in_flight.values():
            stream.lost(kind)
        return True

    def _violated(self, fault: Http2Fault) -> None:
        """Close the connection after a violation of HTTP/2; all its requests fail."""
        self._out.append(frames.frame(frames.GOAWAY, 0, 0, bytes(7) + bytes((PROTOCOL_ERROR,))))
        self.flush()
        self._fail(fault.kind)

    # --- input ---

    def on_frames(self, mask: int, now: float) -> None:
        self._corked = True
        try:
            if self._read(mask, now):
                return
        except Http2Fault as fault:
            self._violated(fault)
            return
        self._corked = False
        if self._waiting:
            self._send_waiting()
        if self.draining:
            # First: nothing is sent on a connection that is closed.
            self.drain()
        if self._out:
            self.flush()
        if self._broken is not None and self._fd >= 0:
            self.on_frames(0, monotonic())

    def _read(self, mask: int, now: float) -> bool:
        """Handle the frames that have arrived; return whether the connection has ended."""
        for _ in range(_MAX_READS):
            try:
                data = self._socket.recv(_READ)
            except BlockingIOError:
                return self._broken is not None and self._lost(self._broken)
            except OSError as error:
                return self._lost(error.errno)
            if not data:
                return self._lost(None)
            self._last_arrival = now
            self._parse(self._partial + data if self._partial else data, now)
            if len(data) < _READ and not mask & HANGUP and self._broken is None and not self._holds_data():
                return False
            now = monotonic()
        self._read_on()
        return False
