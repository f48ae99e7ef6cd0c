"""The appearance of the screen, chosen for the terminal before it opens."""

from __future__ import annotations

from dataclasses import dataclass

from cockpit.tui.terminal.theme import DEFAULT, Colours


@dataclass(frozen=True)
class Appearance:
    """`encoding` is that of server texts, if `ascii` restricts the screen's own glyphs to ASCII.

    `lite`: few frames and plain charts, for the reason `why`; `may_lite`: it becomes so by itself on a slow
    line. `outlive`: a run continues to its end when the terminal closes. `notices` are shown once it is up.
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
