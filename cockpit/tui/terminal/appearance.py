"""How the screen is drawn, and to what kind of terminal: chosen before it opens."""

from __future__ import annotations

from dataclasses import dataclass

from cockpit.tui.terminal.theme import DEFAULT, Colours


@dataclass(frozen=True)
class Appearance:
    """`encoding` is what text of servers may be written in where `ascii` keeps the screen's own glyphs to ASCII.

    `lite`: few frames and plain charts, for the reason `why`; `may_lite`: it becomes so by itself on a line that turns
    out to be slow. `outlive`: a run goes on to its end when the terminal goes away. `notices` are told once it is up.
    """

    theme: str = DEFAULT
    colours: Colours = "truecolor"
    ascii: bool = False
    encoding: str = "utf-8"
    lite: bool = False
    why: str = ""
    may_lite: bool = False
    mouse: bool = True
    outlive: bool = False
    notices: tuple[str, ...] = ()
