"""What a command prints, as lines of a terminal: pure, in bounded memory and at a bounded rate."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

# Characters of a line that are kept, the last of them `…` where it was longer.
LINE_CHARS = 2000
# A line in pieces is looked at in pieces of at most so many characters; what is longer was overwritten or is cut.
PIECE_CHARS = 4 * LINE_CHARS
TAB = 8

_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\r\b\t]")
_BEGUN_ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*)?$")
# An escape sequence that has not ended after so many characters is none.
_ESCAPE_CHARS = 32


class CommandOutput(NamedTuple):
    """Lines to show. `continues`: the first stands in the place of the last one shown, which was not finished.

    `skipped` lines before them are not shown.
    """

    lines: tuple[str, ...]
    skipped: int
    continues: bool


class OutputLines:
    """Takes what a command prints and gives lines.

    A carriage return rewrites the line, a tab goes to the next column of 8, a backspace one back; colours are left out;
    everything else stays as it came. Bytes that are no UTF-8 are `�`.
    """

    def __init__(self) -> None:
        self._row = _Row()
        self._shown: str | None = None

    def take(self, data: bytes, lines: int, chars: int) -> CommandOutput:
        """The newest of what `data` adds, at most so many lines and characters; the rest is counted as skipped.

        The last line may be unfinished; where there is no room for it, it is shown when more of it comes.
        """
        *ends, begun = data.split(b"\n")
        dropped = max(0, len(ends) - max(0, lines))
        begun_before = self._shown is not None
        if dropped:
            self._row = _Row()
        texts = [self._finish(end) for end in ends[dropped:]]
        self._row.write(begun)
        # One that was shown and is empty meanwhile was erased.
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
        # Not lost are a line whose beginning was shown before, and one that is not finished: it comes again.
        spared = (begun_before and bool(ends) and not whole) + (unfinished and not kept)
        return CommandOutput(tuple(texts[lost:]), dropped + lost - spared, begun_before and whole and bool(texts))

    def rest(self) -> CommandOutput:
        """The line that was never finished, where it has not been shown as it is."""
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
    """The end of a piece that is too long to look at: what was written over in it cannot be seen anyway."""
    if len(text) <= PIECE_CHARS:
        return text
    before, _, last = text[:-1].rpartition("\r")
    return ("\r" + last + text[-1] if before else text)[:PIECE_CHARS]


def _newest(texts: list[str], chars: int) -> int:
    """How many lines at the end fit into so many characters."""
    for count, text in enumerate(reversed(texts)):
        chars -= len(text) + 1
        if chars < 0:
            return count
    return len(texts)


class OutputBudget:
    """So much may be spent at once, and as much as comes back each second."""

    def __init__(self, most: float, per_second: float) -> None:
        self._most = most
        self._per_second = per_second
        self._left = most
        self._then = 0.0

    def at(self, now: float) -> int:
        """What may be spent at that instant (s on any clock that does not go back)."""
        self._left = min(self._most, self._left + self._per_second * max(0.0, now - self._then))
        self._then = now
        return int(self._left)

    def spend(self, amount: float) -> None:
        self._left = max(0.0, self._left - amount)
