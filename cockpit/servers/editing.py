"""Read, replace, insert and remove settings of a configuration text in any grammar. Pure.

A grammar locates the statements of a setting and encodes values; this module does the rest. If a setting has several
statements, the last one counts; a parameter of several lines has the same value in all. All functions raise
ConfigError.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import ClassVar, NamedTuple

# It may precede a UTF-8 text. Edits keep it; the grammars do not see it.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SPACE = b" \t\r\n\v\f"
# Maximum characters of a value.
VALUE_LIMIT = 4096

TextSpan = tuple[int, int]


class ConfigError(Exception):
    """An invalid configuration text or value, described in one line without the file's name. `line` is the line of the
    text, 0 if none. The message may quote the text unescaped: neutralise it before printing."""

    def __init__(self, reason: str, line: int = 0) -> None:
        reason = " ".join(reason.splitlines())
        super().__init__(f"line {line}: {reason}" if line else reason)
        self.reason = reason
        self.line = line


class ConfigText(bytes):
    """A configuration text without a byte order mark. Raises ConfigError if it contains a NUL byte."""

    def __new__(cls, text: bytes) -> ConfigText:
        if b"\0" in text:
            raise ConfigError("not a configuration text: it contains a NUL byte")
        return super().__new__(cls, text.removeprefix(BYTE_ORDER_MARK))

    @property
    def ending(self) -> bytes:
        return b"\r\n" if self.find(b"\r\n") >= 0 else b"\n"

    def error(self, reason: str, at: int) -> ConfigError:
        """Return the error about the line of the byte `at`."""
        return ConfigError(reason, self.line_number(at))

    def line_number(self, at: int) -> int:
        """Return the line number of the byte `at`, from 1."""
        return bisect_left(self._line_feeds, at) + 1

    @cached_property
    def _line_feeds(self) -> list[int]:
        return [match.start() for match in re.finditer(b"\n", self)]

    def line_start(self, at: int) -> int:
        return self.rfind(b"\n", 0, at) + 1

    def line_stop(self, at: int) -> int:
        """Return the position of the line feed after the byte `at`, or the end of the text."""
        feed = self.find(b"\n", at)
        return len(self) if feed < 0 else feed

    def line_end(self, at: int) -> int:
        """Return the end of the line of the byte `at`, line feed included."""
        return min(self.line_stop(at) + 1, len(self))

    def shown(self, start: int, end: int) -> str:
        return self[start:end].decode("utf-8", "backslashreplace")

    def indent_at(self, at: int) -> bytes:
        """Return the white space before the byte `at`; b"" if other text precedes it on the line."""
        before = self[self.line_start(at) : at]
        return before if not before.strip() else b""

    def new_line(self, at: int, before: bytes, after: bytes = b"") -> Insertion:
        """Return the insertion of a separate line at `at`, the start of a line or the end of the text."""
        if at and self[at - 1 : at] != b"\n":
            return Insertion(at, self.ending + before, after)
        return Insertion(at, before, after + self.ending)

    def whole_lines(self, start: int, end: int) -> TextSpan:
        """Return the span that removes these lines, with the line end before them if the last line has none."""
        if end == len(self) and not self.endswith(b"\n"):
            start = len(self[:start].removesuffix(b"\n").removesuffix(b"\r"))
        return start, end


class AmbiguousValue(ConfigError):
    """A setting whose value does not depend on the text alone, but also on the server's version or the requested
    host."""


class ConfigValue(NamedTuple):
    """A setting in a text: its `value` (None: not set) as bytes in `raw`, its `line`, and `times`, the number of
    statements that set it."""

    value: str | None
    raw: bytes | None
    line: int
    times: int


NOT_SET = ConfigValue(None, None, 0, 0)


class Statement(NamedTuple):
    """One statement of a setting: its value as text, the span of the value, and its line. `removal_span` is the span to
    delete when the setting is removed; None: other text shares the line.

    `has_no_value`: a directive without arguments, whose value cannot be replaced.
    """

    shown: str
    value: TextSpan
    removal_span: TextSpan | None
    line: int
    has_no_value: bool = False


class Insertion(NamedTuple):
    """The place of a new statement, and the bytes before and after its value."""

    at: int
    before: bytes
    after: bytes


class Location(NamedTuple):
    """The statements of a setting in file order. `insertion` returns the place of a first statement."""

    statements: tuple[Statement, ...]
    insertion: Callable[[], Insertion]


class Parameter(NamedTuple):
    """A setting that is a word in the arguments of each line of a directive that contains the word `among`.

    `is_flag`: it is on if the word is present, else off; otherwise the next word is its value.
    """

    directive: str
    word: str
    among: str
    is_flag: bool = False

    def locate(self, text: ConfigText, words: Sequence[TextSpan], line: int) -> Location | None:
        """Locate it in a line with these arguments, the first of which is an address. None: the line cannot have it."""
        arguments = [text.shown(*word) for word in words]
        if self.among not in arguments[1:]:
            return None
        if (times := arguments[1:].count(self.word)) > 1:
            raise ConfigError(f"{self.word} is set {times} times; change it by hand", line)
        end = words[-1][1]
        if not times:
            before = " " if self.is_flag else f" {self.word} "
            return Location((), lambda: Insertion(end, before.encode(), b""))
        at = arguments.index(self.word, 1)
        value = words[at] if self.is_flag else words[at + 1] if at + 1 < len(words) else (end, end)
        shown = "on" if self.is_flag else text.shown(*value)
        statement = Statement(shown, value, (words[at - 1][1], value[1]), line, has_no_value=value == (end, end))
        return Location((statement,), lambda: Insertion(end, b"", b""))


class Grammar(ABC):
    """The configuration language of a kind of server.

    `sections`: settings can be in named sections. `keeps_section`: an included file starts outside of all sections;
    otherwise its content belongs to the section that includes it.
    """

    sections = True
    keeps_section = False
    # Valid names of settings.
    names = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
    # Directives that include files.
    including: tuple[str, ...] = ()
    # Matches a variable, whose value is unknown until the server reads it; None: the grammar has no variables.
    variable: re.Pattern[str] | None = None
    # Settings within the arguments of directives, by their names.
    parameters: ClassVar[Mapping[str, Parameter]] = {}

    @abstractmethod
    def locate(self, text: ConfigText, name: str, section: str | None) -> Location:
        """Locate the setting in `section`; None: at the top level, or in the only section that contains the setting."""

    @abstractmethod
    def encode(self, value: str, like: bytes | None = None) -> bytes:
        """Encode a value, quoted like the bytes that it replaces (`like`). Reading the bytes returns the same value."""

    def encode_in(self, text: bytes, name: str, section: str | None, value: str, like: bytes | None) -> bytes:
        """Encode a value of a setting, also in a grammar whose quoting depends on the text; see `encode`."""
        parameter = self.parameters.get(name)
        if parameter is not None and parameter.is_flag:
            if value not in ("on", "off"):
                raise ConfigError("the value must be on or off")
            return parameter.word.encode() if value == "on" else b""
        raw = self.encode(value, like)
        if parameter is not None and len(self.words(ConfigText(raw), (0, len(raw)))) != 1:
            raise ConfigError("the value must be one word")
        return raw

    def words(self, text: ConfigText, span: TextSpan) -> list[TextSpan]:
        """Return the words in the arguments of a directive, in a grammar with parameters."""
        return []

    def refusal(self, name: str, value: str) -> str:
        """Return why the value is rejected: the server would silently read another one. "" if it is accepted."""
        return ""

    def coerced(self, text: bytes, name: str, section: str | None) -> str:
        """Return a note if the server silently corrects this value or a related one; "" if not."""
        return ""

    def read(self, text: bytes, name: str, section: str | None = None) -> ConfigValue:
        plain = ConfigText(text)
        values = [_value(plain, location) for location in self._locations(plain, name, section)]
        if len({value.raw for value in values}) > 1:
            raise ConfigError(f"{name} differs between {len(values)} lines; change it by hand")
        is_off = values[-1] == NOT_SET and name in self.parameters and self.parameters[name].is_flag
        return ConfigValue("off", b"", 0, 1) if is_off else values[-1]

    def _locations(self, text: ConfigText, name: str, section: str | None) -> list[Location]:
        """Return the location of the setting; of a parameter, one for each line."""
        parameter = self.parameters.get(name)
        if parameter is None:
            return [self.locate(text, name, section)]
        lines = self.locate(text, parameter.directive, section).statements
        located = (parameter.locate(text, self.words(text, line.value), line.line) for line in lines)
        if locations := [location for location in located if location is not None]:
            return locations
        raise ConfigError(f"no line {parameter.directive} with {parameter.among} in this section")

    def includes(self, text: bytes, section: str | None) -> list[tuple[str, int]]:
        """Return the paths and patterns that directives in `section` include, with their lines, in file order."""
        included: list[tuple[str, int]] = []
        for name in self.including:
            with suppress(ConfigError):
                statements = self.locate(ConfigText(text), name, section).statements
                included += [(path, each.line) for each in statements for path in self.paths(each.shown)]
        return sorted(included, key=lambda include: include[1])

    @staticmethod
    def paths(arguments: str) -> list[str]:
        """Return the paths and patterns in the arguments of a directive that includes files."""
        return [arguments.strip("\"'")]

    def sections_of(self, text: bytes, names: Collection[str]) -> dict[str, set[str]]:
        """Map the sections of a text to the settings among `names` that they contain. Raises ConfigError."""
        return {}

    def conditions_of(self, text: bytes, name: str, section: str | None) -> tuple[str, ...]:
        """Return the headers of conditional sections that contain the setting, or its place. Raises ConfigError."""
        return ()

    def number(self, text: bytes, name: str, section: str | None) -> int | None:
        """Return the value if it is a whole number of at most 18 digits, else None."""
        try:
            value = self.read(text, name, section).value
        except ConfigError:
            return None
        return int(value) if value and value.isdecimal() and len(value) < 19 else None

    def change(self, text: bytes, name: str, raw: bytes | None, section: str | None = None) -> bytes:
        """Return the text with the setting's value replaced by `raw`, or inserted. None removes the setting."""
        plain = ConfigText(text)
        changed: bytes = plain
        if name in self.parameters:
            # A flag that is off has no bytes.
            raw = raw or None
        for location in reversed(self._locations(plain, name, section)):
            changed = _removed(changed, name, location) if raw is None else _set(changed, name, location, raw)
        return text[: len(text) - len(plain)] + changed


