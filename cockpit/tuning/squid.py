"""One directive of a squid configuration text: read it, spell a value for it, change it and no other byte. Pure.

A directive is a line: its name, then its arguments; a word that begins with `#` begins a comment, a backslash before a
line's end joins the next line, past blank lines and comments. A comment's own backslash joins nothing. There are no
sections. Of several such directives the last is read and changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cockpit.model.text import neutral
from cockpit.tuning.reading import NOT_THERE, Reading
from cockpit.tuning.syntax import SPACE, ConfigError, LogicalLine


class _Found(NamedTuple):
    """A directive's line; its arguments are body[start:end], empty when there are none."""

    line: LogicalLine
    start: int
    end: int


def read(text: bytes, directive: str) -> Reading:
    """The directive's arguments. Raises ConfigError for what is no configuration text."""
    found = _found(text, directive)
    if not found:
        return NOT_THERE
    line, start, end = found[-1]
    raw = _raw(text, found[-1])
    return Reading(line.body[start:end].decode("utf-8", "backslashreplace"), raw, line.number, len(found))


def change(text: bytes, directive: str, raw: bytes | None) -> bytes:
    """`text` with the directive's arguments replaced by `raw`, added at its end where it is missing, or with its line
    taken out where `raw` is None. Raises ConfigError."""
    found = _found(text, directive)
    if raw is None:
        return _remove(text, directive, found)
    if not found:
        return _add(text, directive.encode() + b" " + raw)
    line, start, end = found[-1]
    if start == end:
        raise ConfigError(f"line {line.number}: {directive} stands there without a value; give it one by hand first")
    return text[: line.position(start)] + raw + text[line.position(end - 1) + 1 :]


def spell(value: str) -> bytes:
    """`value` as it is written after a directive. Raises ConfigError for what would not be read back as it is."""
    if not value or value != value.strip():
        raise ConfigError("a value must not be empty, nor begin or end with a space")
    if neutral(value) != value:
        raise ConfigError("a value is one line of text, at most 4096 characters, without control characters")
    raw = value.encode()
    if raw.endswith(b"\\"):
        raise ConfigError("a value must not end in a backslash: it would join the next line")
    if any(word.startswith(b"#") for word in raw.split()):
        raise ConfigError("it holds a # that would begin a comment")
    return raw


def _found(text: bytes, directive: str) -> list[_Found]:
    if b"\0" in text:
        raise ConfigError("it holds a NUL byte and is no configuration text")
    wanted = directive.encode()
    found = []
    for line in _lines(text):
        name = line.body.split(None, 1)[:1]
        if name != [wanted]:
            continue
        after = line.body.index(wanted) + len(wanted)
        end = len(_uncommented(line.body).rstrip(SPACE))
        start = min(after + len(line.body[after:]) - len(line.body[after:].lstrip(SPACE)), end)
        found.append(_Found(line, start, end) if start >= after else _Found(line, after, after))
    return found


def _lines(text: bytes) -> Iterator[LogicalLine]:
    """The logical lines as squid joins them; their spans cover the text without a gap."""
    start = number = 0
    while start < len(text):
        at, first, body, continued = start, number + 1, b"", True
        pieces: list[tuple[int, int]] = []
        while continued and at < len(text):
            feed = text.find(b"\n", at)
            end = len(text) if feed < 0 else feed + 1
            here = text[at:end].removesuffix(b"\n").removesuffix(b"\r") if feed >= 0 else text[at:end]
            idle = here.lstrip(SPACE)[:1] in (b"", b"#")
            if not pieces or not idle:
                pieces.append((len(body), at))
                body += here
                continued = feed >= 0 and not idle and here.endswith(b"\\")
                body = body[:-1] if continued else body
            at, number = end, number + 1
        yield LogicalLine(first, start, at, body, tuple(pieces), continued)
        start = at


def _uncommented(body: bytes) -> bytes:
    """The line without the comment at its end."""
    for at, byte in enumerate(body):
        if byte == 0x23 and (at == 0 or body[at - 1] in SPACE):
            return body[:at]
    return body


def _raw(text: bytes, found: _Found) -> bytes:
    line, start, end = found
    return text[line.position(start) : line.position(end - 1) + 1] if start < end else b""


def _add(text: bytes, added: bytes) -> bytes:
    last = next(reversed(list(_lines(text))), None)
    if last and (last.open or last.body.endswith((b"\\", b"\r"))):
        raise ConfigError("it ends in a backslash or a carriage return, so nothing can be added at its end")
    ending = b"\r\n" if b"\r\n" in text else b"\n"
    return text + added + ending if not text or text.endswith(b"\n") else text + ending + added


def _remove(text: bytes, directive: str, found: list[_Found]) -> bytes:
    if not found:
        return text
    if len(found) > 1:
        raise ConfigError(f"{directive} stands there {len(found)} times; without the last one another would count")
    line = found[0].line
    start = line.start
    if line.end == len(text) and not text.endswith(b"\n"):
        start = len(text[:start].removesuffix(b"\n").removesuffix(b"\r"))
    return text[:start] + text[line.end :]
