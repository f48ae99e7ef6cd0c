"""Readiness of sockets: edge-triggered epoll if available, else the selectors module (level-triggered).

Handlers must work with both: read until the socket is empty, and ignore a wake-up without data.
"""

from __future__ import annotations

import functools
import select
import selectors
from collections.abc import Callable

READABLE = 0x001
WRITABLE = 0x004
# The socket may hold an error.
TROUBLE = 0x008
# The peer has closed its side, or the connection is broken. Not every poller reports it; reading detects it, too.
HANGUP = 0x010 | 0x2000

# Maximum number of events per wake-up: they share one timestamp, which must be accurate for all.
_EVENTS = 64


Poll = Callable[[float], list[tuple[int, int]]]
Register = Callable[[int, int], object]


class EpollPoller:
    """Edge-triggered epoll: a connection is registered only once.

    `poll(timeout)` (s, not negative) returns (file descriptor, events) pairs. It exceeds the timeout by up to 1 ms,
    `poll_exactly` by about 0.1 ms, at a slightly higher cost. `register(fd, connecting)`: wake up when a pending
    connect has succeeded or failed.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.connecting = select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET
        self.poll: Poll = functools.partial(self._epoll.poll, maxevents=_EVENTS)
        self.poll_exactly: Poll = self._poll_exactly
        self.register: Register = self._epoll.register
        self._itself = (self._epoll.fileno(),)

    def _poll_exactly(self, timeout: float) -> list[tuple[int, int]]:
        # epoll has a resolution of 1 ms, select of 1 µs: select waits until the epoll itself is readable.
        if timeout > 0:
            select.select(self._itself, (), (), timeout)
        return self._epoll.poll(0, _EVENTS)

    def watch_control(self, fd: int) -> None:
        """Wake up as long as `fd` is readable."""
        self._epoll.register(fd, select.EPOLLIN)

    def watch_responses(self, fd: int) -> None:
        """Wake up when `fd` is readable, and no longer when it is writable."""

    def watch_both(self, fd: int) -> None:
        """Wake up when `fd` is readable or writable."""

    def again(self, fd: int) -> None:
        """Wake up immediately, at least if `fd` is readable or writable: the handler stopped before all was read. TLS
        may hold data when `fd` is empty."""
        self._epoll.modify(fd, self.connecting)

    def forget(self, fd: int) -> None:
        """Unregister `fd` before it is closed."""


class SelectorPoller:
    """A level-triggered selector of the standard library, with the members of EpollPoller: kqueue on macOS."""

    def __init__(self, selector: selectors.BaseSelector | None = None) -> None:
        self._selector = selector or selectors.DefaultSelector()
        self.poll: Poll = self._poll
        self.poll_exactly: Poll = self._poll
        self.register: Register = self._selector.register
        self.connecting = selectors.EVENT_WRITE
        self._again: set[int] = set()

    def _poll(self, timeout: float) -> list[tuple[int, int]]:
        again, self._again = self._again, set()
        events = {key.fd: _mask(events) for key, events in self._selector.select(0 if again else timeout)}
        return list((dict.fromkeys(again, READABLE) | events).items())

    def watch_control(self, fd: int) -> None:
        self._selector.register(fd, selectors.EVENT_READ)

    def watch_responses(self, fd: int) -> None:
        self._selector.modify(fd, selectors.EVENT_READ)

    def watch_both(self, fd: int) -> None:
        self._selector.modify(fd, selectors.EVENT_READ | selectors.EVENT_WRITE)

    def again(self, fd: int) -> None:
        self._again.add(fd)

    def forget(self, fd: int) -> None:
        self._selector.unregister(fd)
        self._again.discard(fd)


def _mask(events: int) -> int:
    mask = READABLE if events & selectors.EVENT_READ else 0
    # After a failed connect the socket is writable; the caller checks its error.
    return mask | (WRITABLE | TROUBLE if events & selectors.EVENT_WRITE else 0)


Poller = EpollPoller | SelectorPoller


def best_poller() -> Poller:
    return EpollPoller() if hasattr(select, "epoll") else SelectorPoller()
