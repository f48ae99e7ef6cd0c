"""A server that delays by a known rule and notes what it really did: `python -m tests.load.truth.server RULE`.

RULE is a Rule as JSON. It prints its port, serves until its stdin ends, and then prints a Log as JSON.
A request's arrival is the kernel's own time stamp of its segment, not the instant at which this process came to read
it: so what a busy machine adds here is in the log as it is in the client's figures. The kernel stamps by the
realtime clock only, so all instants are taken by that one and put onto the monotonic one at the end.
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
    """Every reply is `delay` s late, and the first of every `slow_every` `slow` s (0: none is).

    `stall_at` s after the first request nothing is done at all for `stall` s.
    """

    delay: float
    slow_every: int = 0
    slow: float = 0.0
    stall_at: float = 0.0
    stall: float = 0.0


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """When a request arrived, and the instants between which its reply left (ns, monotonic)."""

    arrived: int
    leaving: int
    left: int


class Log(msgspec.Struct, frozen=True):
    """All replies, in the order in which they left, and when the stall began and ended (ns, monotonic)."""

    replies: list[Reply]
    stall: tuple[int, int] = (0, 0)


class TruthServer:
    """One loop, nothing else: a request waits in a heap until its reply is due."""

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
        """Until `control` (a file descriptor) has something to read, its end too."""
        epoll = select.epoll()
        epoll.register(control, select.EPOLLIN)
        epoll.register(self._listener.fileno(), select.EPOLLIN)
        while True:
            self._stall_if_due()
            for fd, _ in epoll.poll(self._patience()):
                if fd == control:
                    return self._log()
                if fd == self._listener.fileno():
                    self._accept(epoll)
                else:
                    self._read(fd)
            self._reply_all_due()

    def _patience(self) -> float:
        """Seconds until something is due."""
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
        replies = [Reply(one.arrived - ahead, one.leaving - ahead, one.left - ahead) for one in self._replies]
        return Log(replies, (self._stall[0] - ahead, self._stall[1] - ahead))


def main() -> None:
    server = TruthServer(msgspec.json.decode(sys.argv[1], type=Rule))
    print(server.port, flush=True)
    log = server.serve(sys.stdin.fileno())
    os.set_blocking(sys.stdout.fileno(), True)
    sys.stdout.buffer.write(msgspec.json.encode(log) + b"\n")


if __name__ == "__main__":
    main()