def values_of(
    grammar: Grammar, text: str, name: str, conditional: Iterable[str] = ()
) -> Iterator[tuple[str | None, str]]:
    """Yield the sections of a text, None for its top level, that set a directive once, with its value; also of these
    `conditional` sections."""
    raw = text.encode()
    try:
        sections = [None, *grammar.sections_of(raw, (name,)), *conditional]
    except ConfigError:
        return
    for section in sections:
        with suppress(ConfigError):
            read = grammar.read(raw, name, section)
            if read.value is not None and read.times == 1:
                yield section, read.value


def _value(text: bytes, location: Location) -> ConfigValue:
    if not location.statements:
        return NOT_SET
    last = location.statements[-1]
    return ConfigValue(last.shown, text[slice(*last.value)], last.line, len(location.statements))


def _set(text: bytes, name: str, location: Location, raw: bytes) -> bytes:
    if not location.statements:
        at, before, after = location.insertion()
        return text[:at] + before + raw + after + text[at:]
    last = location.statements[-1]
    if last.has_no_value:
        raise ConfigError(f"{name} has no value; add a value by hand first", last.line)
    return text[: last.value[0]] + raw + text[last.value[1] :]


def _removed(text: bytes, name: str, location: Location) -> bytes:
    if not location.statements:
        return text
    if len(location.statements) > 1:
        raise ConfigError(
            f"{name} is set {len(location.statements)} times: without the last line, an earlier one counts"
        )
    if location.statements[0].removal_span is None:
        raise ConfigError(f"{name} shares its line with other text; remove {name} by hand")
    start, end = location.statements[0].removal_span
    return text[:start] + text[end:]


