"""Output to the terminal: per frame only the cells that differ from the shown ones.

Textual sends changed regions of widgets, from the left edge of each. A line of numbers differs in a few digits, so most
of that output is on the screen already, which costs time on a slow line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

# Attributes, foreground and background, each as SGR codes. A cell is a character ("" right of a wide one) and a style.
StyleCodes = tuple[str, str, str]
Cell = tuple[str, StyleCodes]

_PLAIN: StyleCodes = ("", "", "")
_RESET = "\x1b[0m"
# SGR attributes that are visible on a blank: underlined, reversed, struck through, doubly underlined, overlined.
_VISIBLE = frozenset(["4", "7", "9", "21", "53"])
# Maximum number of unchanged cells between two changes that are sent again: moving the cursor costs about as much.
_GAP = 6


class RenderedUpdate(CompositorUpdate):
    """A Textual update whose output is already rendered."""

    def __init__(self, sequence: str) -> None:
        self.sequence = sequence

    def render_segments(self, console: Console) -> str:
        return self.sequence


class ShownCells:
    """The cells that the terminal shows, as far as known."""

    def __init__(self) -> None:
        self._lines: dict[int, list[Cell | None]] = {}
        self._width = 0
        self._known_codes: dict[Style, StyleCodes] = {}

    def forget(self) -> None:
        self._lines.clear()

    def whole(self, update: LayoutUpdate, console: Console, size: tuple[int, int]) -> str:
        """Return the output for a full redraw; `size` is (columns, rows)."""
        width, height = size
        if self._width != width or any(y >= height for y in self._lines):
            self.forget()
            self._width = width
        pieces = []
        for y, strips in enumerate(update.strips, update.region.y):
            pieces.append((y, update.region.x, Strip.join(strips)))
        return self._sent(pieces, console)

    def parts(self, update: ChopsUpdate, console: Console) -> str:
        """Return the output for the changed spans of a frame."""
        return self._sent(_cropped(update), console)

    def _sent(self, pieces: Iterable[tuple[int, int, Strip]], console: Console) -> str:
        system = COLOR_SYSTEMS.get(console.color_system or "", ColorSystem.TRUECOLOR)
        sent: list[str] = []
        active = _PLAIN
        for y, x, strip in pieces:
            shown = self._lines.setdefault(y, [])
            cells = list(self._cells(strip, system))
            shown += [None] * (x + len(cells) - len(shown))
            for start, end in _changes(shown[x : x + len(cells)], cells):
                sent.append(f"\x1b[{y + 1};{x + start + 1}H")
                for char, codes in cells[start:end]:
                    if codes != active and not (char == " " and _alike_when_blank(codes, active)):
                        sent.append(_change_of(active, codes))
                        active = codes
                    sent.append(char)
            shown[x : x + len(cells)] = cells
        if active != _PLAIN:
            sent.append(_RESET)
        return "".join(sent)

    def _cells(self, strip: Strip, system: ColorSystem) -> Iterator[Cell]:
        for text, style, control in strip:
            if control:
                continue
            codes = _PLAIN if style is None else self._codes(style, system)
            if text.isascii():
                yield from ((char, codes) for char in text)
            else:
                yield from _wide(text, codes)

    def _codes(self, style: Style, system: ColorSystem) -> StyleCodes:
        if style not in self._known_codes:
            colour, ground = style.color, style.bgcolor
            self._known_codes[style] = (
                Strip.render_ansi(style.without_color, system),
                ";".join(colour.downgrade(system).get_ansi_codes()) if colour else "",
                ";".join(ground.downgrade(system).get_ansi_codes(False)) if ground else "",
            )
        return self._known_codes[style]


def _wide(text: str, codes: StyleCodes) -> Iterator[Cell]:
    """Yield the cells of a text with characters two cells wide, or zero-width ones, which join the one before them."""
    grapheme = ""
    for char in text:
        width = cell_len(char)
        if width == 0:
            grapheme += char
            continue
        if grapheme:
            yield grapheme, codes
            yield from [("", codes)] * (cell_len(grapheme) - 1)
        grapheme = char
    if grapheme:
        yield grapheme, codes
        yield from [("", codes)] * (cell_len(grapheme) - 1)


def _cropped(update: ChopsUpdate) -> Iterator[tuple[int, int, Strip]]:
    """Yield (line, column, content) of the update's spans."""
    for y, left, right in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is None or x >= right or end <= left:
                continue
            start, stop = max(x, left), min(end, right)
            yield y, start, strip if (start, stop) == (x, end) else strip.crop(start - x, stop - x)


def _changes(shown: Sequence[Cell | None], cells: Sequence[Cell]) -> Iterator[tuple[int, int]]:
    """Yield (first, end) of the ranges of cells to send; a wide character is never split."""
    start = end = -1
    for at, cell in enumerate(cells):
        before = shown[at]
        if before is not None and (before == cell or _both_blank(before, cell)):
            continue
        first = at
        while first and not cells[first][0]:
            first -= 1
        last = at + 1
        while last < len(cells) and not cells[last][0]:
            last += 1
        if start < 0:
            start = first
        elif first - end > _GAP or any(cell[1] != cells[end - 1][1] for cell in cells[end:first]):
            yield start, end
            start = first
        end = max(end, last)
    if start >= 0:
        yield start, end


def _both_blank(one: Cell, other: Cell) -> bool:
    return one[0] == other[0] == " " and _alike_when_blank(one[1], other[1])


def _alike_when_blank(one: StyleCodes, other: StyleCodes) -> bool:
    """Return whether a blank looks the same in both."""
    return one[2] == other[2] and not (_VISIBLE & set(f"{one[0]};{other[0]}".split(";")))


def _change_of(active: StyleCodes, codes: StyleCodes) -> str:
    """Return the SGR sequence from one style to another; attributes can only be reset all at once."""
    if active[0] != codes[0] or (active[1] and not codes[1]) or (active[2] and not codes[2]):
        plain = active == _PLAIN or (not active[0] and _only_adds(active, codes))
        changed = codes if not plain else (codes[0], *_colours(active, codes))
        return f"\x1b[{';'.join(filter(None, ('' if plain else '0', *changed)))}m"
    return f"\x1b[{';'.join(filter(None, _colours(active, codes)))}m"


def _only_adds(active: StyleCodes, codes: StyleCodes) -> bool:
    return not (active[1] and not codes[1]) and not (active[2] and not codes[2])


def _colours(active: StyleCodes, codes: StyleCodes) -> tuple[str, str]:
    return (codes[1] if codes[1] != active[1] else "", codes[2] if codes[2] != active[2] else "")
