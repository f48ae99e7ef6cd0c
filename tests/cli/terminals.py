"""Commands on a pseudo-terminal of the tests' own: what it gets, what is typed into it, how it goes away."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

PATIENCE = 120.0


class OnTerminal:
    """A process on a terminal of `columns` x `rows`. `controlling`: it is the terminal whose end is told by SIGHUP."""

    def __init__(
        self,
        command: Sequence[str],
        size: tuple[int, int] = (120, 40),
        environment: Mapping[str, str] | None = None,
        controlling: bool = True,
    ) -> None:
        columns, rows = size
        self.terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            list(command),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})},
            start_new_session=True,
            preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None) if controlling else None,
        )
        os.close(theirs)
        self.shown = b""

    def until(self, words: bytes) -> bytes:
        """Reads until the terminal has got these words, and returns all that it got so far."""
        deadline = time.monotonic() + PATIENCE
        while words not in self.shown:
            assert time.monotonic() < deadline, f"{words!r} did not come: {self.shown[-2000:]!r}"
            assert self.read() or self.process.poll() is None, f"ended without {words!r}: {self.shown[-2000:]!r}"
        return self.shown

    def read(self) -> bool:
        """Reads what there is, or waits a moment for it; whether there was any."""
        if not select.select([self.terminal], [], [], 0.1)[0]:
            return False
        try:
            got = os.read(self.terminal, 65536)
        except OSError:
            return False
        self.shown += got
        return bool(got)

    def type(self, keys: bytes) -> None:
        os.write(self.terminal, keys)

    def close(self) -> None:
        """The terminal goes away."""
        if self.terminal >= 0:
            os.close(self.terminal)
            self.terminal = -1

    def end(self) -> int:
        """Reads on until the process has ended, and returns its exit code."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.shown[-2000:]
            if self.terminal < 0 or not self.read():
                time.sleep(0.01)
        return self.process.returncode


@contextmanager
def on_terminal(
    command: Sequence[str],
    size: tuple[int, int] = (120, 40),
    environment: Mapping[str, str] | None = None,
    controlling: bool = True,
) -> Iterator[OnTerminal]:
    """A process that is ended with the test, however that ends."""
    opened = OnTerminal(command, size, environment, controlling)
    try:
        yield opened
    finally:
        if opened.process.poll() is None:
            opened.process.kill()
        opened.process.wait()
        opened.close()
