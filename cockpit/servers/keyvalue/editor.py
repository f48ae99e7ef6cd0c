r"""Locate and encode the keys of a file of `KEY=value` lines. Pure.

There are two grammars, chosen by the whole text: shell assignments (`export JAVA_OPTS="-Xmx512m $MORE"`, as in
/etc/default), and plain lines with or without ini sections (`vm.swappiness = 10`, `[mysqld]`).

A value of a shell assignment is displayed without its quotes and backslashes. New values cannot run code: `$`,
backticks and quotes are escaped, except variables that the old value contains.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cockpit.servers.editing import (
    ConfigError,
    ConfigText,
    Grammar,
    Insertion,
    Location,
    Statement,
    TextSpan,
    encode_line,
    excerpt,
)
from cockpit.servers.keyvalue import plain_grammar, shell_grammar
from cockpit.servers.keyvalue.plain_grammar import PlainText
from cockpit.servers.keyvalue.shell_grammar import ShellText

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:*-]*")
_BARE = re.compile(rb"[A-Za-z0-9_@%+=:,./-]+")
_VARIABLE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})")
# An expansion other than a variable.
_EXPANSION = re.compile(r"\$(?=[0-9{#?$!@*-])(?!\{[A-Za-z_][A-Za-z0-9_]*\})")
_SPACED = re.compile(rb"^[ \t]*-?[\w./]+[ \t]+=", re.MULTILINE)
# An EnvironmentFile of systemd, in which a quote inside of an unquoted value is a character.
_UNQUOTED = re.compile(
    rb"(?:[ \t]*+(?:[#;][^\n]*+|[A-Za-z_]\w*+="
    rb"(?:[^\s'\"\\][^\\\n]*+|'[^'\n]*+'|\"[^\"\\\n]*+\")?+[ \t]*+)?+\r?(?:\n|$))*+"
)
_COMMENTED = "versions of systemd before 254 read the line as part of the comment above it"
_EXPORT = re.compile(rb"[ \t]*(?:(?:export|readonly|declare|typeset)[ \t]+(?:-\w+[ \t]+)*)?")


class KeyValueGrammar(Grammar):
    """The last line that sets a key counts. `section` is an ini section; "": before the first section; None: the only
    section that contains the key."""

    names = _KEY

    def locate(self, text: ConfigText, name: str, section: str | None) -> Location:
        parsed = _parsed(text, name, section)
        statements = tuple(_statement(text, name, line, parsed) for line in parsed.lines)
        return Location(statements, lambda: _insertion(text, name, section, parsed))

    def encode(self, value: str, like: bytes | None = None) -> bytes:
        raw = encode_line(value)
        if raw[:1] in (b"#", b";") or raw.endswith(b"\\"):
            raise ConfigError("a value must not start with # or ;, or end in a backslash")
        return raw

    def encode_in(self, text: bytes, name: str, section: str | None, value: str, like: bytes | None) -> bytes:
        shell = _parsed(ConfigText(text), name, section).shell is not None
        return quote_for_shell(value, like) if shell else self.encode(value, like)


def quote_for_shell(value: str, like: bytes | None = None) -> bytes:
    """Quote the value for a shell. Raises ConfigError if the old value is the output of a command."""
    raw = encode_line(value, may_be_empty=True)
    kept = _variables(like)
    if like and like.startswith(b"'") and not kept:
        return b"'" + raw.replace(b"'", b"'\\''") + b"'"
    if _BARE.fullmatch(raw) and not (like and like.startswith(b'"')):
        return raw
    return b'"' + _escaped(value, kept) + b'"'


class _KeyLine(NamedTuple):
    """The line of a key from `start` to `end` (line end included), the span of its value, and its section (None: before
    the first one). `refused` is the reason why the value cannot be read or changed here. `ignored`: other lines count,
    if there are any."""

    start: int
    end: int
    value: tuple[int, int]
    section: str | None = None
    append: bool = False
    refused: str = ""
    ignored: bool = False


class _Text(NamedTuple):
    """A parsed text: either `shell` or `plain` is set, by its grammar. `lines` are those of the key."""

    lines: list[_KeyLine]
    shell: ShellText | None
    plain: PlainText | None


def _variables(like: bytes | None) -> frozenset[str]:
    """Return the variables in the old value. Raises ConfigError if it is the output of a command."""
    text, active = _unquoted(like or b"")
    if "$(" in active or "`" in active:
        raise ConfigError("the value is the output of a command; change it by hand")
    if _EXPANSION.search(active):
        raise ConfigError("the value has an expansion that is not only a variable; change it by hand")
    variables = _VARIABLE.findall(active)
    if variables != [name for name in _VARIABLE.findall(text) if name in variables]:
        raise ConfigError("quotes around a part of the value decide what is a variable; change it by hand")
    return frozenset(variables)


def _escaped(value: str, kept: frozenset[str]) -> bytes:
    """Escape the value for double quotes, except the variables `kept`."""
    parts = []
    at = 0
    while at < len(value):
        variable = _VARIABLE.match(value, at)
        if variable and variable[0] in kept:
            parts.append(variable[0])
            at = variable.end()
            continue
        parts.append("\\" + value[at] if value[at] in '\\"$`' else value[at])
        at += 1
    return "".join(parts).encode()


def _parsed(text: ConfigText, key: str, section: str | None) -> _Text:
    if not _KEY.fullmatch(key):
        raise ConfigError(f"{excerpt(key, 80)!r} is not a valid key")
    shell = _as_shell(text) if _IDENTIFIER.fullmatch(key) else None
    if shell:
        if section is not None:
            raise ConfigError(f"no section [{excerpt(section, 80)}]: the file has no sections")
        _check_lines(text, key, shell)
        lines = [_in_shell(text, assignment) for assignment in shell.assignments if assignment.name == key.encode()]
        return _Text(_effective(text, key, lines), shell, None)
    plain = plain_grammar.parse(text)
    lines = _in_section(text, key, section, plain, _in_plain(text, key, plain))
    return _Text(_effective(text, key, lines), None, plain)


def _check_lines(text: ConfigText, key: str, shell: ShellText) -> None:
    """Raise ConfigError if an expansion such as `${KEY:=9}` sets the key, or if a value over several lines is one for a
    shell, and several ones for systemd or for some of its versions."""
    signs = (b"${%b=" % key.encode(), b"${%b:=" % key.encode())
    for number, line in enumerate(text.split(b"\n"), 1):
        if any(sign in line for sign in signs) and not line.lstrip().startswith(b"#"):
            raise ConfigError(f"{key} depends on a condition or a command; change it by hand", number)
    for assignment in shell.assignments:
        raw = text[slice(*assignment.value)]
        if not assignment.is_computed and b"\n" in raw.replace(b"\\\n", b"") and raw[:1] not in (b"'", b'"'):
            reason = "only a shell reads the next lines as part of it; change it by hand"
            raise text.error(reason, assignment.start)
    for start, _ in shell.blocks:
        if _is_below_comment(text, text.line_start(start)):
            raise text.error(f"{_COMMENTED}; change it by hand", start)


def _is_below_comment(text: ConfigText, at: int) -> bool:
    """Return whether the line before `at` is a comment that ends in a backslash."""
    line = text[text.line_start(max(0, at - 1)) : at].strip()
    return line[:1] in (b"#", b";") and line.endswith(b"\\")


def _as_shell(text: ConfigText) -> ShellText | None:
    """Parse the text as shell assignments; None if it consists of plain lines. Raises ConfigError if it is neither."""
    if plain_grammar.SECTION.search(text):
        return None
    try:
        shell = shell_grammar.parse(text)
    except ConfigError:
        if _SPACED.search(text) or _UNQUOTED.fullmatch(text):
            return None
        raise
    spaced = [match for match in _SPACED.finditer(text) if not any(a <= match.start() < b for a, b in shell.blocks)]
    return None if spaced else shell


def _in_shell(text: ConfigText, assignment: shell_grammar.ShellAssignment) -> _KeyLine:
    start = text.line_start(assignment.start)
    end = text.line_end(assignment.value[1])
    refused = "its value is an array or the output of a command" if assignment.is_computed else ""
    if assignment.is_prefix:
        return _KeyLine(start, end, assignment.value, refused="it is set for one command only", ignored=True)
    if assignment.is_conditional:
        refused = "it depends on a condition or a command"
    return _KeyLine(start, end, assignment.value, None, assignment.append, refused)


def _in_plain(text: ConfigText, key: str, plain: PlainText) -> list[_KeyLine]:
    names = {key, key.replace("/", "."), key.replace(".", "/")}
    lines = []
    for line in plain.lines:
        if line.key.decode("utf-8", "replace") in names:
            refused = "it is inside a quoted value, or a quote is never closed" if line.quoted else ""
            if line.is_multiline:
                refused = "its value spans several lines"
            lines.append(_KeyLine(line.start, line.end, line.value, line.section, line.append, refused))
    return lines


def _in_section(
    text: ConfigText, key: str, section: str | None, plain: PlainText, lines: list[_KeyLine]
) -> list[_KeyLine]:
    """Return the lines in the section. Raises ConfigError if it does not exist, or if the section is None and several
    sections contain the key."""
    places = {line.section: f"{_header(line.section)} (line {text.line_number(line.value[0])})" for line in lines}
    if section is None:
        if len(places) > 1:
            each = " and ".join(places.values())
            example = excerpt(lines[-1].section or "", 80)
            raise ConfigError(f'{key} is in {each}; set the section of the knob, e.g. section = "{example}"')
        return lines
    place = section or None
    if place is not None and place not in plain.sections:
        known = ", ".join(_header(name) for name in plain.sections) or "none"
        raise ConfigError(f"no section {_header(place)}; its sections: {known}")
    return [line for line in lines if line.section == place]


def _header(section: str | None) -> str:
    return "the part before the first section" if section is None else f"[{excerpt(section, 80)}]"


def _effective(text: ConfigText, key: str, lines: list[_KeyLine]) -> list[_KeyLine]:
    """Return the lines that set the key. Raises ConfigError if the last one cannot be changed."""
    effective = [line for line in lines if not line.ignored] or lines
    if not effective:
        return []
    last = effective[-1]
    line = text.line_number(last.value[0])
    if last.append:
        raise ConfigError(f"{key}+= adds to its value; change it by hand", line)
    refused = last.refused
    if _is_below_comment(text, last.start):
        refused = _COMMENTED
    if refused:
        raise ConfigError(f"{key}: {refused}; change it by hand", line)
    return [line for line in effective if not line.refused]


def _check_grammar(text: ConfigText, key: str, parsed: _Text) -> None:
    """Raise ConfigError if the text contains lines of another grammar."""
    at = parsed.shell.unknown if parsed.shell else parsed.plain.unknown if parsed.plain else None
    if at is not None:
        line = excerpt(text.shown(at, text.line_stop(at)).strip(), 60)
        raise text.error(f"cannot add {key}: {line!r} is not a KEY=value line; add {key} by hand first", at)


def _insertion(text: ConfigText, key: str, section: str | None, parsed: _Text) -> Insertion:
    _check_grammar(text, key, parsed)
    at, spaced = len(text), parsed.shell is None
    if parsed.plain and parsed.plain.sections:
        if section is None:
            known = ", ".join(_header(name) for name in parsed.plain.sections)
            raise ConfigError(f"{key} is not set; name a section in the knob to add it: {known}")
        at = parsed.plain.section_ends[section or None]
        lines = [line for line in parsed.plain.lines if line.section == (section or None)]
        spaced = not lines or text[lines[-1].value[0] - 1 : lines[-1].value[0]] in (b" ", b"\t")
    if text[:at].endswith((b"\\\n", b"\\")):
        raise ConfigError("the file or section ends in a backslash; add a line feed at its end first")
    return text.new_line(at, key.encode() + (b" = " if spaced else b"="))


def _unquoted(raw: bytes) -> tuple[str, str]:
    """Remove the quoting of a shell word. Return the text, and the text in which NUL replaces quotes, `$` and backticks
    that are characters, so that the others are active."""
    out, active = bytearray(), bytearray()
    quote, at = 0, 0
    while at < len(raw):
        byte, following = raw[at], raw[at + 1 : at + 2]
        if byte == quote or (not quote and byte in b"\"'"):
            quote = 0 if quote else byte
            active.append(0)
        elif byte == 0x5C and quote != 0x27 and following and (not quote or following in b'$`"\\\n'):
            escaped = b"" if following == b"\n" else following
            out += escaped
            active += b"\0" if escaped in (b"$", b"`") else escaped
            at += 1
        else:
            out.append(byte)
            active.append(0 if byte in b"$`" and quote == 0x27 else byte)
        at += 1
    return out.decode("utf-8", "backslashreplace"), active.decode("utf-8", "backslashreplace")


def _statement(text: ConfigText, key: str, line: _KeyLine, parsed: _Text) -> Statement:
    shown = _unquoted(text[slice(*line.value)])[0] if parsed.shell else text.shown(*line.value)
    return Statement(shown, line.value, _removal(text, key, line), text.line_number(line.value[0]))


def _removal(text: ConfigText, key: str, line: _KeyLine) -> TextSpan | None:
    """Return the span to delete: the line of the key; None if it contains other text."""
    name = text.rfind(key.encode(), line.start, line.value[0])
    before = text[line.start : line.value[0] if name < 0 else name]
    if text[line.value[1] : line.end].strip() or not (name < 0 or _EXPORT.fullmatch(before) or before.strip() == b"-"):
        return None
    return text.whole_lines(line.start, line.end)
