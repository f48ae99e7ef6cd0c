"""Output of a command as terminal lines, in bounded memory and at a bounded rate. Pure."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

# Characters kept of a line; the last is `…` if it was longer.
LINE_CHARS = 2000
# Maximum characters of a piece of a line; the rest was overwritten or is cut.
PIECE_CHARS = 4 * LINE_CHARS
TAB = 8

_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\r\b\t]")
_PARTIAL_ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*)?$")
# Maximum length of an escape sequence.
_ESCAPE_CHARS = 32


class CommandOutput(NamedTuple):
    """Lines to show, after `skipped` lines that are not shown. `continues`: the first line replaces the last shown
    line, which was unfinished."""

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

    def feed(self, data: bytes, lines: int, chars: int) -> CommandOutput:
        """Return the newest lines of `data`, at most `lines` and `chars`; the others are counted as skipped.

        The last line may be unfinished; if there is no room for it, it is shown when more of it arrives.
        """
        *ends, partial = data.split(b"\n")
        dropped = max(0, len(ends) - max(0, lines))
        partial_shown = self._shown is not None
        if dropped:
            self._row = _Row()
        texts = [self._finish(end) for end in ends[dropped:]]
        self._row.write(partial)
        # A line that was shown and is empty now was erased.
        unfinished = bool(partial) and len(texts) < lines and bool(self._row.text() or (self._shown and not ends))
        if unfinished:
            texts.append(self._row.text())
        kept = _newest(texts, chars)
        lost = len(texts) - kept
        if ends:
            self._shown = None
        if unfinished and kept:
            self._shown = texts[-1]
        whole = not dropped and not lost
        # A line whose beginning was shown is not skipped, nor is the unfinished line.
        not_skipped = (partial_shown and bool(ends) and not whole) + (unfinished and not kept)
        skipped = dropped + lost - not_skipped
        return CommandOutput(tuple(texts[lost:]), skipped, partial_shown and whole and bool(texts))

    def rest(self) -> CommandOutput:
        """Return the unfinished last line if its current text was not shown."""
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
        text = self._escape + _shortened(self._decode(data, last))
        partial = None if last else _PARTIAL_ESCAPE.search(text)
        self._escape = partial[0] if partial and len(partial[0]) < _ESCAPE_CHARS else ""
        text = text.removesuffix(self._escape)
        at = 0
        for control in _CONTROL.finditer(text):
            self._put(text[at : control.start()])
            self._apply(control[0])
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

    def _apply(self, control: str) -> None:
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


def _shortened(text: str) -> str:
    """Cut a piece that is too long; text before its last carriage return is dropped first, as overwritten."""
    if len(text) <= PIECE_CHARS:
        return text
    before, _, last = text[:-1].rpartition("\r")
    return ("\r" + last + text[-1] if before else text)[:PIECE_CHARS]


def _newest(texts: list[str], chars: int) -> int:
    """Return how many of the last lines fit into `chars` characters."""
    for count, text in enumerate(reversed(texts)):
        chars -= len(text) + 1
        if chars < 0:
            return count
    return len(texts)


class OutputBudget:
    """A token bucket: capacity `most`, refilled at `per_second`."""

    def __init__(self, most: float, per_second: float) -> None:
        self._most = most
        self._per_second = per_second
        self._left = most
        self._then = 0.0

    def at(self, now: float) -> int:
        """Return the amount available at `now` (s, monotonic)."""
        self._left = min(self._most, self._left + self._per_second * max(0.0, now - self._then))
        self._then = now
        return int(self._left)

    def spend(self, amount: float) -> None:
        self._left = max(0.0, self._left - amount)
