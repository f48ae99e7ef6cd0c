"""Reads, replaces, inserts and removes settings of a configuration text in any grammar. Pure.

A grammar locates the statements of a setting and spells values; everything else is done here. Of several statements of
one setting the last counts. All functions raise ConfigError.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import NamedTuple

# A UTF-8 text may begin with it. It is kept, and is not part of the first word.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SPACE = b" \t\r\n\v\f"
# Characters of a value.
VALUE_LIMIT = 4096

Span = tuple[int, int]


class ConfigError(Exception):
    """A configuration text, or a value for it, that cannot be worked with; one line without the file's name. `line` is
    the line of the text, 0 if none. It may quote the text, whose characters are not neutralised yet."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)
        self.reason = reason
        self.line = line


class UndecidedValue(ConfigError):
    """A setting whose value in the text depends on more than the text: the version of the server, the host that is
    requested."""


class ConfigValue(NamedTuple):
    """A setting in a text: `value` (None: not set), its bytes `raw`, the `line`, and the number of its statements."""

    value: str | None
    raw: bytes | None
    line: int
    times: int


NOT_SET = ConfigValue(None, None, 0, 0)


class Statement(NamedTuple):
    """One statement of a setting: its value as text and its span, the span to delete for its removal (None: something
    else is on its line), its line.

    `bare`: a directive without arguments, so that a value has no place there.
    """

    shown: str
    value: Span
    whole: Span | None
    line: int
    bare: bool = False


class Insertion(NamedTuple):
    """The place of a new statement, and the bytes before and after its value."""

    at: int
    before: bytes
    after: bytes


class Location(NamedTuple):
    """The statements of a setting in their order, and the place of the first one in a text without any."""

    found: tuple[Statement, ...]
    insertion: Callable[[], Insertion]


class Grammar(ABC):
    """The configuration language of a kind of server. `sections`: a setting may be in a named section; `keeps_section`:
    an included file has sections of its own, instead of belonging to the section that includes it."""

    sections = True
    keeps_section = False
    # Names that a setting can have.
    names = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
    # Directives that include files.
    including: tuple[str, ...] = ()
    # A value that is a variable, whose form only the server knows; None: the grammar has none.
    variable: re.Pattern[str] | None = None

    @abstractmethod
    def locate(self, text: bytes, name: str, section: str | None) -> Location:
        """The setting in `section`; None: at the top level, or in the only section that has it."""

    @abstractmethod
    def spell(self, value: str, like: bytes | None = None) -> bytes:
        """The bytes of a value, in the quotes of `like`, the bytes it replaces. The value is read back from them."""

    def spell_in(self, text: bytes, name: str, section: str | None, value: str, like: bytes | None) -> bytes:
        """`spell` for grammars of which the text decides how a value is spelled."""
        return self.spell(value, like)

    def refusal(self, name: str, value: str) -> str:
        """The reason if the server would silently take the value for another one; "" if not."""
        return ""

    def coerced(self, text: bytes, name: str, section: str | None) -> str:
        """A note about values that the server silently replaces by others; "" without any."""
        return ""

    def read(self, text: bytes, name: str, section: str | None = None) -> ConfigValue:
        text = text.removeprefix(BYTE_ORDER_MARK)
        found = self.locate(text, name, section).found
        if not found:
            return NOT_SET
        start, end = found[-1].value
        return ConfigValue(found[-1].shown, text[start:end], found[-1].line, len(found))

    def includes(self, text: bytes, section: str | None) -> list[tuple[str, int]]:
        """The paths and patterns that directives in `section` include, with their lines, in the order of the text."""
        found: list[tuple[str, int]] = []
        for name in self.including:
            try:
                statements = self.locate(text, name, section).found
            except ConfigError:
                continue
            found += [(statement.shown.strip("\"'"), statement.line) for statement in statements]
        return sorted(found, key=lambda one: one[1])

    def sections_of(self, text: bytes, names: Collection[str]) -> dict[str, set[str]]:
        """The sections of a text, each with those of the settings that it has. Raises ConfigError."""
        return {}

    def number(self, text: bytes, name: str, section: str | None) -> int | None:
        """The value if it is a number of at most 18 digits; None if not, or if it cannot be read."""
        try:
            value = self.read(text, name, section).value
        except ConfigError:
            return None
        return int(value) if value and value.isdecimal() and len(value) < 19 else None

    def change(self, text: bytes, name: str, raw: bytes | None, section: str | None = None) -> bytes:
        """The text with the setting's bytes replaced by `raw`, inserted if it is not set; None: without the setting."""
        plain = text.removeprefix(BYTE_ORDER_MARK)
        location = self.locate(plain, name, section)
        changed = _removed(plain, name, location) if raw is None else _set(plain, name, location, raw)
        return text[: len(text) - len(plain)] + changed


