"""A server that delays by a known rule and logs the actual delays.

The arrival of a request is the kernel's time stamp of its segment, not the time at which this process reads it: delays
by a busy machine are in the log as well as in the client's latencies. The kernel stamps with the realtime clock only,
so that all times use this clock and are converted to the monotonic clock at the end.
"""

import heapq
import itertools
import os
import select
import socket
import struct
import time
from contextlib import suppress
from multiprocessing.connection import Connection

import msgspec

from cockpit.load.http2 import frames

_SO_TIMESTAMPNS = 35
_STAMP = struct.Struct("qq")
_REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
_SECOND = 1_000_000_000
# Length of the first bytes of a client over HTTP/2.
_PREFACE = 24


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Each response is delayed by `delay` s; the first of every `slow_every` responses by `slow` s (0: none).

    From `stall_at` s after the first request the server sends nothing for `stall` s. `http2`: without TLS.
    """

    delay: float
    slow_every: int = 0
    slow: float = 0.0
    stall_at: float = 0.0
    stall: float = 0.0
    http2: bool = False


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """The arrival of a request, and the times before and after its response was sent (ns, monotonic). `earliest`: its
    arrival if other requests of the same connection arrived after it before all were read, else `arrived`."""

    arrived: int
    leaving: int
    left: int
    earliest: int


class Log(msgspec.Struct, frozen=True):
    """All responses in the order of sending, and start and end of the stall (ns, monotonic)."""

    replies: list[Reply]
    stall: tuple[int, int] = (0, 0)


class TruthServer:
    """A single loop: requests wait in a heap until their responses are due."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._replies: list[Reply] = []
        self._stall = (0, 0)
        # No unread data arrived before this time.
        self._since = 0
        self._waiting: list[tuple[int, int, int, int, socket.socket, bytes]] = []
        self._sockets: dict[int, socket.socket] = {}
        self._count = itertools.count()
        self._epoll = select.epoll()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        # Inherited by connections: their first segment may arrive before they are accepted.
        self._listener.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]

    def serve(self, control: int) -> None:
        """Serve until `control` (a file descriptor) is readable."""
        for descriptor in (control, self._listener.fileno()):
            self._epoll.register(descriptor, select.EPOLLIN)
        while True:
            pause = max(0, self._waiting[0][0] - time.time_ns()) / _SECOND if self._waiting else -1
            # Data that is here already arrived since the last poll.
            if not (events := self._epoll.poll(0)):
                events = self._epoll.poll(pause)
                self._since = time.time_ns()
            polled = time.time_ns()
            for descriptor, _ in events:
                if descriptor == control:
                    return
                if descriptor == self._listener.fileno():
                    self._accept()
                else:
                    self._read(descriptor)
            self._since = polled
            self._reply_all_due()

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            while True:
                client, _ = self._listener.accept()
                client.setblocking(False)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets[client.fileno()] = client
                self._epoll.register(client.fileno(), select.EPOLLIN)

    def _read(self, descriptor: int) -> None:
        client = self._sockets[descriptor]
        try:
            data, ancillary, _, _ = client.recvmsg(65536, 64)
        except OSError:
            data, ancillary = b"", []
        if not data:
            self._sockets.pop(descriptor).close()
            return
        # The kernel starts to stamp a moment after the first socket asks for it.
        arrived = time.time_ns()
        for _, _, stamp in ancillary:
            seconds, nanoseconds = _STAMP.unpack(stamp)
            arrived = seconds * _SECOND + nanoseconds
        self._handle(client, data, arrived)

    def _handle(self, client: socket.socket, data: bytes, arrived: int) -> None:
        """Handle a request, which is one segment."""
        self._schedule(client, arrived, arrived, _REPLY)

    def _schedule(self, client: socket.socket, arrived: int, earliest: int, reply: bytes) -> None:
        number = next(self._count)
        heapq.heappush(self._waiting, (self._due(number, arrived), number, arrived, earliest, client, reply))

    def _due(self, number: int, arrived: int) -> int:
        rule = self._rule
        if number == 0 and rule.stall:
            begin = arrived + round(rule.stall_at * _SECOND)
            self._stall = (begin, begin + round(rule.stall * _SECOND))
        delay = rule.slow if rule.slow_every and number % rule.slow_every == 0 else rule.delay
        due = arrived + round(delay * _SECOND)
        return self._stall[1] if self._stall[0] <= due < self._stall[1] else due

    def _reply_all_due(self) -> None:
        while self._waiting and self._waiting[0][0] <= (now := time.time_ns()):
            _, _, arrived, earliest, client, reply = heapq.heappop(self._waiting)
            with suppress(OSError):
                client.send(reply)
            self._replies.append(Reply(arrived, now, time.time_ns(), earliest))

    def log(self) -> Log:
        ahead = time.time_ns() - time.monotonic_ns()
        replies = [Reply(*(instant - ahead for instant in msgspec.structs.astuple(reply))) for reply in self._replies]
        return Log(replies, (self._stall[0] - ahead, self._stall[1] - ahead))


class Http2TruthServer(TruthServer):
    """The same over HTTP/2."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        # Unread bytes per connection.
        self._unread: dict[socket.socket, bytes] = {}

    def _handle(self, client: socket.socket, data: bytes, arrived: int) -> None:
        unread = self._unread.get(client)
        if unread is None:
            # Each connection starts with the preface, in one segment.
            client.send(frames.frame(frames.SETTINGS, 0, 0) + frames.frame(frames.SETTINGS, frames.ACK, 0))
            unread, data = b"", data[_PREFACE:]
        unread += data
        while len(unread) >= frames.HEADER_SIZE:
            word, _, number = frames.unpack_header(unread)
            end = frames.HEADER_SIZE + (word >> 8)
            if len(unread) < end:
                break
            if word & 0xFF == frames.HEADERS:
                self._schedule(client, arrived, min(arrived, self._since), _http2_reply(number))
            unread = unread[end:]
        self._unread[client] = unread


def _http2_reply(number: int) -> bytes:
    """Return a response of 200 with five bytes; its fields are those of the static table (RFC 7541 appendix A)."""
    body = frames.frame(frames.DATA, frames.END_STREAM, number, b"hello")
    return frames.frame(frames.HEADERS, frames.END_HEADERS, number, b"\x88\x0f\x0d\x015") + body


def prioritize(pid: int, cpu: int) -> None:
    """Pin a process (0: this thread) to a CPU, with real-time priority if permitted."""
    os.sched_setaffinity(pid, {cpu})
    with suppress(PermissionError):
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))


def run(rule: Rule, cpu: int, pipe: Connection) -> None:
    """Serve on a CPU: send the port, serve until a message arrives, and send a Log."""
    prioritize(0, cpu)
    server = (Http2TruthServer if rule.http2 else TruthServer)(rule)
    pipe.send(server.port)
    server.serve(pipe.fileno())
    pipe.send(server.log())
