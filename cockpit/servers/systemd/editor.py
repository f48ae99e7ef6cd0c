"""Locate and encode the settings of `[Service]` in a unit's file or drop-in. Pure.

A name in mixed case is a property (`TasksMax=9`), a name in capitals an environment variable
(`Environment="THREADS=9"`), a name that starts with `-` an option of ExecStart (`--threads 9` or `--threads=9`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from cockpit.servers.command_line import PLAIN, join_lines
from cockpit.servers.editing import ConfigError, ConfigText, Insertion, Location, Statement, TextSpan, encode_line
from cockpit.servers.ini import IniGrammar

_SECTION = "Service"
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{1,60}")
_ASSIGNMENTS, _COMMAND = "Environment", "ExecStart"
# Words of Environment=; a word, or a part of it, can be quoted.
_WORD = re.compile(rb"(?:\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|\\.|[^\s\"'\\])+")
_QUOTE = (b'"', b"'")
_SEPARATORS = bytes.maketrans(b"\"'=", b"   ")
# Characters that start an escape or a specifier, or end a quoted word.
_SPECIAL = frozenset("\"'\\%")


class UnitGrammar(IniGrammar):
    """`[Service]` is added to a file without it. Comments are separate lines, also between the lines of a value."""

    names = re.compile(rf"[A-Z][A-Za-z]{{1,60}}|{_VARIABLE.pattern}|--?[a-z][a-z0-9-]{{0,60}}")
    sections = False
    comments = b""

    def locate(self, text: ConfigText, name: str, section: str | None) -> Location:
        plain = join_lines(text)
        try:
            location = self._located(plain, name)
        except ConfigError as error:
            raise ConfigError(error.reason, _numbers(text, plain)[error.line]) from None
        numbers = _numbers(text, plain)
        statements = (each._replace(line=numbers[each.line]) for each in location.statements)
        return Location(tuple(statements), location.insertion)

    def _located(self, text: ConfigText, name: str) -> Location:
        if name.startswith("-"):
            return self._option(text, name)
        return self._variable(text, name) if _VARIABLE.fullmatch(name) else self._property(text, name)

    def encode_in(self, text: bytes, name: str, section: str | None, value: str, like: bytes | None) -> bytes:
        if name.startswith("-"):
            return _plain(value, "on a command line")
        if not _VARIABLE.fullmatch(name):
            return self.encode(value, like)
        if _SPECIAL.intersection(value):
            raise ConfigError("the value of a variable must not contain a quote, a backslash or a percent sign")
        statements = self.locate(ConfigText(text), name, section).statements
        quoted = not statements or text[statements[-1].value[1] : statements[-1].value[1] + 1] in _QUOTE
        return encode_line(value) if quoted else _plain(value, "without quotes")

    def _property(self, text: ConfigText, name: str) -> Location:
        try:
            location = super().locate(text, name, _SECTION)
        except ConfigError:
            if text.find(b"[") >= 0:
                raise
            return Location((), lambda: text.new_line(len(text), f"[{_SECTION}]\n{name}=".encode()))
        return Location(location.statements, lambda: _compact(location.insertion(), name))

    def _option(self, text: ConfigText, name: str) -> Location:
        commands = self._property(text, _COMMAND).statements
        if not commands:
            raise ConfigError("the file has no ExecStart")
        line = commands[-1].value
        words = [statements.span() for statements in _WORD.finditer(text, *line)]
        statements = tuple(_option_statements(text, words, name))
        if not statements and name.encode() in text[slice(*line)].translate(_SEPARATORS).split():
            raise text.error(f"the value of {name} has quotes or variables; change it by hand", line[0])

        def insertion() -> Insertion:
            raise text.error(f"ExecStart has no {name}; add it by hand", line[0])

        return Location(statements, insertion)

    def _variable(self, text: ConfigText, name: str) -> Location:
        lines = self._property(text, _ASSIGNMENTS)
        # An empty assignment discards the previous ones.
        last = max((at for at, line in enumerate(lines.statements) if line.has_no_value), default=-1)
        statements = tuple(
            statement for line in lines.statements[last + 1 :] for statement in _assignments(text, line, name)
        )

        def insertion() -> Insertion:
            at, before, after = lines.insertion()
            return Insertion(at, before + f'"{name}='.encode(), b'"' + after)

        return Location(statements, insertion)


def _numbers(text: ConfigText, plain: bytes) -> list[int]:
    """Return the line of `text` at which each line of `plain` starts, from 1; 0 for no line."""
    starts = [0, *(match.end() for match in re.finditer(b"\n", plain))]
    counts = (text.count(b"\n", before, start) for before, start in zip([0, *starts], starts, strict=False))
    return [0, *(1 + feeds for feeds in itertools.accumulate(counts))]


def _compact(place: Insertion, name: str) -> Insertion:
    """Remove the spaces around `=`, as in systemd's manual."""
    return place._replace(before=place.before.removesuffix(f"{name} = ".encode()) + f"{name}=".encode())


