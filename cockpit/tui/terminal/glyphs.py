"""ASCII replacements of the screen's glyphs.

They are applied to finished lines, so that all widgets draw with one set of glyphs.
"""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_BRAILLE = 0x2800
# Replacements of braille cells by number of dots.
_DOTS = " ..::++##"

# Each replacement has the width of its glyph; ordered sets (bars, trends, shades) keep their order.
GLYPHS: dict[str, str] = {
    **{chr(_BRAILLE + code): _DOTS[code.bit_count()] for code in range(256)},
    **dict(zip("▁▂▃▄▅▆▇█", "_.-=+*%#", strict=True)),
    **dict(zip("▏▎▍▌▋▊▉", "..---==", strict=True)),
    **dict(zip("▔▀▐▕", "'\"|'", strict=True)),
    **dict(zip("░▒▓", ":=%", strict=True)),
    # Lines and borders, also of Textual.
    **dict.fromkeys("─╌┄╍╴╶╸╺", "-"),
    "━": "=",
    # Percentiles over the shades of a heat map.
    **dict(zip("═≡", "~@", strict=True)),
    **dict.fromkeys("│┃║╎┆┊╵╷╹╻", "|"),
    "┊": ":",
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯╔╗╚╝╠╣╦╩╬┏┓┗┛┡┩┠┨╞╡", "+"),
    **dict.fromkeys("▖▗▘▝▙▛▜▟▚▞", "#"),
    # Arrows and marks.
    **dict(zip("←↑→↓", "<^>v", strict=True)),
    **dict(zip("▲▴▼▾▸▶◂◀", "^^vv>><<", strict=True)),
    **dict(zip("●○◆◇■□✓✔✗✘⭘", "*o**#o+*xxo", strict=True)),
    # Punctuation and signs of arithmetic.
    **dict(zip("…·•–—−", "~.*---", strict=True)),
    **dict(zip("“”„‘’‚", '"""\'\'`', strict=True)),
    **dict(zip("×÷±≈≠≤≥", "x/~~!<>", strict=True)),
    **dict(zip("µ°²³\xa0�", "uo23 ?", strict=True)),
}

_TABLE = str.maketrans(GLYPHS)


def to_ascii(text: str, encoding: str = "utf-8") -> str:
    """Replace the glyphs of the table; keep other characters that `encoding` has, replace the rest by `?`."""
    if text.isascii():
        return text
    text = text.translate(_TABLE)
    try:
        text.encode(encoding)
        return text
    except (UnicodeEncodeError, LookupError):
        return "".join(char if _has(char, encoding) else "?" * cell_len(char) for char in text)


def _has(char: str, encoding: str) -> bool:
    try:
        char.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return char.isascii()
    return True


class Ascii(LineFilter):
    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(to_ascii(text, self._encoding), style, control) for text, style, control in segments]
