"""Pager for long texts on a terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys

from cockpit.cli.terminal import raw

# Options of less, unless LESS is set: quit if the text fits on one screen, keep colours, do not clear the screen.
_LESS = "FRX"


def page(text: str) -> None:
    """Show a text with $PAGER, else with less; print it if it fits on the terminal or there is no pager."""
    command = _pager()
    if not command or text.count("\n") < shutil.get_terminal_size().lines - 1:
        print(text.rstrip("\n"), file=raw(sys.stdout))
        return
    # Ctrl-C belongs to the pager while it runs.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        stream = raw(sys.stdout)
        given = text.encode(stream.encoding or "utf-8", stream.errors or "replace")
        subprocess.run(command, input=given, env={"LESS": _LESS, **os.environ}, check=False)
    except OSError:
        print(text.rstrip("\n"), file=raw(sys.stdout))
    finally:
        signal.signal(signal.SIGINT, before)


def _pager() -> list[str]:
    pager = os.environ.get("PAGER")
    if pager is None:
        return ["less"] if shutil.which("less") else []
    try:
        return shlex.split(pager)
    except ValueError:
        return []
