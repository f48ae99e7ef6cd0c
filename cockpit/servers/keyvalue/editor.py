r"""Keys of a file of `KEY=value` lines: located and spelled. Pure.

Two grammars, chosen by the whole text: shell assignments (`export JAVA_OPTS="-Xmx512m $MORE"`, as in
/etc/default), and plain lines, with or without ini sections (`vm.swappiness = 10`, `[mysqld]`).

A shell's value is shown as text, its quotes and backslashes taken away. A text that is written is never run: `$`,
backticks and quotes in it are made harmless, except the variables that the old value already named.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cockpit.servers.editing import (
    ConfigError,
    Grammar,
    Insertion,
    Location,
    Span,
    Statement,
    check_text,
    checked,
    excerpt,
    line_number,
    new_line,
    whole_lines,
)
from cockpit.servers.keyvalue import plain_grammar, shell_grammar
from cockpit.servers.keyvalue.plain_grammar import PlainText
from cockpit.servers.keyvalue.shell_grammar import ShellText

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:*-]*")
_BARE = re.compile(rb"[A-Za-z0-9_@%+=:,./-]+")
_VARIABLE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})")
_SPACED = re.compile(rb"^[ \t]*-?[\w./]+[ \t]+=", re.MULTILINE)
_EXPORT = re.compile(rb"[ \t]*(?:(?:export|readonly|declare|typeset)[ \t]+(?:-\w+[ \t]+)*)?")


class KeyValueGrammar(Grammar):
    """Keys; the last line that sets one counts. `section` is an ini section; "": before the first one; None: the only
    one that has the key."""

    names = _KEY

    def locate(self, text: bytes, name: str, section: str | None) -> Location:
        parsed = _parsed(text, name, section)
        statements = tuple(_statement(text, name, one, parsed) for one in parsed.found)
        return Location(statements, lambda: _insertion(text, name, section, parsed))

    def spell(self, value: str, like: bytes | None = None) -> bytes:
        raw = checked(value)
        if raw[:1] in (b"#", b";") or raw.endswith(b"\\"):
            raise ConfigError("a value must not begin a comment, nor end in a backslash")
        return raw

    def spell_in(self, text: bytes, name: str, section: str | None, value: str, like: bytes | None) -> bytes:
        shell = _parsed(text, name, section).shell is not None
        return spell_for_shell(value, like) if shell else self.spell(value, like)


def spell_for_shell(value: str, like: bytes | None = None) -> bytes:
    """The value as a shell reads it. Raises ConfigError if a command makes up the old value."""
    raw = checked(value, may_be_empty=True)
    kept = _variables(like)
    if like and like.startswith(b"'"):
        return b"'" + raw.replace(b"'", b"'\\''") + b"'"
    if _BARE.fullmatch(raw) and not (like and like.startswith(b'"')):
        return raw
    return b'"' + _escaped(value, kept) + b'"'


class _Found(NamedTuple):
    """The line of a key from `start` to `end` (line end included), its value's span, and its section (None: before
    any). `refused` is the reason if the value cannot be read or changed here."""

    start: int
    end: int
    value: tuple[int, int]
    section: str | None = None
    append: bool = False
    refused: str = ""


class _Text(NamedTuple):
    """A text in its grammar: exactly one of `shell` and `plain` is there. `found` are the lines of the key."""

    found: list[_Found]
    shell: ShellText | None
    plain: PlainText | None


def _variables(like: bytes | None) -> frozenset[str]:
    """The variables that the old value names. Raises ConfigError if it is the output of a command."""
    text, live = _unquoted(like or b"")
    if not live:
        return frozenset()
    if "$(" in text or "`" in text:
        raise ConfigError("a command makes up its value there; change it by hand")
    return frozenset(_VARIABLE.findall(text))


def _escaped(value: str, kept: frozenset[str]) -> bytes:
    """The inside of double quotes: all is text but the variables `kept`."""
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


def _parsed(text: bytes, key: str, section: str | None) -> _Text:
    check_text(text)
    if not _KEY.fullmatch(key):
        raise ConfigError(f"{excerpt(key, 80)!r} cannot be a key")
    shell = _as_shell(text) if _IDENTIFIER.fullmatch(key) else None
    if shell:
        if section is not None:
            raise ConfigError(f"it has no section [{excerpt(section, 80)}], nor any other")
        found = [_in_shell(text, one) for one in shell.assignments if one.name == key.encode()]
        return _Text(_that_count(text, key, found), shell, None)
    plain = plain_grammar.parse(text)
    found = _in_section(text, key, section, plain, _in_plain(text, key, plain))
    return _Text(_that_count(text, key, found), None, plain)


def _as_shell(text: bytes) -> ShellText | None:
    """The text as a shell reads it; None if its lines are plain ones. Raises ConfigError if it is neither."""
    if plain_grammar.SECTION.search(text):
        return None
    try:
        shell = shell_grammar.parse(text)
    except ConfigError:
        if _SPACED.search(text):
            return None
        raise
    inside = shell.blocks
    spaced = [one for one in _SPACED.finditer(text) if not any(a <= one.start() < b for a, b in inside)]
    return None if spaced else shell


def _in_shell(text: bytes, one: shell_grammar.ShellAssignment) -> _Found:
    start = text.rfind(b"\n", 0, one.start) + 1
    feed = text.find(b"\n", one.value[1])
    refused = "a command makes up its value" if one.made_up else ""
    if one.one_command:
        refused = "it only counts for one command"
    return _Found(start, len(text) if feed < 0 else feed + 1, one.value, None, one.append, refused)


def _in_plain(text: bytes, key: str, plain: PlainText) -> list[_Found]:
    names = {key, key.replace("/", "."), key.replace(".", "/")}
    found = []
    for line in plain.lines:
        if line.key.decode("utf-8", "replace") in names:
            refused = "it is inside a quoted value, or a quote is never closed" if line.quoted else ""
            if line.several:
                refused = "its value takes several lines"
            found.append(_Found(line.start, line.end, line.value, line.section, line.append, refused))
    return found


def _in_section(text: bytes, key: str, section: str | None, plain: PlainText, found: list[_Found]) -> list[_Found]:
    """The lines of the requested section. Raises ConfigError: there is no such section, or several have the key."""
    places = {one.section: f"{_header(one.section)} (line {line_number(text, one.value[0])})" for one in found}
    if section is None:
        if len(places) > 1:
            each = " and ".join(places.values())
            raise ConfigError(f"{key} is in {each}; give the knob its section, as section = {_named(found[-1])}")
        return found
    wanted = section or None
    if wanted is not None and wanted not in plain.sections:
        known = ", ".join(_header(name) for name in plain.sections) or "none"
        raise ConfigError(f"it has no section {_header(wanted)}; its sections: {known}")
    return [one for one in found if one.section == wanted]


def _header(section: str | None) -> str:
    return "the part before the first section" if section is None else f"[{excerpt(section, 80)}]"


def _named(one: _Found) -> str:
    return f'"{excerpt(one.section or "", 80)}"'


def _that_count(text: bytes, key: str, found: list[_Found]) -> list[_Found]:
    """The lines that give the key its value. Raises ConfigError if the last one cannot be changed."""
    counting = [one for one in found if not one.refused] or found
    last = found[-1] if found and found[-1].append else counting[-1] if counting else None
    if last is None:
        return []
    line = line_number(text, last.value[0])
    if last.append:
        raise ConfigError(f"{key}+= adds to its value; change it by hand", line)
    if last.refused:
        raise ConfigError(f"{key}: {last.refused}; change it by hand", line)
    return counting


def _check_grammar(text: bytes, key: str, parsed: _Text) -> None:
    """Raises ConfigError if the text has lines of another grammar."""
    at = parsed.shell.unknown if parsed.shell else parsed.plain.unknown if parsed.plain else None
    if at is not None:
        feed = text.find(b"\n", at)
        line = excerpt(text[at : len(text) if feed < 0 else feed].decode("utf-8", "replace").strip(), 60)
        number = line_number(text, at)
        raise ConfigError(f"{line!r} is no KEY=value line, so {key} is not added; add it by hand first", number)


def _insertion(text: bytes, key: str, section: str | None, parsed: _Text) -> Insertion:
    _check_grammar(text, key, parsed)
    at, spaced = len(text), parsed.shell is None
    if parsed.plain and parsed.plain.sections:
        if section is None:
            known = ", ".join(_header(name) for name in parsed.plain.sections)
            raise ConfigError(f"{key} is not there; give the knob the section to add it to: {known}")
        at = parsed.plain.ends[section or None]
        lines = [line for line in parsed.plain.lines if line.section == (section or None)]
        spaced = not lines or text[lines[-1].value[0] - 1 : lines[-1].value[0]] in (b" ", b"\t")
    if text[:at].endswith((b"\\\n", b"\\")):
        raise ConfigError("it ends in a backslash, so nothing can be added at its end")
    return new_line(text, at, key.encode() + (b" = " if spaced else b"="))


def _unquoted(raw: bytes) -> tuple[str, bool]:
    """A shell's word as text, and whether a `$` or a backtick in it has its power."""
    out = bytearray()
    live = False
    quote, at = 0, 0
    while at < len(raw):
        byte, following = raw[at], raw[at + 1 : at + 2]
        if byte == quote:
            quote = 0
        elif not quote and byte in b"\"'":
            quote = byte
        elif byte == 0x5C and quote != 0x27 and following and (not quote or following in b'$`"\\\n'):
            out += b"" if following == b"\n" else following
            at += 1
        else:
            live = live or (byte in b"$`" and quote != 0x27)
            out.append(byte)
        at += 1
    return out.decode("utf-8", "backslashreplace"), live


def _statement(text: bytes, key: str, one: _Found, parsed: _Text) -> Statement:
    raw = text[one.value[0] : one.value[1]]
    shown = _unquoted(raw)[0] if parsed.shell else raw.decode("utf-8", "backslashreplace")
    return Statement(shown, one.value, _whole(text, key, one), line_number(text, one.value[0]))


def _whole(text: bytes, key: str, one: _Found) -> Span | None:
    """The key's line; None if something else is on it."""
    name = text.rfind(key.encode(), one.start, one.value[0])
    before = text[one.start : one.value[0] if name < 0 else name]
    if text[one.value[1] : one.end].strip() or not (name < 0 or _EXPORT.fullmatch(before) or before.strip() == b"-"):
        return None
    return whole_lines(text, one.start, one.end)
