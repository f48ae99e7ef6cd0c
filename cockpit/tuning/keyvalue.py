r"""One key of a file of `KEY=value` lines: read it, spell a value for it, change it and no other byte. Pure.

Two grammars, told apart by the key's own line, else by the key and the other lines: what a shell would source
(`export JAVA_OPTS="-Xmx512m $MORE"`, as in /etc/default), and plain ones (`vm.swappiness = 10`, as in sysctl.d).

A shell's value is shown as text, its quotes and backslashes taken away. A text that is written is never run: `$`,
backticks and quotes in it are made harmless, except the variables that the old value already named.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cockpit.model.text import neutral
from cockpit.tuning.reading import NOT_THERE, Reading, line_number
from cockpit.tuning.syntax import ConfigError

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./:*-]*")
_BARE = re.compile(rb"[A-Za-z0-9_@%+=:,./-]+")
_VARIABLE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})")
_SPACED = re.compile(rb"^[ \t]*-?[\w./]+[ \t]+=", re.MULTILINE)


class _Found(NamedTuple):
    """Where a key's value stands: its line from `start` to `end` (line end included), the value's bytes."""

    start: int
    end: int
    value: tuple[int, int]
    shell: bool


def read(text: bytes, key: str) -> Reading:
    """The key's value; the last line that sets it counts. Raises ConfigError."""
    found = _found(text, key)
    if not found:
        return NOT_THERE
    start, end = found[-1].value
    raw = text[start:end]
    shown = _unquoted(raw)[0] if found[-1].shell else raw.decode("utf-8", "backslashreplace")
    return Reading(shown, raw, line_number(text, start), len(found))


def change(text: bytes, key: str, raw: bytes | None) -> bytes:
    """`text` with the key's value replaced by `raw`, a line added at its end where it is missing, or its line taken
    out where `raw` is None. Raises ConfigError."""
    found = _found(text, key)
    if raw is None:
        return _remove(text, key, found)
    if found:
        start, end = found[-1].value
        return text[:start] + raw + text[end:]
    if text.endswith((b"\\\n", b"\\")):
        raise ConfigError("it ends in a backslash, so nothing can be added at its end")
    ending = b"\r\n" if b"\r\n" in text else b"\n"
    added = key.encode() + (b"=" if is_shell(text, key) else b" = ") + raw
    return text + added + ending if not text or text.endswith(b"\n") else text + ending + added


def is_shell(text: bytes, key: str) -> bool:
    """Whether a shell would read the key's line."""
    found = _found(text, key)
    if found:
        return found[-1].shell
    return _IDENTIFIER.fullmatch(key) is not None and not _SPACED.search(text)


def spell(value: str, shell: bool, like: bytes | None = None) -> bytes:
    """`value` as it is written after the `=`, in the quotes that `like`, the bytes it replaces, stands in.

    Raises ConfigError for what would not be read back as it is, or where a command makes up the old value.
    """
    if value != value.strip() or (not value and not shell):
        raise ConfigError("a value must not begin or end with a space, and not be empty in such a file")
    if neutral(value) != value:
        raise ConfigError("a value is one line of text, at most 4096 characters, without control characters")
    raw = value.encode()
    if not shell:
        if raw[:1] in (b"#", b";") or raw.endswith(b"\\"):
            raise ConfigError("a value must not begin a comment, nor end in a backslash")
        return raw
    kept = _variables(like)
    if like and like.startswith(b"'"):
        return b"'" + raw.replace(b"'", b"'\\''") + b"'"
    if _BARE.fullmatch(raw) and not (like and like.startswith(b'"')):
        return raw
    return b'"' + _escaped(value, kept) + b'"'


def _variables(like: bytes | None) -> frozenset[str]:
    """The variables that the old value names. Raises ConfigError where a command makes it up."""
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


def _found(text: bytes, key: str) -> list[_Found]:
    if b"\0" in text:
        raise ConfigError("it holds a NUL byte and is no text")
    if not _KEY.fullmatch(key):
        raise ConfigError(f"{neutral(key, 80)!r} cannot be a key")
    names = {key, key.replace("/", "."), key.replace(".", "/")}
    wanted = b"|".join(re.escape(name.encode()) for name in sorted(names))
    line = re.compile(rb"^[ \t]*(?:export[ \t]+|-)?(?:" + wanted + rb")([ \t]*)=([ \t]*)", re.MULTILINE)
    found: list[_Found] = []
    at = 0
    while match := line.search(text, at):
        shell = not match[1] and not match[2] and _IDENTIFIER.fullmatch(key) is not None
        end = _word_end(text, match.end()) if shell else _line_end(text, match.end())
        feed = text.find(b"\n", end)
        stop = len(text) if feed < 0 else feed + 1
        if not _in_quotes(text, match.start(), found):
            found.append(_Found(match.start(), stop, (match.end(), end), shell))
        at = max(end, match.end())
    return found


def _in_quotes(text: bytes, start: int, found: list[_Found]) -> bool:
    return bool(found) and start < found[-1].value[1]


def _line_end(text: bytes, start: int) -> int:
    """The end of what stands on the line, without the white space after it."""
    feed = text.find(b"\n", start)
    return start + len(text[start : len(text) if feed < 0 else feed].rstrip())


def _word_end(text: bytes, start: int) -> int:
    """The end of a shell's word, quotes and all. Raises ConfigError where a quote is never closed."""
    at = start
    while at < len(text) and text[at] not in b" \t\r\n;&|<>()":
        if text[at] in b"\"'":
            at = _quote_end(text, at)
        elif text[at : at + 2] == b"$(" or text[at] == 0x60:
            raise ConfigError(f"line {line_number(text, at)}: a command makes up its value; change it by hand")
        else:
            at += 2 if text[at] == 0x5C else 1
    return min(at, len(text))


def _quote_end(text: bytes, start: int) -> int:
    at = start + 1
    while at < len(text) and text[at] != text[start]:
        at += 2 if text[at] == 0x5C and text[start] == 0x22 else 1
    if at >= len(text):
        raise ConfigError(f"line {line_number(text, start)}: a quote is never closed")
    return at + 1


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


def _remove(text: bytes, key: str, found: list[_Found]) -> bytes:
    if not found:
        return text
    if len(found) > 1:
        raise ConfigError(f"{key} stands there {len(found)} times; without the last one another would count")
    start, end = found[0].start, found[0].end
    if text[found[0].value[1] : end].strip():
        raise ConfigError(f"something else stands behind {key} on its line; take it out by hand")
    if end == len(text) and not text.endswith(b"\n"):
        start = len(text[:start].removesuffix(b"\n").removesuffix(b"\r"))
    return text[:start] + text[end:]
