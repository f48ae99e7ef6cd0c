"""Output of a command as lines of a terminal, in bounded memory and at a bounded rate. Pure."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

# Characters kept of a line; the last is `…` if it was longer.
LINE_CHARS = 2000
# Maximum length of a piece of a line; the rest was overwritten or is cut.
PIECE_CHARS = 4 * LINE_CHARS
TAB = 8

_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\r\b\t]")
_BEGUN_ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*)?$")
# Maximum length of an escape sequence.
_ESCAPE_CHARS = 32


class CommandOutput(NamedTuple):
    """Lines to show, after `skipped` ones that are not shown. `continues`: the first replaces the last line shown,
    which was unfinished."""

    lines: tuple[str, ...]
    skipped: int
    continues: bool


class OutputLines:
    """Turns output into lines.

    Carriage return, backspace and tab (8 columns) act as on a terminal, colours are removed, everything else is kept.
    Invalid UTF-8 becomes `�`.
    """

    def __init__(self) -> None:
        self._row = _Row()
        self._shown: str | None = None

    def take(self, data: bytes, lines: int, chars: int) -> CommandOutput:
        """The newest lines of `data`, up to a number of lines and characters; the others are counted as skipped.

        The last line may be unfinished; without room for it, it is shown once more of it arrives.
        """
        *ends, begun = data.split(b"\n")
        dropped = max(0, len(ends) - max(0, lines))
        begun_before = self._shown is not None
        if dropped:
            self._row = _Row()
        texts = [self._finish(end) for end in ends[dropped:]]
        self._row.write(begun)
        # A line that was shown and is empty now was erased.
        unfinished = bool(begun) and len(texts) < lines and bool(self._row.text() or (self._shown and not ends))
        if unfinished:
            texts.append(self._row.text())
        kept = _newest(texts, chars)
        lost = len(texts) - kept
        if ends:
            self._shown = None
        if unfinished and kept:
            self._shown = texts[-1]
        whole = not dropped and not lost
        # A line whose beginning was shown, and an unfinished one, are not lost.
        spared = (begun_before and bool(ends) and not whole) + (unfinished and not kept)
        return CommandOutput(tuple(texts[lost:]), dropped + lost - spared, begun_before and whole and bool(texts))

    def rest(self) -> CommandOutput:
        """The last line if it is unfinished and not shown in its current form."""
        text = self._row.text()
        if text == (self._shown or ""):
            return CommandOutput((), 0, False)
        return CommandOutput((text,), 0, self._shown is not None)

    def _finish(self, end: bytes) -> str:
        self._row.write(end, last=True)
        text = self._row.text()
        self._row = _Row()
        return text


class _Row:
    """One line while it is being printed."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._cells: list[str] = []
        self._column = 0
        self._cut = False
        self._escape = ""

    def write(self, data: bytes, last: bool = False) -> None:
        text = self._escape + _last_writing(self._decode(data, last))
        begun = None if last else _BEGUN_ESCAPE.search(text)
        self._escape = begun[0] if begun and len(begun[0]) < _ESCAPE_CHARS else ""
        text = text.removesuffix(self._escape)
        at = 0
        for control in _CONTROL.finditer(text):
            self._put(text[at : control.start()])
            self._obey(control[0])
            at = control.end()
        self._put(text[at:])

    def text(self) -> str:
        line = "".join(self._cells)
        return line[: LINE_CHARS - 1] + "…" if self._cut else line

    def _put(self, text: str) -> None:
        room = LINE_CHARS - self._column
        self._cut = self._cut or len(text) > room
        text = text[:room]
        self._cells += " " * (self._column - len(self._cells))
        self._cells[self._column : self._column + len(text)] = text
        self._column += len(text)

    def _obey(self, control: str) -> None:
        match control:
            case "\r":
                self._column = 0
            case "\b":
                self._column = max(0, self._column - 1)
            case "\t":
                self._column = min(LINE_CHARS, (self._column // TAB + 1) * TAB)
            case _ if control.endswith("m"):
                pass
            case "\x1b[K" | "\x1b[0K":
                del self._cells[self._column :]
            case _:
                self._put(control)


def _last_writing(text: str) -> str:
    """The end of a piece that is too long, without overwritten text."""
    if len(text) <= PIECE_CHARS:
        return text
    before, _, last = text[:-1].rpartition("\r")
    return ("\r" + last + text[-1] if before else text)[:PIECE_CHARS]


def _newest(texts: list[str], chars: int) -> int:
    """Number of lines at the end that fit into a number of characters."""
    for count, text in enumerate(reversed(texts)):
        chars -= len(text) + 1
        if chars < 0:
            return count
    return len(texts)


class OutputBudget:
    """A token bucket: `most` at once, refilled by `per_second`."""

    def __init__(self, most: float, per_second: float) -> None:
        self._most = most
        self._per_second = per_second
        self._left = most
        self._then = 0.0

    def at(self, now: float) -> int:
        """The amount available at `now` (s, monotonic)."""
        self._left = min(self._most, self._left + self._per_second * max(0.0, now - self._then))
        self._then = now
        return int(self._left)

    def spend(self, amount: float) -> None:
        self._left = max(0.0, self._left - amount)
