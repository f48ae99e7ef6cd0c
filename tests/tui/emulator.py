"""A minimal terminal emulator: a grid of cells."""

import re
from functools import cache

from rich.cells import cell_len

Cell = tuple[str, tuple[str, ...]]

_MOVE, _SGR = r"\x1b\[(\d+);(\d+)H", r"\x1b\[([\d;]*)m"
_OTHER = r"\x1b\[[<?>=\d;$]*[a-zA-Z]|\x1b\].*?(?:\x07|\x1b\\)"
_TOKEN = re.compile(f"{_MOVE}|{_SGR}|{_OTHER}|.", re.DOTALL)
_INVISIBLE_ON_BLANKS = ("38", "1", "2", "3")


class Emulator:
    """Cells by (line, column): the character, and the sorted SGR codes active when it was written."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], Cell] = {}
        self.sent = 0
        self._line = self._column = 1
        self._attributes: dict[str, str] = {}
        self._style: tuple[str, ...] = ()

    def feed(self, text: str) -> None:
        """Process output for the terminal."""
        self.sent += len(text.encode())
        for found in _TOKEN.finditer(text):
            line, column, codes = found.groups()
            if line:
                self._line, self._column = int(line), int(column)
            elif codes is not None:
                self._set_attributes(codes.split(";"))
            elif found[0][0] not in "\x1b\n\r":
                self._put(found[0])

    def _set_attributes(self, codes: list[str]) -> None:
        while codes:
            code = codes.pop(0)
            if code in ("", "0"):
                self._attributes.clear()
            elif code in ("38", "48"):
                length = 4 if codes[0] == "2" else 2
                self._attributes[code] = ";".join(codes[:length])
                del codes[:length]
            elif len(code) > 1 and code[-2] in "39" and code[-1] != "8":
                self._attributes["38"] = code
            elif len(code) > 1 and code[-2] in "40":
                self._attributes["48"] = code
            else:
                self._attributes[code] = "on"
        self._style = tuple(sorted(f"{name} {value}" for name, value in self._attributes.items()))

    def _put(self, char: str) -> None:
        width = cell_len(char)
        if not width:
            before, style = self.cells[self._line, self._column - 1]
            self.cells[self._line, self._column - 1] = (before + char, style)
            return
        for at in range(width):
            self.cells[self._line, self._column + at] = ("" if at else char, self._style)
        self._column += width

    def picture(self, size: tuple[int, int]) -> list[list[Cell]]:
        """Return the visible cells, line by line; of a blank only the background counts."""
        width, height = size
        empty: Cell = (" ", ())
        return [
            [_visible(*self.cells.get((line, column), empty)) for column in range(1, width + 1)]
            for line in range(1, height + 1)
        ]


@cache
def _visible(char: str, style: tuple[str, ...]) -> Cell:
    if char == " " and not any(part.startswith(("4 ", "7 ", "9 ")) for part in style):
        style = tuple(part for part in style if part.split()[0] not in _INVISIBLE_ON_BLANKS)
    return char, style
