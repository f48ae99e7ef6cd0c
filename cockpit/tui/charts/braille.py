"""Charts of braille dots, 2 wide and 4 high per cell, and bars of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

# Bits of a cell's dots from the bottom up: left column, right column.
_LEFT = (0x40, 0x04, 0x02, 0x01)
_RIGHT = (0x80, 0x20, 0x10, 0x08)
_BARS = " ▁▂▃▄▅▆▇█"


def area(values: Sequence[float | None], top: float, height: int, marks: Sequence[Sequence[float]] = ()) -> list[str]:
    """Return a filled chart as lines, top first, with one column of dots per value; None is an empty column.

    `top` is the value at full height; 0 still shows one dot. `marks` are more values per column, one dot each.
    """
    filled = [0 if value is None else (1 << dots(value, top, height * 4)) - 1 for value in values]
    for at, more in enumerate(marks):
        for value in more:
            filled[at] |= 1 << (dots(value, top, height * 4) - 1)
    if len(filled) % 2:
        filled.append(0)
    lines = []
    for row in range(height):
        floor = (height - 1 - row) * 4
        cells = zip(filled[0::2], filled[1::2], strict=True)
        lines.append("".join(_cell(left >> floor & 15, right >> floor & 15) for left, right in cells))
    return lines


def dots(value: float, top: float, most: int) -> int:
    """Return the height of a value in dots, at least 1; `most` is the height of `top`."""
    return max(1, min(most, round(value / top * most))) if top > 0 else 1


@cache
def _cell(left: int, right: int) -> str:
    code = sum(dot for at, dot in enumerate(_LEFT) if left >> at & 1)
    code += sum(dot for at, dot in enumerate(_RIGHT) if right >> at & 1)
    return chr(0x2800 + code) if code else " "


def both(first: str, second: str) -> str:
    """Return a cell with the dots of both cells."""
    dots_of = [0 if cell == " " else ord(cell) - 0x2800 for cell in (first, second)]
    return chr(0x2800 + (dots_of[0] | dots_of[1]))


def trend(values: Sequence[float], top: float) -> str:
    """Return one block per value; `top` is a full block, 0 a thin line."""
    return "".join(_BARS[max(1, min(8, round(value / top * 8)))] if top > 0 else "▁" for value in values)


def bar(fraction: float, width: int) -> str:
    """Return a horizontal bar in eighths of a cell; any value above 0 shows at least one eighth."""
    eighths = round(max(0.0, min(1.0, fraction)) * width * 8)
    if fraction > 0:
        eighths = max(1, eighths)
    whole, part = divmod(eighths, 8)
    return "█" * whole + (" ▏▎▍▌▋▊▉"[part] if part else "")
