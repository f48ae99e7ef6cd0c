"""Settings of varnishd on its command line: ExecStart of a systemd unit, or DAEMON_OPTS of a shell file. Pure.

A parameter is `-p NAME=VALUE`; default_ttl also `-t VALUE`; `storage` is `-s VALUE`. New options are appended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cockpit.servers.command_line import PLAIN, command_line, join_lines, words
from cockpit.servers.editing import (
    ConfigError,
    ConfigText,
    Grammar,
    Insertion,
    Location,
    Statement,
    TextSpan,
    encode_line,
)
from cockpit.servers.keyvalue import shell_grammar

# varnishd(1): options with a value.
TAKING = "abEfhIijlMnPprSsTtWx"
_VARIABLE = b"DAEMON_OPTS"
STORAGE = "storage"


class GivenOption(NamedTuple):
    """An option of a command line, which begins at `start`: its letter, its value and the span of the value."""

    letter: str
    value: str
    start: int
    span: TextSpan


class VarnishGrammar(Grammar):
    sections = False

    def locate(self, text: ConfigText, name: str, section: str | None) -> Location:
        if section is not None:
            raise ConfigError("a command line has no sections")
        given, end = given_options(text)
        statements = tuple(_statement(text, *place) for option in given if (place := _setting(option, name)))
        if name == STORAGE and len(statements) > 1:
            raise ConfigError("the command line has several storages; change them by hand", statements[-1].line)
        added = b" -s " if name == STORAGE else f" -p {name}=".encode()
        return Location(statements, lambda: Insertion(end, added, b""))

    def encode(self, value: str, like: bytes | None = None) -> bytes:
        raw = encode_line(value)
        if not PLAIN.fullmatch(raw):
            raise ConfigError("a value on a command line must not contain a space, a quote or a variable")
        return raw


def given_options(text: ConfigText) -> tuple[list[GivenOption], int]:
    """Return the options that a file passes to varnishd, and the end of the last one. Raises ConfigError if only a
    shell could expand them."""
    text = join_lines(text) if command_line(text) else text
    start, end = _command_line(text)
    every = words(text, start, end)
    for first, last in every:
        if not PLAIN.fullmatch(text, first, last):
            raise text.error("varnishd's options contain quotes or variables; change them by hand", first)
    if not every:
        raise ConfigError("the file passes no options to varnishd")
    return list(_options(text, iter(every))), every[-1][1]


def _command_line(text: ConfigText) -> TextSpan:
    """Return the span of the options."""
    if line := command_line(text):
        program = next(iter(words(text, *line)), (0, 0))
        if not text[slice(*program)].lstrip(b"@-:+!").endswith(b"varnishd"):
            raise text.error("ExecStart does not start varnishd directly", line[0])
        return program[1], line[1]
    assignments = [assignment for assignment in shell_grammar.parse(text).assignments if assignment.name == _VARIABLE]
    if not assignments or not assignments[-1].is_plain:
        raise ConfigError("the file has neither ExecStart nor a DAEMON_OPTS with all options")
    start, end = assignments[-1].value
    quoted = end - start > 1 and text[start] == text[end - 1] and text[start] in b"\"'"
    return (start + 1, end - 1) if quoted else (start, end)


def _options(text: ConfigText, words: Iterator[TextSpan]) -> Iterator[GivenOption]:
    """Yield the options, parsed as by getopt(3)."""
    for start, end in words:
        at = start + 1
        while text[start : start + 1] == b"-" and at < end:
            letter = chr(text[at])
            at += 1
            if letter not in TAKING:
                yield GivenOption(letter, "", start, (at, at))
                continue
            span = (at, end) if at < end else next(words, (end, end))
            yield GivenOption(letter, text[slice(*span)].decode(), start, span)
            break


def _setting(option: GivenOption, name: str) -> tuple[int, TextSpan] | None:
    """Return the start of the option and the span of its value, if it sets `name`."""
    if option.letter == {STORAGE: "s", "default_ttl": "t"}.get(name):
        return option.start, option.span
    if option.letter == "p" and option.value.startswith(f"{name}="):
        return option.start, (option.span[0] + len(name) + 1, option.span[1])
    return None


def _statement(text: ConfigText, start: int, value: TextSpan) -> Statement:
    alone = text[start - 1 : start] in (b" ", b"\t")
    return Statement(
        text[slice(*value)].decode(), value, (start - 1, value[1]) if alone else None, text.line_number(start)
    )
