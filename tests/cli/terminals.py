"""Commands that tests watch while they run: in a forked process, or on a pseudo-terminal with keys and hangups."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from cockpit.model.errors import RecordingError
from cockpit.model.tick import Tick
from cockpit.recording.reader import Recording
from tests.commands import FORKS, _main
from tests.tui.emulator import Cell, Emulator
from tests.waiting import DEADLINE, wait_until

# The command line of a user, for tests that need a process of its own, e.g. within a shell.
COCKPIT = (sys.executable, "-m", "cockpit")
_CONTROL = re.compile(rb"\x1b\[[0-9;?<>=]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]")
# Textual moves the cursor home after each frame without a focused input field.
_FRAME_END = b"\x1b[1;1H"
_INCOMPLETE = re.compile(r"\x1b(\[[<?>=\d;$]*)?$")


class ForkedCommand:
    """A `cockpit` command in a forked process that writes to two files; the interface is that of subprocess.Popen."""

    def __init__(
        self,
        *arguments: str | Path,
        out: Path,
        err: Path,
        environment: Mapping[str, str] | None = None,
        before: Callable[[], object] = os.setsid,
    ) -> None:
        self.out, self.err = out, err
        for path in (out, err):
            path.touch()
        variables = {**os.environ, **(environment or {})}
        self._process = FORKS.Process(
            target=_main, args=([*map(str, arguments)], Path.cwd(), variables, out, err, before)
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float = DEADLINE) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        assert code is not None, f"still running after {timeout} s: {self.err.read_bytes()!r}"
        return code


@contextmanager
def running(
    *arguments: str | Path, folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[ForkedCommand]:
    """Run a command without input, with its output in the folder; kill it at the end of the block."""
    command = ForkedCommand(*arguments, out=folder / "stdout", err=folder / "stderr", environment=environment)
    try:
        yield command
    finally:
        command.kill()
        command.wait()


def wait_for_responses(file: Path, command: ForkedCommand, recorded: float = 0.0) -> None:
    """Wait until responses are in a command's recording, and the session up to this time (s)."""

    def has_responses() -> bool:
        assert command.poll() is None, command.err.read_bytes()
        try:
            with Recording(file) as recording:
                events = list(recording.events())
                return recording.end >= recorded and any(isinstance(it, Tick) and it.completed for it in events)
        except RecordingError:
            return False

    wait_until(has_responses)


