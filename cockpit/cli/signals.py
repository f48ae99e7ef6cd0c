"""Handle SIGTERM and SIGHUP like Ctrl-C; the screen sets its own handlers while it is open."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Treat the first SIGTERM or SIGHUP as a SIGINT. Ignore later ones: a closing terminal may send SIGHUP twice."""
    seen = False

    def end() -> None:
        nonlocal seen
        if seen:
            return
        seen = True
        # A background job of a shell script ignores SIGINT.
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    with _handled(end):
        yield


@contextmanager
def cancelled_by_signals() -> Iterator[Callable[[], None]]:
    """Cancel the current task at the first SIGTERM or SIGHUP, as asyncio.run does at SIGINT.

    Yield a function to call before the session is closed: it makes later signals ignored, so that the recording can be
    completed.
    """
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    closing = False

    def close() -> None:
        nonlocal closing
        closing = True

    def cancel() -> None:
        if task is not None and not closing and not task.cancelling():
            task.cancel()

    with _handled(lambda: loop.call_soon_threadsafe(cancel)):
        yield close


@contextmanager
def _handled(act: Callable[[], object]) -> Iterator[None]:
    """Call `act` at each ending signal that is not ignored; `nohup` ignores SIGHUP.

    After a SIGHUP later ones are ignored, so that the result is still printed.
    """
    hung_up = False

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal hung_up
        if number == signal.SIGHUP:
            hung_up = True
            drop_lost_terminals()
        act()

    before = {number: signal.getsignal(number) for number in ENDING}
    handled = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in handled:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, _ignore if hung_up and number == signal.SIGHUP else handler)


def _ignore(number: int, _: FrameType | None) -> None:
    """Ignore the signal; unlike SIG_IGN, a handler is not inherited by child processes."""
    drop_lost_terminals()


def drop_lost_terminals() -> None:
    """Redirect the output to a closed terminal to the null device, so that writing raises no error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            termios.tcgetattr(stream.fileno())
        except (termios.error, ValueError) as error:
            if error.args[0] == errno.EIO:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except OSError:
            continue
