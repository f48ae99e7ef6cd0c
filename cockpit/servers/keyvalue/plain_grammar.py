"""Lines `key = value` of a plain text, with or without ini sections. Pure.

A backslash at the end of a line joins the next line to the value. A value that starts with a quote or a bracket can
extend to the line that closes it. `#` and `;` start a comment only at the start of a line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from cockpit.servers.editing import ConfigText

SECTION = re.compile(rb"^[ \t]*\[([^\s\[\]][^\[\]\n]*)\][ \t]*(?:[#;][^\n]*)?\r?$", re.MULTILINE)
_LINE = re.compile(rb"[ \t]*-?([^\s=#;\[<'\"][^\s=]*?)[ \t]*(\+?)=[ \t]*")
# Valid lines other than `key = value`: a flag (`skip-name-resolve`), an include.
_FLAG = re.compile(rb"[ \t]*(?:[\w.-]+\s*|[!@]\w+[ \t][^\n]*\n?)")


# Opening and closing signs of multi-line values.
_CLOSED_BY = {b'"""': b'"""', b"'''": b"'''", b'"': b'"', b"'": b"'", b"[": b"]", b"{": b"}", b"(": b")"}


class PlainLine(NamedTuple):
    """The line of a key from `start` to `end` (line end included), the span of its value, and its section (None: before
    the first one).

    `append`: `key += value`; `is_multiline`: the value spans several lines; `quoted`: the line is inside a quoted
    value.
    """

    start: int
    end: int
    key: bytes
    value: tuple[int, int]
    section: str | None
    append: bool
    is_multiline: bool
    quoted: bool


class PlainText(NamedTuple):
    """A parsed text. `sections` are in file order; `section_ends` are the positions for a new line per section (None:
    before the first one). `unknown` is the position of the first line of another grammar; None: there is none."""

    lines: tuple[PlainLine, ...]
    sections: tuple[str, ...]
    section_ends: Mapping[str | None, int]
    unknown: int | None


def parse(text: ConfigText) -> PlainText:
    """Parse a text; lines of another grammar are no error."""
    reader = _Reader(text)
    at = 0
    while at < len(text):
        at = reader.read_line(at, text.line_end(at))
    unknown = reader.unknown if reader.unknown is not None or reader.lines else reader.flag
    return PlainText(
        tuple(reader.lines),
        tuple(name for name in reader.section_ends if name is not None),
        reader.section_ends,
        unknown,
    )


class _Reader:
    def __init__(self, text: ConfigText) -> None:
        self.lines: list[PlainLine] = []
        self.section_ends: dict[str | None, int] = {None: 0}
        self.unknown: int | None = None
        self.flag: int | None = None
        self._text = text
        self._section: str | None = None
        self._quoted_until = 0

    def read_line(self, at: int, end: int) -> int:
        """Parse the line that starts at `at`. Return its end, including the lines joined to it."""
        line = self._text[at:end]
        quoted = at < self._quoted_until
        if not line.strip() or line.lstrip()[:1] in b"#;":
            return end
        if not quoted and (header := SECTION.match(self._text, at, end)):
            self._section = header[1].decode("utf-8", "backslashreplace")
        elif match := _LINE.match(self._text, at, end):
            end = self._read_value(at, end, match, quoted)
        elif not quoted:
            self._read_flag(at, line)
        self.section_ends[self._section] = end
        return end

    def _read_value(self, at: int, end: int, match: re.Match[bytes], quoted: bool) -> int:
        text, start = self._text, match.end()
        end = end if quoted else _joined_end(text, start, end)
        value = (start, start + len(text[start:end].rstrip()))
        several = b"\n" in text[value[0] : value[1]]
        closing = 0 if several or quoted else _closing_line(text, start, end)
        self._quoted_until = max(self._quoted_until, closing)
        several = several or bool(closing)
        self.lines.append(PlainLine(at, end, match[1], value, self._section, bool(match[2]), several, quoted))
        return end

    def _read_flag(self, at: int, line: bytes) -> None:
        if not _FLAG.fullmatch(line):
            self.unknown = at if self.unknown is None else self.unknown
        self.flag = at if self.flag is None else self.flag


def _joined_end(text: ConfigText, start: int, end: int) -> int:
    """Return the end of the line, including the lines that backslashes join to it."""
    while end < len(text) and text[start:end].removesuffix(b"\n").removesuffix(b"\r").endswith(b"\\"):
        end = text.line_end(end)
    return end


def _closing_line(text: ConfigText, start: int, end: int) -> int:
    """Return the end of the line that closes the quote or bracket of the value; 0 if the value is closed on the same
    line or nowhere."""
    sign = next((sign for sign in _CLOSED_BY if text.startswith(sign, start, end)), None)
    if sign is None or _CLOSED_BY[sign] in text[start + len(sign) : end]:
        return 0
    closing = text.find(_CLOSED_BY[sign], end)
    return 0 if closing < 0 else text.line_end(closing)