class TerminalProcess:
    """A process on a terminal of `columns` x `rows`; `start` starts it, given the descriptor of its terminal."""

    def __init__(self, start: Callable[[int], subprocess.Popen[bytes] | ForkedCommand], size: tuple[int, int]) -> None:
        columns, rows = size
        self.terminal, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = start(self._theirs)
        self.shown = self._undrawn = b""
        self._size, self._screen, self._rest = size, Emulator(), ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def until(self, text: bytes) -> bytes:
        """Read until the output contains `text`, and return all output so far."""
        self._read_until(lambda: text in self.shown, text)
        return self.shown

    def until_words(self, *words: str) -> None:
        """Read until the output since the last call contains all words, without control sequences."""

        def text() -> str:
            return _CONTROL.sub(b"", self.shown).decode("utf-8", "replace")

        self._read_until(lambda: all(word in text() for word in words), words)
        self.shown = b""

    def until_screen(self, *words: str) -> None:
        """Read until the screen shows all words."""

        def shows() -> bool:
            text = self._drawn()
            return all(word in text for word in words)

        self._read_until(shows, words)

    def picture(self) -> list[list[Cell]]:
        """Read until a frame is complete, and return the cells of the screen."""
        self._read_until(lambda: self.shown.endswith(_FRAME_END), "the end of a frame")
        return self._cells()

    def until_redrawn(self, picture: list[list[Cell]]) -> None:
        """Clear the screen, and read until it shows the picture again."""
        self._screen.cells.clear()
        self._read_until(lambda: self._cells() == picture, "the picture")

    def _cells(self) -> list[list[Cell]]:
        self._drawn()
        return self._screen.picture(self._size)

    def _drawn(self) -> str:
        """Return the text on the screen, which programs draw in pieces."""
        text = self._rest + self._decoder.decode(self._undrawn)
        incomplete = _INCOMPLETE.search(text)
        self._undrawn, self._rest = b"", incomplete[0] if incomplete else ""
        old, *screens = text.removesuffix(self._rest).split("\x1b[?1049h")
        self._screen.feed(old)
        for screen in screens:
            self._screen.cells.clear()
            self._screen.feed(screen)
        return "\n".join("".join(char for char, _ in line) for line in self._screen.picture(self._size))

    def _read_until(self, condition: Callable[[], bool], wanted: object) -> None:
        deadline = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < deadline, f"timeout without {wanted!r}: {self.shown[-2000:]!r}"
            assert self.read() or self.process.poll() is None, f"ended without {wanted!r}: {self.shown[-2000:]!r}"

    def read(self) -> bool:
        """Read available output, waiting up to 0.1 s; return whether there was any."""
        if not select.select([self.terminal], [], [], 0.1)[0]:
            return False
        try:
            chunk = os.read(self.terminal, 65536)
        except OSError:
            return False
        self.shown += chunk
        self._undrawn += chunk
        return bool(chunk)

    def type(self, keys: bytes) -> None:
        os.write(self.terminal, keys)

    def close(self) -> None:
        """Close the terminal: a hangup for the process."""
        for descriptor in (self.terminal, self._theirs):
            if descriptor >= 0:
                os.close(descriptor)
        self.terminal = self._theirs = -1

    def end(self) -> int:
        """Read until the process has ended, and return its exit code."""
        deadline = time.monotonic() + DEADLINE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.shown[-2000:]
            if self.terminal < 0 or not self.read():
                time.sleep(0.01)
        while self.terminal >= 0 and self.read():
            pass
        assert self.process.returncode is not None
        return self.process.returncode


def _attach(path: Path, controlling: bool) -> None:
    """Make the terminal the input of this process, in a session of its own."""
    os.setsid()
    terminal = os.open(path, os.O_RDWR | (0 if controlling else os.O_NOCTTY))
    os.dup2(terminal, 0)
    os.close(terminal)
    # A forked process has closed its standard input.
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)  # type: ignore[misc]
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def _variables(size: tuple[int, int], environment: Mapping[str, str] | None) -> dict[str, str]:
    """Return the variables of a terminal; pytest-xdist sets a size for its processes."""
    columns, lines = map(str, size)
    common = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": columns, "LINES": lines}
    return {**common, **(environment or {})}


@contextmanager
def _on_terminal(
    start: Callable[[int], subprocess.Popen[bytes] | ForkedCommand], size: tuple[int, int]
) -> Iterator[TerminalProcess]:
    opened = TerminalProcess(start, size)
    try:
        yield opened
    finally:
        if opened.process.poll() is None:
            opened.process.kill()
        opened.process.wait()
        opened.close()


def on_terminal(
    command: Sequence[str],
    size: tuple[int, int] = (120, 40),
    environment: Mapping[str, str] | None = None,
    controlling: bool = True,
) -> AbstractContextManager[TerminalProcess]:
    """Run a process on a terminal; with `controlling`, a hangup sends SIGHUP. Kill it at the end of the block."""

    def start(terminal: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            list(command),
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, **_variables(size, environment)},
            start_new_session=True,
            preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None) if controlling else None,
        )

    return _on_terminal(start, size)


def cockpit_on_terminal(
    *arguments: str | Path,
    size: tuple[int, int] = (120, 40),
    environment: Mapping[str, str] | None = None,
    controlling: bool = True,
    out: Path | None = None,
    err: Path | None = None,
) -> AbstractContextManager[TerminalProcess]:
    """Run a `cockpit` command on a terminal like `on_terminal`, in a forked process; `out` and `err` redirect it."""

    def start(terminal: int) -> ForkedCommand:
        path, variables = Path(os.ttyname(terminal)), _variables(size, environment)
        attach = partial(_attach, path, controlling)
        return ForkedCommand(*arguments, out=out or path, err=err or path, environment=variables, before=attach)

    return _on_terminal(start, size)
