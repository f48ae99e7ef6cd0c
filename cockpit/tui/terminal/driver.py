"""Textual's driver for terminals that are slow, or close while the screen is up."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

# Events of poll for a closed terminal.
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


class Output(Thread):
    """Writes text to the terminal. A write error calls `gone` in this thread; later output is discarded."""

    def __init__(self, gone: Callable[[], None]) -> None:
        super().__init__(name="output", daemon=True)
        # Textual draws on stderr, which may be a file (2>file): then stdout is the terminal.
        stderr = sys.__stderr__
        self._file: Any = stderr if stderr and stderr.isatty() else sys.__stdout__
        self._gone = gone
        self._queue: SimpleQueue[str | None] = SimpleQueue()
        # Start of the pending write (monotonic s); None if no write is pending.
        self.since: float | None = None

    def write(self, text: str) -> None:
        self._queue.put(text)

    def stop(self) -> None:
        """Wait until everything is written."""
        self._queue.put(None)
        self.join()

    def run(self) -> None:
        try:
            while (text := self._queue.get()) is not None:
                self.since = time.monotonic()
                self._file.write(text)
                self._file.flush()
                self.since = None
        except (OSError, ValueError):
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
        self.output = Output(self._report_gone)
        self._is_suspended = False
        signal.signal(signal.SIGTSTP, self._suspend)
        signal.signal(signal.SIGCONT, self._resume)

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
        self.output = Output(self._report_gone)
        self.output.start()
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def write(self, data: str) -> None:
        self.output.write(data)

    def close(self) -> None:
        super().close()
        if self.output.is_alive():
            self.output.stop()

    def run_input_thread(self) -> None:
        try:
            super().run_input_thread()
        except OSError:
            self._report_gone()

    def _suspend(self, *_: object) -> None:
        # Not while an editor has the terminal.
        if self.output.is_alive():
            self.suspend_application_mode()
            self._is_suspended = True
        os.kill(os.getpid(), signal.SIGSTOP)

    def _resume(self, *_: object) -> None:
        # SIGCONT also follows SIGHUP when nothing was suspended; the threads must not be started twice.
        if not self._is_suspended:
            return
        with suppress(OSError):
            if os.tcgetpgrp(self.fileno) != os.getpgrp():
                # Continued in the background, where the terminal cannot be used.
                os.kill(os.getpid(), signal.SIGSTOP)
                return
        self._is_suspended = False
        self.resume_application_mode()
        self.send_message(self.SignalResume())

    def _report_gone(self) -> None:
        """Run in a thread of the driver."""
        self.loop.call_soon_threadsafe(self.cockpit.lost_terminal)


def _hung_up(number: int) -> bool:
    poll = select.poll()
    poll.register(number, 0)
    return any(events & _GONE for _, events in poll.poll(0))
