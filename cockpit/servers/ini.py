"""Locate and encode the settings of an ini file. Pure.

A setting is a line `key = value` below the header `[name]` of its section. An unquoted value ends before a comment. If
a key is set several times, the last line counts. Included files start outside of all sections.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from cockpit.servers.editing import (
    AmbiguousValue,
    ConfigError,
    ConfigText,
    Grammar,
    Location,
    Statement,
    TextSpan,
    encode_line,
    excerpt,
    only_section,
)

_HEADER = re.compile(rb"\[([^\[\]\n]{1,200})\]")
_KEY = re.compile(rb"[ \t]*([^\s=#;\[\]]{1,200}(?:\[[^\s\]]{0,200}\])?)[ \t]*=[ \t]*")
_QUOTED = re.compile(rb"\"[^\"\n]*\"|'[^'\n]*'")
_QUOTED_LINES = re.compile(rb"\"(?:\\.|[^\"\\])*\"|'[^']*'", re.DOTALL)
_PLAIN = re.compile(rb"[^\s\"'#;=]+(?: [^\s\"'#;=]+)*")


class IniLine(NamedTuple):
    """A setting from `start` to `end` (line end included), the span of its value, and its section ("": none)."""

    start: int
    end: int
    key: str
    value: TextSpan
    section: str


class IniText(NamedTuple):
    """The settings, and the end of each section, where a new line is inserted."""

    lines: list[IniLine]
    section_ends: dict[str, int]


class IniGrammar(Grammar):
    """`comments` are the bytes that start a comment after a value. A quoted value can span `several_lines`. If
    `section` is None, the only section that contains the key is used."""

    names = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*(?:\[[A-Za-z0-9_.-]+\])?")
    keeps_section = True
    comments = b";"
    several_lines = False

    def same_key(self, key: str, name: str) -> bool:
        return key == name

    def counts(self, section: str, key: str, wanted: str) -> bool:
        """Return whether a line of `section` applies to the knob's section, `wanted`. Raises ConfigError if that cannot
        be decided by the text."""
        return section == wanted

    def locate(self, text: ConfigText, name: str, section: str | None) -> Location:
        parsed = self.parse(text)
        lines = [line for line in parsed.lines if self.same_key(line.key, name)]
        place = section if section is not None else only_section(name, [line.section for line in lines], "[{}]") or ""
        statements = tuple(_statement(text, line) for line in lines if self._counts(text, line, place))
        if place not in parsed.section_ends:
            if not statements:
                known = ", ".join(f"[{excerpt(header, 80)}]" for header in parsed.section_ends if header) or "none"
                raise ConfigError(f"no section [{excerpt(place, 80)}]; its sections: {known}")
            return Location(statements, lambda: text.new_line(len(text), b""))
        return Location(statements, lambda: text.new_line(parsed.section_ends[place], name.encode() + b" = "))

    def _counts(self, text: ConfigText, line: IniLine, wanted: str) -> bool:
        try:
            return self.counts(line.section, line.key, wanted)
        except AmbiguousValue as error:
            raise AmbiguousValue(error.reason, text.line_number(line.start)) from None

    def parse(self, text: ConfigText) -> IniText:
        return IniText(list(_lines(text, self.comments, self.several_lines, section_ends := {"": 0})), section_ends)

    def includes(self, text: bytes, section: str | None) -> list[tuple[str, int]]:
        plain = ConfigText(text)
        statements = (_statement(plain, line) for line in self.parse(plain).lines if line.key in self.including)
        return [(statement.shown.strip("\"'"), statement.line) for statement in statements]

    def encode(self, value: str, like: bytes | None = None) -> bytes:
        raw = encode_line(value)
        if raw[:1] in (b'"', b"'"):
            if not _QUOTED.fullmatch(raw):
                raise ConfigError("a value must not contain an unclosed quote")
            return raw
        if _PLAIN.fullmatch(raw):
            return raw
        if raw.count(b'"'):
            raise ConfigError("a value must not contain a double quote")
        return b'"' + raw + b'"'


def _lines(text: ConfigText, comments: bytes, several_lines: bool, section_ends: dict[str, int]) -> Iterator[IniLine]:
    """Yield the settings, and record the end of each section in `section_ends`."""
    at, section = 0, ""
    while at < len(text):
        start, at = at, text.line_end(at)
        line = text[start:at].strip()
        if header := _HEADER.match(line):
            section = header[1].strip().decode("utf-8", "backslashreplace")
        elif not line or line[:1] in b"#;":
            continue
        elif match := _KEY.match(text, start, at):
            end = _value_end(text, match.end(), at, comments, several_lines)
            at = text.line_end(end) if end > at else at
            yield IniLine(start, at, match[1].decode("utf-8", "backslashreplace"), (match.end(), end), section)
        section_ends[section] = at


def _value_end(text: ConfigText, start: int, end: int, comments: bytes, several_lines: bool) -> int:
    """Return the end of the value that begins at `start`, before a comment and trailing white space."""
    at = start
    while at < end and text[at] not in comments:
        part = _QUOTED_LINES.match(text, at) if several_lines else _QUOTED.match(text, at)
        if several_lines and not part and text[at] in b"\"'":
            raise text.error("a quote is never closed", at)
        at = part.end() if part else at + 1
        end = text.line_end(at - 1) if at > end else end
    return start + len(text[start:at].rstrip())


def _statement(text: ConfigText, line: IniLine) -> Statement:
    start, end = line.value
    shown = text.shown(start, end)
    return Statement(shown, line.value, text.whole_lines(line.start, line.end), text.line_number(start), start == end)
