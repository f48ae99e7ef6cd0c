"""Readiness of sockets: epoll, edge-triggered, if available; else the selectors module.

Handlers must cope with both: read until nothing is left, and ignore a wake-up without data.
"""

from __future__ import annotations

import functools
import select
import selectors
from collections.abc import Callable
from typing import Protocol

READABLE = 0x001
WRITABLE = 0x004
# The socket may hold an error.
TROUBLE = 0x008
# The peer has sent its last byte, or the connection is gone. Not every poller reports it; reading shows it as well.
HANGUP = 0x010 | 0x2000

# The time stamp of a wake-up is that of all its events, so it must not have too many.
_EVENTS = 64


Poll = Callable[[float], list[tuple[int, int]]]
Register = Callable[[int, int], object]


class Poller(Protocol):
    """`poll(timeout)` (s, not negative) yields (file descriptor, events) pairs.

    `poll_exactly` costs a little more and returns within about a tenth of a millisecond of the timeout;
    `poll` may take a whole one.

    `register(fd, connecting)`: wake up when a pending connect has succeeded or failed.
    """

    poll: Poll
    poll_exactly: Poll
    register: Register
    connecting: int

    def watch_control(self, fd: int) -> None:
        """Wake as long as `fd` has something to read."""

    def watch_responses(self, fd: int) -> None:
        """Wake when there is something to read, and no longer for room to write."""

    def watch_both(self, fd: int) -> None:
        """Wake for something to read and for room to write."""

    def again(self, fd: int) -> None:
        """Wake at once if there is still something to read: its reader stopped before the end."""

    def forget(self, fd: int) -> None:
        """`fd` is about to be closed."""


class EpollPoller:
    """Edge-triggered epoll: one registration serves a connection for its whole life."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.connecting = select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET
        self.poll: Poll = functools.partial(self._epoll.poll, maxevents=_EVENTS)
        self.poll_exactly: Poll = self._poll_exactly
        self.register: Register = self._epoll.register
        self._itself = (self._epoll.fileno(),)

    def _poll_exactly(self, timeout: float) -> list[tuple[int, int]]:
        # epoll counts in milliseconds; select, asked about the epoll itself, in microseconds.
        if timeout > 0:
            select.select(self._itself, (), (), timeout)
        return self._epoll.poll(0, _EVENTS)

    def watch_control(self, fd: int) -> None:
        self._epoll.register(fd, select.EPOLLIN)

    def watch_responses(self, fd: int) -> None:
        pass

    def watch_both(self, fd: int) -> None:
        pass

    def again(self, fd: int) -> None:
        self._epoll.modify(fd, self.connecting)

    def forget(self, fd: int) -> None:
        pass


class SelectorPoller:
    """Any selector of the standard library, level-triggered: kqueue on macOS."""

    def __init__(self, selector: selectors.BaseSelector | None = None) -> None:
        self._selector = selector or selectors.DefaultSelector()
        self.poll: Poll = self._poll
        self.poll_exactly: Poll = self._poll
        self.register: Register = self._selector.register
        self.connecting = selectors.EVENT_WRITE

    def _poll(self, timeout: float) -> list[tuple[int, int]]:
        return [(key.fd, _mask(events)) for key, events in self._selector.select(timeout)]

    def watch_control(self, fd: int) -> None:
        self._selector.register(fd, selectors.EVENT_READ)

    def watch_responses(self, fd: int) -> None:
        self._selector.modify(fd, selectors.EVENT_READ)

    def watch_both(self, fd: int) -> None:
        self._selector.modify(fd, selectors.EVENT_READ | selectors.EVENT_WRITE)

    def again(self, fd: int) -> None:
        pass

    def forget(self, fd: int) -> None:
        self._selector.unregister(fd)


def _mask(events: int) -> int:
    mask = READABLE if events & selectors.EVENT_READ else 0
    # A failed connect shows as writable; the caller checks its error.
    return mask | (WRITABLE | TROUBLE if events & selectors.EVENT_WRITE else 0)


def best_poller() -> Poller:
    return EpollPoller() if hasattr(select, "epoll") else SelectorPoller()
