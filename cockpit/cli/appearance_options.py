"""Appearance of the screen, from flags, stored settings, and the capabilities of the terminal and its line."""

from __future__ import annotations

import contextlib
import locale
import os
import re
import select
import sys
import termios
import time
import tty
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from cockpit.cli.flags import Flag, FlagSection, Switch
from cockpit.model.errors import UsageError

if TYPE_CHECKING:
    from cockpit.tui.terminal.appearance import Appearance
    from cockpit.tui.terminal.theme import Colours

THEMES = ("dark", "light", "contrast")

# Terminals without braille.
_WITHOUT_BRAILLE = ("linux", "vt100", "vt102", "vt220", "dumb", "ansi", "cons25")

# Round trip of a slow line (s), and the timeout of its measurement (s).
SLOW = 0.15
_TIMEOUT = 1.0
# Request for the cursor position, to which every terminal responds.
_REQUEST = b"\x1b[6n"
_RESPONSE = re.compile(rb"\x1b\[\d+;\d+R")


_SCREEN = (
    Flag("--theme", THEMES, "colour theme (default: the last choice)"),
    Flag("--ascii", Switch(True), "draw with ASCII only (default: if the terminal needs it)"),
    Flag("--no-ascii", Switch(False), "draw with braille, blocks and lines", dest="ascii"),
    Flag("--lite", Switch(True), "one frame every 2 s (default: on a slow line)"),
    Flag("--no-lite", Switch(False), "all frames, also on a slow line", dest="lite"),
    Flag("--no-mouse", True, "leave the mouse to the terminal"),
)
_HANGUP = Flag(
    "--on-hangup",
    ("stop", "continue"),
    "if the terminal closes: stop, or continue to the end of the run",
    default="stop",
)
APPEARANCE = FlagSection("screen", (*_SCREEN, _HANGUP))
APPEARANCE_OF_REPLAY = FlagSection("screen", _SCREEN)


def appearance_of(options: Namespace) -> Appearance:
    """Return the appearance of the screen. On an SSH connection, measure the round trip to the terminal."""
    from cockpit.tui.terminal.appearance import Appearance

    theme, notices = _theme(options.theme)
    lite, why = options.lite, "requested"
    if lite is None:
        trip = round_trip() if "SSH_CONNECTION" in os.environ else None
        lite = trip is not None and trip >= SLOW
        why = f"the round trip to this terminal takes {1000 * (trip or 0):.0f} ms"
    return Appearance(
        theme=theme,
        colours=colours(os.environ),
        ascii=needs_ascii(os.environ, locale.getencoding()) if options.ascii is None else options.ascii,
        encoding=(sys.stderr.encoding or "ascii"),
        lite=lite,
        why=why if lite else "",
        may_lite=options.lite is None,
        mouse=not options.no_mouse,
        outlive=getattr(options, "on_hangup", "stop") == "continue",
        notices=notices,
    )


def _theme(requested: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the theme's name, and warnings about an invalid setting."""
    from cockpit.tui.terminal.appearance import read_settings, settings_file

    if requested:
        return requested, ()
    try:
        stored = read_settings().get("theme", THEMES[0])
    except UsageError as error:
        return THEMES[0], (str(error),)
    if stored not in THEMES:
        problem = f"unknown theme {stored!r} (choose {', '.join(THEMES)}); defaults are used"
        return THEMES[0], (f"{settings_file()}: {problem}",)
    return stored, ()


def needs_ascii(environment: Mapping[str, str], encoding: str) -> bool:
    return environment.get("TERM", "") in _WITHOUT_BRAILLE or encoding.lower().replace("-", "") not in ("utf8", "utf")


def colours(environment: Mapping[str, str]) -> Colours:
    """Return the number of colours, by the rules of Textual's console."""
    from rich.console import Console
    from textual.constants import COLOR_SYSTEM

    system = Console(color_system=COLOR_SYSTEM, force_terminal=True, _environ=environment).color_system  # type: ignore[arg-type]
    return "truecolor" if system in ("truecolor", "windows") else "256" if system == "256" else "16"


def round_trip(timeout: float = _TIMEOUT) -> float | None:
    """Return the round trip to the terminal (s), at most `timeout`; None without a terminal."""
    try:
        with _raw(sys.stdin.fileno()) as keys:
            begun = time.monotonic()
            os.write(sys.stderr.fileno(), _REQUEST)
            received = b""
            while (left := begun + timeout - time.monotonic()) > 0:
                if select.select([keys], [], [], left)[0]:
                    received += os.read(keys, 1024)
                    if _RESPONSE.search(received):
                        return time.monotonic() - begun
            return timeout
    except (OSError, termios.error, ValueError):
        return None


@contextlib.contextmanager
def _raw(terminal: int) -> Iterator[int]:
    """Read keys unbuffered and without echo; restore the terminal afterwards."""
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield terminal
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)
