"""Commands on a pseudo-terminal: read their output, type keys, hang up."""

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

TIMEOUT = 120.0


class TerminalProcess:
    """A process on a terminal of `columns` x `rows`; with `controlling`, a hangup sends SIGHUP."""

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

    def until(self, text: bytes) -> bytes:
        """Read until the output contains `text`, and return all output so far."""
        deadline = time.monotonic() + TIMEOUT
        while text not in self.shown:
            assert time.monotonic() < deadline, f"timeout without {text!r}: {self.shown[-2000:]!r}"
            assert self.read() or self.process.poll() is None, f"ended without {text!r}: {self.shown[-2000:]!r}"
        return self.shown

    def read(self) -> bool:
        """Read available output, waiting up to 0.1 s; return whether there was any."""
        if not select.select([self.terminal], [], [], 0.1)[0]:
            return False
        try:
            chunk = os.read(self.terminal, 65536)
        except OSError:
            return False
        self.shown += chunk
        return bool(chunk)

    def type(self, keys: bytes) -> None:
        os.write(self.terminal, keys)

    def close(self) -> None:
        """Close the terminal: a hangup for the process."""
        if self.terminal >= 0:
            os.close(self.terminal)
            self.terminal = -1

    def end(self) -> int:
        """Read until the process has ended, and return its exit code."""
        deadline = time.monotonic() + TIMEOUT
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
) -> Iterator[TerminalProcess]:
    """Run a process on a terminal; kill it at the end of the block."""
    opened = TerminalProcess(command, size, environment, controlling)
    try:
        yield opened
    finally:
        if opened.process.poll() is None:
            opened.process.kill()
        opened.process.wait()
        opened.close()
