"""Standard streams, and output of results to stdout or a file."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TextIO

from cockpit.document.model import Role
from cockpit.document.text import Paint, plain
from cockpit.files import atomic_write
from cockpit.model.errors import UsageError, naming
from cockpit.model.glyphs import ASCII
from cockpit.model.text import inert

_ASCII = str.maketrans(ASCII)
# Name of the error handler of the standard streams.
_REPLACED = "cockpit-replaced"


class InertStream(io.TextIOBase):
    """A text stream that writes no control characters, whatever they come from. `raw` is the stream behind it."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        text = inert(text)
        # Either all glyphs of a text or none, so that the order of bars and shades is kept.
        self.raw.write(text if encodable(text, self.raw.encoding) else text.translate(_ASCII))
        return len(text)

    def flush(self) -> None:
        # Also called when the interpreter ends, after the stream behind it is closed.
        if not self.raw.closed:
            self.raw.flush()

    def fileno(self) -> int:
        return self.raw.fileno()

    def isatty(self) -> bool:
        return self.raw.isatty()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.raw.encoding


def encodable(text: str, encoding: str | None) -> bool:
    """Return whether an encoding has all characters of a text."""
    if text.isascii():
        return True
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Return ASCII for the characters that an encoding lacks, and the end of these characters."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(ASCII.get(char, "?") for char in error.object[error.start : error.end]), error.end


def raw(stream: TextIO) -> TextIO:
    """Return the stream for text with escape sequences of our own."""
    return stream.raw if isinstance(stream, InertStream) else stream


def on_terminal() -> bool:
    """Return whether the screen can be shown: stdin and stdout are terminals."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def is_headless(options: Namespace) -> bool:
    """Return whether `cockpit run` shows no screen: by its flags, or without a terminal."""
    return options.no_tui or options.json or bool(options.ndjson) or not on_terminal()


def can_ask() -> bool:
    """Return whether a person can answer a question on stderr."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirmed(question: str) -> bool:
    """Ask on the terminal; return whether the answer is yes."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    try:
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    except UnicodeDecodeError:
        return False


async def typed_line() -> str:
    """Return the next line of stdin in lower case. A daemon thread reads it, so that exit does not wait for it."""
    import asyncio
    import threading

    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        line = os.read(sys.stdin.fileno(), 4096).decode("utf-8", "replace")
        loop.call_soon_threadsafe(lambda: None if typed.done() else typed.set_result(line))

    threading.Thread(target=read, daemon=True).start()
    return (await typed).strip().lower()


async def is_confirmed(question: str) -> bool:
    """Ask on the terminal inside an event loop; return whether the answer is yes."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return await typed_line() in ("y", "yes")


def aligned(rows: Sequence[Sequence[str]], widest: int | None = None) -> list[str]:
    """Lay out rows in columns of at most `widest` characters; the last column has no limit."""
    *columns, _ = zip(*rows, strict=True)
    widths = [min(widest or sys.maxsize, max(map(len, column))) for column in columns]
    return [
        "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1])).rstrip()
        for row in rows
    ]


def emit(text: str) -> None:
    """Write a result to stdout at once. Raises UsageError if it cannot be written, BrokenPipeError."""
    emit_all((text, "\n"))


# Escape sequences of the roles.
_COLOURS: dict[Role, str] = {"good": "32", "bad": "31", "warn": "33", "soft": "2"}


def emit_text(make: Callable[[Paint], str]) -> None:
    """Write a report to stdout at once, in colours on a terminal. `make` makes text of other origin harmless. Raises
    like `emit`."""
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    _write((make(_painted if coloured else plain), "\n"), raw(sys.stdout))


def _painted(text: str, role: Role) -> str:
    code = _COLOURS.get(role)
    return f"\x1b[{code}m{text}\x1b[m" if code and text else text


def emit_all(pieces: Iterable[str]) -> None:
    """Write a result to stdout piece by piece. Raises like `emit` and like the iterable."""
    _write(pieces, sys.stdout)


def _write(pieces: Iterable[str], stream: TextIO) -> None:
    try:
        stream.writelines(pieces)
        stream.flush()
    except BrokenPipeError:
        drop_output()
        raise
    except OSError as error:
        drop_output()
        raise UsageError(f"stdout: cannot be written: {error.strerror}") from None


def put(pieces: Iterable[str], path: Path | None) -> None:
    """Replace the file atomically; None: write to stdout. Raises like `emit_all`."""
    if path is None:
        emit_all(pieces)
        return
    put_bytes((piece.encode() for piece in pieces), path)


def put_bytes(pieces: Iterable[bytes], path: Path) -> None:
    """Replace the file atomically. Raises UsageError, and like the iterable."""
    with naming(path, "be written"):
        if path.exists() and not path.is_file():
            # A pipe or a device cannot be replaced.
            with path.open("wb") as file:
                file.writelines(pieces)
        else:
            with atomic_write(path.resolve()) as whole:
                whole.writelines(pieces)


def write_utf8() -> None:
    """Write data to stdout in UTF-8 as into a file, in any locale; on a terminal, in the terminal's encoding."""
    stream = raw(sys.stdout)
    if not stream.isatty():
        _reconfigure(stream, encoding="utf-8")


def _reconfigure(stream: TextIO, **values: str) -> None:
    # The settings are changed before the position is read, which fails if the descriptor was replaced by a terminal.
    if isinstance(stream, io.TextIOWrapper):
        with contextlib.suppress(OSError):
            stream.reconfigure(**values)  # type: ignore[arg-type]


def drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def prepare_streams() -> None:
    """Open the null device for each closed standard stream, before another file gets its descriptor. Let only
    inert text through, in any encoding: the characters that an encoding lacks are replaced."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # Stays open until exit.
            stream = Path(os.devnull).open("w" if number else "r", encoding="utf-8")  # noqa: SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
    codecs.register_error(_REPLACED, _replaced)
    for name in ("stdout", "stderr"):
        unfiltered = raw(getattr(sys, name))
        _reconfigure(unfiltered, errors=_REPLACED)
        setattr(sys, name, InertStream(unfiltered))