def _plain(value: str, where: str) -> bytes:
    raw = encode_line(value)
    if not PLAIN.fullmatch(raw):
        raise ConfigError(f"a value {where} must not contain a space, a quote or a variable")
    return raw


def _assignments(text: ConfigText, line: Statement, name: str) -> Iterator[Statement]:
    """Yield the assignments of a variable on a line of Environment=. Raises ConfigError if one cannot be read."""
    start, end = line.value
    every = [match.span() for match in _WORD.finditer(text, start, end)]
    if name.encode() in text[start:end] and not _are_words(text, every, line.value):
        raise ConfigError("a quote in Environment= is never closed; change it by hand", line.line)
    for first, last in every:
        inner = _unquoted(text, first, last)
        if not text.startswith(f"{name}=".encode(), inner[0], inner[1]):
            continue
        value = _unquoted(text, inner[0] + len(name) + 1, inner[1])
        shown = text.shown(*value)
        if _SPECIAL.intersection(shown):
            raise ConfigError(f"the value of {name} has quotes or escapes; change it by hand", line.line)
        whole = line.removal_span if len(every) == 1 else _word_and_space(text, (first, last), (start, end))
        yield Statement(shown, value, whole, line.line)


def _unquoted(text: ConfigText, start: int, end: int) -> TextSpan:
    """Return the span between the quotes of a word that is quoted as a whole."""
    quote = text[start : start + 1]
    is_quoted = quote in _QUOTE and end - start > 1 and text.find(quote, start + 1) == end - 1
    return (start + 1, end - 1) if is_quoted else (start, end)


def _are_words(text: ConfigText, every: list[TextSpan], line: TextSpan) -> bool:
    ends = [line[0], *(end for _, end in every)]
    starts = [*(start for start, _ in every), line[1]]
    return not any(text[end:start].strip() for end, start in zip(ends, starts, strict=True))


def _word_and_space(text: ConfigText, word: TextSpan, line: TextSpan) -> TextSpan:
    """Return the span of the word and the space that separates it from the previous or next word."""
    start, end = word
    if start > line[0]:
        return start - 1, end
    rest = text[end : line[1]]
    return start, line[1] - len(rest.lstrip())


def _option_statements(text: ConfigText, every: list[TextSpan], name: str) -> Iterator[Statement]:
    option = name.encode()
    for at, (start, end) in enumerate(every):
        word = text[start:end]
        if word.startswith(option + b"="):
            value = (start + len(option) + 1, end)
        elif word == option and at + 1 < len(every):
            value = every[at + 1]
        else:
            continue
        if not PLAIN.fullmatch(text, *value):
            raise text.error(f"the value of {name} has quotes or variables; change it by hand", start)
        alone = text[start - 1 : start] in (b" ", b"\t")
        whole = (start - 1, value[1]) if alone else None
        yield Statement(text[slice(*value)].decode(), value, whole, text.line_number(start))