def encode_line(value: str, *, may_be_empty: bool = False) -> bytes:
    """Encode a value of one line, for any grammar."""
    if value != value.strip() or not (value or may_be_empty):
        raise ConfigError("a value must not be empty, or begin or end with a space")
    if len(value) > VALUE_LIMIT or not value.isprintable():
        raise ConfigError(f"a value is one line of text, at most {VALUE_LIMIT} characters, without control characters")
    return value.encode()


def only_section(name: str, sections: Sequence[str], header: str = "{}") -> str | None:
    """Return the only section of a setting; None if there is none. Raises ConfigError, which shows each as a `header`,
    if there are several."""
    distinct = [excerpt(section, 80) for section in dict.fromkeys(sections)]
    if len(distinct) > 1:
        each = " and ".join(map(header.format, distinct))
        raise ConfigError(f"{name} is in {each}; set the section of the knob, e.g. section = '{distinct[-1]}'")
    return sections[0] if sections else None


def ends_escaped(text: bytes) -> bool:
    """Return whether the text ends in an odd number of backslashes, which escape the byte after it."""
    return (len(text) - len(text.rstrip(b"\\"))) % 2 == 1


def excerpt(text: str, limit: int = 120) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def nested_indent(outer: bytes) -> bytes:
    """Return the indent inside a section whose header is indented by `outer`."""
    return outer + (b"\t" if outer.endswith(b"\t") else b"    ")


class LogicalLine(NamedTuple):
    """A line with its continuation lines (joined by backslashes). `body` is the joined content; `start` and `end` (line
    end included) are bytes of the text.

    `pieces` are (position in body, position in text), one per physical line. `open`: the text ends inside a
    continuation.
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

    def statement(self, text: ConfigText, start: int, end: int, shown: str) -> Statement:
        """Return the statement of this line whose value is body[start:end]."""
        whole = text.whole_lines(self.start, self.end)
        if start >= end:
            at = self.position(start) if start < len(self.body) else self.end
            return Statement("", (at, at), whole, self.number, has_no_value=True)
        return Statement(shown, (self.position(start), self.position(end - 1) + 1), whole, self.number)


def last_line(text: ConfigText, last: LogicalLine | None, before: bytes) -> Insertion:
    """Return the insertion of a separate line at the end of a text whose last logical line is `last`."""
    if last and (last.open or last.body.endswith((b"\\", b"\r"))):
        raise ConfigError("the file ends in a backslash or a carriage return; add a line feed at its end first")
    return text.new_line(len(text), before)