def _set(text: bytes, name: str, location: Location, raw: bytes) -> bytes:
    if not location.found:
        at, before, after = location.insertion()
        return text[:at] + before + raw + after + text[at:]
    last = location.found[-1]
    if last.bare:
        raise ConfigError(f"{name} has no value; give it one by hand first", last.line)
    return text[: last.value[0]] + raw + text[last.value[1] :]


def _removed(text: bytes, name: str, location: Location) -> bytes:
    if not location.found:
        return text
    if len(location.found) > 1:
        raise ConfigError(f"{name} is set {len(location.found)} times; without the last one, another would count")
    if location.found[0].whole is None:
        raise ConfigError(f"something else is on the line of {name}; remove {name} by hand")
    start, end = location.found[0].whole
    return text[:start] + text[end:]


def checked(value: str, *, may_be_empty: bool = False) -> bytes:
    """The bytes of a value of one line, for any grammar."""
    if value != value.strip() or not (value or may_be_empty):
        raise ConfigError("a value must not be empty, nor begin or end with a space")
    if len(value) > VALUE_LIMIT or not value.isprintable():
        raise ConfigError(f"a value is one line of text, at most {VALUE_LIMIT} characters, without control characters")
    return value.encode()


def check_text(text: bytes) -> None:
    if b"\0" in text:
        raise ConfigError("it contains a NUL byte and is no configuration text")


def excerpt(text: str, limit: int = 120) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def line_number(text: bytes, at: int) -> int:
    """The line of the byte `at`, from 1."""
    return text.count(b"\n", 0, at) + 1


def line_end(text: bytes, at: int) -> int:
    """The end of the line of the byte `at`, line end included."""
    feed = text.find(b"\n", at)
    return len(text) if feed < 0 else feed + 1


def line_ending(text: bytes) -> bytes:
    return b"\r\n" if b"\r\n" in text else b"\n"


def indent_of(text: bytes, at: int) -> bytes:
    """The white space before the byte `at`; b"" if anything else is before it on its line."""
    before = text[text.rfind(b"\n", 0, at) + 1 : at]
    return before if not before.strip() else b""


def deeper(outer: bytes) -> bytes:
    """The indent within a section that is indented by `outer`."""
    return outer + (b"\t" if outer.endswith(b"\t") else b"    ")


def new_line(text: bytes, at: int, before: bytes, after: bytes = b"") -> Insertion:
    """A line of its own at `at`, which is the start of a line or the end of the text."""
    ending = line_ending(text)
    if at and text[at - 1 : at] != b"\n":
        return Insertion(at, ending + before, after)
    return Insertion(at, before, after + ending)


def whole_lines(text: bytes, start: int, end: int) -> Span:
    """The span that removes these lines, with the line end before them if the last one has none."""
    if end == len(text) and not text.endswith(b"\n"):
        start = len(text[:start].removesuffix(b"\n").removesuffix(b"\r"))
    return start, end


class LogicalLine(NamedTuple):
    """A line with those that backslashes join to it. `body` is its content for the server; `start` and `end` (line end
    included) are bytes of the text.

    `pieces` are (position in body, position in text), one for each physical line. `open`: the text ends in the middle
    of a continuation.
    """

    number: int
    start: int
    end: int
    body: bytes
    pieces: tuple[tuple[int, int], ...]
    open: bool

    def position(self, index: int) -> int:
        inside, outside = max(piece for piece in self.pieces if piece[0] <= index)
        return outside + index - inside

    def statement(self, text: bytes, start: int, end: int, shown: str) -> Statement:
        """A statement of this line whose value is body[start:end]."""
        whole = whole_lines(text, self.start, self.end)
        if start >= end:
            at = self.position(start) if start < len(self.body) else self.end
            return Statement("", (at, at), whole, self.number, bare=True)
        return Statement(shown, (self.position(start), self.position(end - 1) + 1), whole, self.number)


def last_line(text: bytes, last: LogicalLine | None, before: bytes) -> Insertion:
    """A line of its own at the end of a text whose last logical line is `last`."""
    if last and (last.open or last.body.endswith((b"\\", b"\r"))):
        raise ConfigError("it ends in a backslash or a carriage return, so nothing can be added at its end")
    return new_line(text, len(text), before)
