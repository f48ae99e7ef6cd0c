"""Locate and encode the settings of an ini file. Pure.

A setting is a line `key = value` below the header `[name]` of its section. An unquoted value ends before a comment. If
a key is set several times, the last line counts. Included files start outside of all sections.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from cockpit.servers.editing import (
    ConfigError,
    Grammar,
    Location,
    Span,
    Statement,
    check_text,
    encode_line,
    excerpt,
    line_end,
    line_number,
    new_line,
    whole_lines,
)

_HEADER = re.compile(rb"\[([^\[\]\n]{1,200})\]")
_KEY = re.compile(rb"[ \t]*([^\s=#;\[\]]{1,200}(?:\[[^\s\]]{0,200}\])?)[ \t]*=[ \t]*")
_QUOTED = re.compile(rb"\"[^\"\n]*\"|'[^'\n]*'")
_PLAIN = re.compile(rb"[^\s\"'#;=]+(?: [^\s\"'#;=]+)*")


class IniLine(NamedTuple):
    """A setting from `start` to `end` (line end included), the span of its value, and its section ("": none)."""

    start: int
    end: int
    key: str
    value: Span
    section: str


class IniText(NamedTuple):
    """The settings, and the end of each section, where a new line is inserted."""

    lines: list[IniLine]
    ends: dict[str, int]


class IniGrammar(Grammar):
    """`comments` are the bytes that start a comment after a value. If `section` is None, the only section that contains
    the key is used."""

    names = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*(?:\[[A-Za-z0-9_.-]+\])?")
    keeps_section = True
    comments = b";"

    def same_key(self, one: str, other: str) -> bool:
        return one == other

    def counts(self, section: str, key: str, wanted: str) -> bool:
        """Return whether a line of `section` applies to the knob's section, `wanted`. Raises ConfigError if that cannot
        be decided by the text."""
        return section == wanted

    def locate(self, text: bytes, name: str, section: str | None) -> Location:
        parsed = _parsed(text, self.comments)
        named = [line for line in parsed.lines if self.same_key(line.key, name)]
        wanted = section if section is not None else _only_section(name, named)
        found = tuple(_statement(text, line) for line in named if self.counts(line.section, name, wanted))
        if wanted not in parsed.ends:
            if not found:
                known = ", ".join(f"[{excerpt(header, 80)}]" for header in parsed.ends if header) or "none"
                raise ConfigError(f"no section [{excerpt(wanted, 80)}]; its sections: {known}")
            return Location(found, lambda: new_line(text, len(text), b""))
        return Location(found, lambda: new_line(text, parsed.ends[wanted], name.encode() + b" = "))

    def includes(self, text: bytes, section: str | None) -> list[tuple[str, int]]:
        lines = [line for line in _parsed(text, self.comments).lines if line.key in self.including]
        return [
            (statement.shown.strip("\"'"), statement.line) for statement in (_statement(text, line) for line in lines)
        ]

    def spell(self, value: str, like: bytes | None = None) -> bytes:
        raw = encode_line(value)
        if raw[:1] in (b'"', b"'"):
            if not _QUOTED.fullmatch(raw):
                raise ConfigError("a value must not contain an unclosed quote")
            return raw
        if _PLAIN.fullmatch(raw):
            return raw
        if b'"' in raw:
            raise ConfigError("a value must not contain a double quote")
        return b'"' + raw + b'"'


def _only_section(name: str, named: list[IniLine]) -> str:
    sections = list(dict.fromkeys(line.section for line in named))
    if len(sections) > 1:
        each = " and ".join(f"[{excerpt(section, 80)}]" for section in sections)
        example = excerpt(sections[-1], 80)
        raise ConfigError(f"{name} is in {each}; set the section of the knob, e.g. section = '{example}'")
    return sections[0] if sections else ""


def _parsed(text: bytes, comments: bytes) -> IniText:
    check_text(text)
    return IniText(list(_lines(text, comments, ends := {"": 0})), ends)


def _lines(text: bytes, comments: bytes, ends: dict[str, int]) -> Iterator[IniLine]:
    """Yield the settings, and record the end of each section in `ends`."""
    at, section = 0, ""
    while at < len(text):
        start, at = at, line_end(text, at)
        line = text[start:at].strip()
        if header := _HEADER.match(line):
            section = header[1].strip().decode("utf-8", "backslashreplace")
        elif not line or line[:1] in b"#;":
            continue
        elif match := _KEY.match(text, start, at):
            end = _value_end(text, match.end(), at, comments)
            yield IniLine(start, at, match[1].decode("utf-8", "backslashreplace"), (match.end(), end), section)
        ends[section] = at


def _value_end(text: bytes, start: int, end: int, comments: bytes) -> int:
    """Return the end of the value that begins at `start`, before a comment and trailing white space."""
    at = start
    while at < end and text[at] not in comments:
        quoted = _QUOTED.match(text, at, end)
        at = quoted.end() if quoted else at + 1
    return start + len(text[start:at].rstrip())


def _statement(text: bytes, line: IniLine) -> Statement:
    start, end = line.value
    shown = text[start:end].decode("utf-8", "backslashreplace")
    return Statement(shown, line.value, whole_lines(text, line.start, line.end), line_number(text, start), start == end)
