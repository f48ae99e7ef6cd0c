"""How the screen is to look: what the options say, else what is remembered, and what the terminal and its line can."""

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
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from cockpit.model.errors import UsageError

if TYPE_CHECKING:
    from cockpit.tui.terminal.appearance import Appearance
    from cockpit.tui.terminal.theme import Colours

THEMES = ("dark", "light", "contrast")

# Terminals that are known to have no braille, whatever the locale says.
_WITHOUT_BRAILLE = ("linux", "vt100", "vt102", "vt220", "dumb", "ansi", "cons25")

# From so long a round trip (s) on the line is slow; so long is waited for an answer.
SLOW = 0.15
_PATIENCE = 1.0
# Asks for the position of the cursor; any terminal tells.
_ASK = b"\x1b[6n"
_ANSWER = re.compile(rb"\x1b\[\d+;\d+R")


def add_look(parser: ArgumentParser, *, hangup: bool = True) -> None:
    """What every command with a screen takes."""
    group = parser.add_argument_group("the screen")
    add = group.add_argument
    add("--theme", choices=THEMES, help="colours (default: the one chosen last; T on the screen goes on to the next)")
    add(
        "--ascii",
        action="store_true",
        default=None,
        help="draw with ASCII alone (by itself where the terminal has no more)",
    )
    add("--no-ascii", dest="ascii", action="store_false", help="draw with braille, blocks and lines all the same")
    add(
        "--lite",
        action="store_true",
        default=None,
        help="a frame every two seconds (by itself on a slow line)",
    )
    add("--no-lite", dest="lite", action="store_false", help="all frames, however slow the line is")
    add("--no-mouse", action="store_true", help="leave the mouse to the terminal")
    if hangup:
        add(
            "--on-hangup",
            choices=("stop", "continue"),
            default="stop",
            help="when the terminal goes away: stop in order (default), or go on to the run's end",
        )


def look_of(options: Namespace) -> Appearance:
    """The screen's look. Asks the terminal how long its line takes where that may matter."""
    from cockpit.tui.terminal.appearance import Appearance

    theme, notices = _theme(options.theme)
    lite, why = options.lite, "asked for"
    if lite is None:
        trip = round_trip() if "SSH_CONNECTION" in os.environ else None
        lite = trip is not None and trip >= SLOW
        why = f"the line to this terminal takes {1000 * (trip or 0):.0f} ms there and back"
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


def _theme(asked: str | None) -> tuple[str, tuple[str, ...]]:
    """The theme's name, and what is wrong with what is remembered of it."""
    from cockpit.tui.terminal import settings

    if asked:
        return asked, ()
    try:
        remembered = settings.recall().get("theme", THEMES[0])
    except UsageError as error:
        return THEMES[0], (str(error),)
    if remembered not in THEMES:
        return THEMES[0], (f"{settings.place()}: theme {remembered!r}: must be {', '.join(THEMES)}; defaults are used",)
    return remembered, ()


def needs_ascii(environment: Mapping[str, str], encoding: str) -> bool:
    """Whether the terminal can be expected to show no braille or block."""
    return environment.get("TERM", "") in _WITHOUT_BRAILLE or encoding.lower().replace("-", "") not in ("utf8", "utf")


def colours(environment: Mapping[str, str]) -> Colours:
    """How many colours the screen's own console will find, by the same rules."""
    from rich.console import Console
    from textual.constants import COLOR_SYSTEM

    system = Console(color_system=COLOR_SYSTEM, force_terminal=True, _environ=environment).color_system  # type: ignore[arg-type]
    return "truecolor" if system in ("truecolor", "windows") else "256" if system == "256" else "16"


def round_trip(patience: float = _PATIENCE) -> float | None:
    """Seconds the terminal takes to answer; `patience` where it has not by then, None where it cannot be asked."""
    try:
        with _raw(sys.stdin.fileno()) as keys:
            begun = time.monotonic()
            os.write(sys.stderr.fileno(), _ASK)
            heard = b""
            while (left := begun + patience - time.monotonic()) > 0:
                if select.select([keys], [], [], left)[0]:
                    heard += os.read(keys, 1024)
                    if _ANSWER.search(heard):
                        return time.monotonic() - begun
            return patience
    except (OSError, termios.error, ValueError):
        return None


@contextlib.contextmanager
def _raw(terminal: int) -> Iterator[int]:
    """Keys as they come, unseen, with the terminal as before afterwards."""
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield terminal
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)
