"""The three standard streams: whether the screen can be shown on them, and results that go out whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from cockpit.model.errors import UsageError


def on_terminal() -> bool:
    """Return whether the screen can be shown: stdin and stdout are terminals. stderr may be a file."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def tell(text: str) -> None:
    """Write a result to stdout at once. Raises UsageError if it cannot be written, BrokenPipeError."""
    tell_all((text, "\n"))


def tell_all(pieces: Iterable[str]) -> None:
    """Write a result to stdout piece by piece. Raises as `tell`, and as the iterable does."""
    try:
        sys.stdout.writelines(pieces)
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
        raise
    except OSError as error:
        drop_output()
        raise UsageError(f"the result cannot be written to stdout: {error.strerror}") from None


def drop_output() -> None:
    """Discard buffered and later output on stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_closed_streams() -> None:
    """A standard stream that was closed (`>&-`) becomes the null device, before another file takes its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # Open for the life of the process and of its children.
            stream = Path(os.devnull).open("w" if number else "r", encoding="utf-8")  # noqa: SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
