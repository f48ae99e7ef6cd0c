"""A filled chart in braille: every cell is 2 dots wide and 4 high."""

from __future__ import annotations

from collections.abc import Sequence

# Dots of a cell's left and right column, lit from the bottom up.
_LEFT = (0x00, 0x40, 0x44, 0x46, 0x47)
_RIGHT = (0x00, 0x80, 0xA0, 0xB0, 0xB8)
_BARS = " ▁▂▃▄▅▆▇█"


def area(values: Sequence[float | None], top: float, height: int) -> list[str]:
    """Lines, top first, of one column of dots per value; `top` fills the height. None leaves its column empty.

    A value of 0 still shows one dot: something was there, and it was nothing.
    """
    dots = [_dots(value, top, height * 4) for value in values]
    if len(dots) % 2:
        dots.append(0)
    lines = []
    for row in range(height):
        floor = (height - 1 - row) * 4
        cells = zip(dots[0::2], dots[1::2], strict=True)
        lines.append("".join(_cell(left - floor, right - floor) for left, right in cells))
    return lines


def _dots(value: float | None, top: float, most: int) -> int:
    if value is None:
        return 0
    return max(1, min(most, round(value / top * most))) if top > 0 else 1


def _cell(left: int, right: int) -> str:
    code = _LEFT[max(0, min(4, left))] | _RIGHT[max(0, min(4, right))]
    return chr(0x2800 + code) if code else " "


def trend(values: Sequence[float], top: float) -> str:
    """One line, one block a value, for a small trend; `top` is a full block. The least is a thin line, not a gap."""
    return "".join(_BARS[max(1, min(8, round(value / top * 8)))] if top > 0 else "▁" for value in values)


def bar(fraction: float, width: int) -> str:
    """A horizontal bar in eighths of a cell; anything above 0 shows at least a sliver."""
    eighths = round(max(0.0, min(1.0, fraction)) * width * 8)
    if fraction > 0:
        eighths = max(1, eighths)
    whole, part = divmod(eighths, 8)
    return "█" * whole + (" ▏▎▍▌▋▊▉"[part] if part else "")
