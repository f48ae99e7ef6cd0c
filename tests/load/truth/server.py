"""A server that delays by a known rule and logs the actual delays: `python -m tests.load.truth.server RULE`.

RULE is a Rule as JSON. The server prints its port, serves until its stdin ends, and then prints a Log as JSON.
The arrival of a request is the kernel's time stamp of its segment, not the time at which this process reads it: delays
by a busy machine are in the log as well as in the client's latencies. The kernel stamps with the realtime clock only,
so that all times use this clock and are converted to the monotonic clock at the end.
"""

from __future__ import annotations

import heapq
import itertools
import os
import select
import socket
import struct
import sys
import time
from contextlib import suppress

import msgspec

_SO_TIMESTAMPNS = 35
_STAMP = struct.Struct("qq")
_REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
_SECOND = 1_000_000_000


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Each response is delayed by `delay` s; the first of every `slow_every` responses by `slow` s (0: none).

    `stall_at` s after the first request the server stops for `stall` s.
    """

    delay: float
    slow_every: int = 0
    slow: float = 0.0
    stall_at: float = 0.0
    stall: float = 0.0


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """The arrival of a request, and the times before and after its response was sent (ns, monotonic)."""

    arrived: int
    leaving: int
    left: int


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
        self._stall_due = 0
        self._due: list[tuple[int, int, int, socket.socket]] = []
        self._sockets: dict[int, socket.socket] = {}
        self._count = itertools.count()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(4096)
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]

    def serve(self, control: int) -> Log:
        """Serve until `control` (a file descriptor) is readable or at its end."""
        epoll = select.epoll()
        epoll.register(control, select.EPOLLIN)
        epoll.register(self._listener.fileno(), select.EPOLLIN)
        while True:
            self._stall_if_due()
            for fd, _ in epoll.poll(self._timeout()):
                if fd == control:
                    return self._log()
                if fd == self._listener.fileno():
                    self._accept(epoll)
                else:
                    self._read(fd)
            self._reply_all_due()

    def _timeout(self) -> float:
        """Return the seconds until the next due response or stall; -1 if there is none."""
        ends = [self._due[0][0]] if self._due else []
        if self._stall_due and not self._stall[1]:
            ends.append(self._stall_due)
        return max(0, min(ends) - time.time_ns()) / _SECOND if ends else -1

    def _accept(self, epoll: select.epoll) -> None:
        with suppress(BlockingIOError):
            while True:
                client, _ = self._listener.accept()
                client.setblocking(False)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
                self._sockets[client.fileno()] = client
                epoll.register(client.fileno(), select.EPOLLIN)

    def _read(self, fd: int) -> None:
        client = self._sockets[fd]
        try:
            data, ancillary, _, _ = client.recvmsg(65536, 64)
        except OSError:
            data, ancillary = b"", []
        if not data:
            self._sockets.pop(fd).close()
            return
        arrived = time.time_ns()
        for _, kind, stamp in ancillary:
            if kind == _SO_TIMESTAMPNS:
                seconds, nanoseconds = _STAMP.unpack(stamp)
                arrived = seconds * _SECOND + nanoseconds
        number = next(self._count)
        rule = self._rule
        if number == 0 and rule.stall:
            self._stall_due = arrived + round(rule.stall_at * _SECOND)
        delay = rule.slow if rule.slow_every and number % rule.slow_every == 0 else rule.delay
        heapq.heappush(self._due, (arrived + round(delay * _SECOND), number, arrived, client))

    def _reply_all_due(self) -> None:
        while self._due and self._due[0][0] <= (now := time.time_ns()):
            _, _, arrived, client = heapq.heappop(self._due)
            with suppress(OSError):
                client.send(_REPLY)
            self._replies.append(Reply(arrived, now, time.time_ns()))

    def _stall_if_due(self) -> None:
        if self._stall_due and not self._stall[1] and time.time_ns() >= self._stall_due:
            begin = time.time_ns()
            time.sleep(self._rule.stall)
            self._stall = (begin, time.time_ns())

    def _log(self) -> Log:
        ahead = time.time_ns() - time.monotonic_ns()
        replies = [Reply(reply.arrived - ahead, reply.leaving - ahead, reply.left - ahead) for reply in self._replies]
        return Log(replies, (self._stall[0] - ahead, self._stall[1] - ahead))


def main() -> None:
    server = TruthServer(msgspec.json.decode(sys.argv[1], type=Rule))
    print(server.port, flush=True)
    log = server.serve(sys.stdin.fileno())
    os.set_blocking(sys.stdout.fileno(), True)
    sys.stdout.buffer.write(msgspec.json.encode(log) + b"\n")


if __name__ == "__main__":
    main()
