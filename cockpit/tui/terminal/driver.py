"""Textual's driver for terminals that are slow, or close while the screen is up."""

from __future__ import annotations

import asyncio
import io
import os
import select
import sys
import time
from collections.abc import Callable
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

# Events of poll for a closed terminal.
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


class Output(io.TextIOBase):
    """The file to which the driver's thread writes.

    A write error calls `gone`, in that thread; later output is discarded. `since` is the start of the pending write
    (monotonic s), None if no write is pending.
    """

    def __init__(self, file: Any, gone: Callable[[], None]) -> None:
        super().__init__()
        self._file = file
        self._gone = gone
        self._dead = False
        self.since: float | None = None

    def write(self, text: str) -> int:
        self._try(lambda: self._file.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(self._file.flush)

    def fileno(self) -> int:
        number: int = self._file.fileno()
        return number

    def isatty(self) -> bool:
        return True

    def _try(self, work: Callable[[], object]) -> None:
        if self._dead:
            return
        self.since = time.monotonic()
        try:
            work()
        except (OSError, ValueError):
            self._dead = True
            self._gone()
        finally:
            self.since = None


class Terminal(LinuxDriver):
    """Calls the app's `lost_terminal` when the terminal closes, instead of failing, waiting or spinning."""

    def __init__(self, app: Any, **settings: Any) -> None:
        super().__init__(app, **settings)
        self.cockpit = app
        self.cockpit.terminal = self
        self.loop = asyncio.get_running_loop()
        # Textual draws on stderr, which may be a file (2>file): then stdout is the terminal.
        stderr = sys.__stderr__
        drawn_on = stderr if stderr and stderr.isatty() else sys.__stdout__
        self.output = Output(drawn_on, self._report_gone)
        self._file = self.output  # type: ignore[assignment]

    @property
    def waiting(self) -> float:
        """Seconds for which the terminal has not accepted output; 0.0 while it keeps up."""
        since = self.output.since
        return 0.0 if since is None else time.monotonic() - since

    def is_gone(self) -> bool:
        """Return whether the terminal is closed."""
        return _hung_up(self.fileno)

    def detach(self) -> None:
        """Replace the standard streams, because loops that read from a closed terminal would spin."""
        reading, _ = os.pipe()
        # The driver's thread may be about to read announced data.
        os.set_blocking(reading, False)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number, to in ((0, reading), (1, nowhere), (2, nowhere)):
            if os.isatty(number) or _hung_up(number):
                os.dup2(to, number)

    def start_application_mode(self) -> None:
        """Forget the shown cells before a start or a resumption: another program may have used the terminal."""
        self.cockpit.forget_picture()
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def _sigcont_application(self, *_: object) -> None:
        # SIGCONT also follows SIGHUP when nothing was suspended; the threads must not be started twice.
        if self._must_signal_resume:
            super()._sigcont_application()

    def _run_input_thread(self) -> None:
        try:
            self.run_input_thread()
        except OSError:
            self._report_gone()

    def _report_gone(self) -> None:
        """Run in a thread of the driver."""
        self.loop.call_soon_threadsafe(self.cockpit.lost_terminal)


def _hung_up(number: int) -> bool:
    poll = select.poll()
    poll.register(number, 0)
    return any(found & _GONE for _, found in poll.poll(0))
