"""One directive of an nginx configuration text: read it, spell a value for it, change it and no other byte. Pure.

A value is the directive's arguments as they stand between its name and the `;`. A section is a path of blocks,
outermost first: `http { server {`. Of several such directives the last is read and changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cockpit.model.text import neutral
from cockpit.tuning import lua
from cockpit.tuning.reading import NOT_THERE, Reading, line_number
from cockpit.tuning.syntax import ConfigError

_SPACE = b" \t\r\n"
_SPECIAL = b";{}"
# Blocks of such directives hold Lua code (content_by_lua_block).
_LUA = b"_by_lua_block"


class _Token(NamedTuple):
    """A word, or one of `;` `{` `}` (`special`); `closed` is False where a quote is open at the end."""

    start: int
    end: int
    special: bool
    closed: bool = True


class _Item(NamedTuple):
    """A directive with its `;`, or a block's `}` (`closes` is then the path it ends)."""

    words: tuple[_Token, ...]
    end: int
    within: tuple[str, ...]
    closes: tuple[str, ...] | None = None


class _Survey(NamedTuple):
    found: list[_Item]
    close: int | None
    indent: bytes


def read(text: bytes, directive: str, section: str | None = None) -> Reading:
    """The directive in `section` (None: outside of any block). Raises ConfigError: no such section, or several."""
    found = _survey(text, directive, section).found
    if not found:
        return NOT_THERE
    start, end = _arguments(text, found[-1])
    raw = text[start:end]
    return Reading(raw.decode("utf-8", "backslashreplace"), raw, line_number(text, start), len(found))


def change(text: bytes, directive: str, section: str | None, raw: bytes | None) -> bytes:
    """`text` with the directive's arguments replaced by `raw`, added at the section's end where it is missing, or
    taken out where `raw` is None. Raises ConfigError."""
    survey = _survey(text, directive, section)
    if raw is None:
        return _remove(text, directive, survey.found)
    if not survey.found:
        return _insert(text, directive, survey, raw)
    start, end = _arguments(text, survey.found[-1])
    if start == end:
        raise ConfigError(f"{directive} stands there without a value; give it one by hand first")
    return text[:start] + raw + text[end:]


def spell(value: str) -> bytes:
    """`value` as it is written before the `;`. Raises ConfigError for what would not be read back as it is."""
    if not value or value != value.strip():
        raise ConfigError("a value must not be empty, nor begin or end with a space")
    if neutral(value) != value:
        raise ConfigError("a value is one line of text, at most 4096 characters, without control characters")
    raw = value.encode()
    tokens = list(_tokens(raw))
    if any(token.special or raw[token.start : token.start + 1] == b"#" for token in tokens):
        raise ConfigError("it holds ; { } or a # that would begin a comment; put it in quotes if it is meant as text")
    if not all(token.closed for token in tokens) or raw.endswith(b"\\"):
        raise ConfigError("a quote in it is not closed, or a backslash ends it")
    if len(_words_end(raw, tokens)) != len(raw):
        raise ConfigError("it holds a # that would begin a comment")
    return raw


def _words_end(raw: bytes, tokens: list[_Token]) -> bytes:
    return raw[: tokens[-1].end] if tokens else b""


def _tokens(text: bytes) -> Iterator[_Token]:
    at, first = 0, b""
    while at < len(text):
        byte = text[at]
        if byte in _SPACE:
            at += 1
        elif byte == 0x23:
            end = text.find(b"\n", at)
            at = len(text) if end < 0 else end
        elif byte in _SPECIAL:
            yield _Token(at, at + 1, True)
            at = lua.block_end(text, at + 1) if byte == 0x7B and first.endswith(_LUA) else at + 1
            first = b""
        else:
            token = _quoted(text, at) if byte in b"\"'" else _bare(text, at)
            yield token
            at = token.end
            first = first or text[token.start : token.end]


def _quoted(text: bytes, start: int) -> _Token:
    at = start + 1
    while at < len(text) and text[at] != text[start]:
        at += 2 if text[at] == 0x5C else 1
    if at < len(text):
        return _Token(start, at + 1, False)
    return _Token(start, len(text), False, closed=False)


def _bare(text: bytes, start: int) -> _Token:
    at = start
    while at < len(text) and text[at] not in _SPACE:
        if text[at : at + 2] == b"${":
            at += 2
            continue
        if text[at] in b";{" or (text[at] == 0x7D and not _in_variable(text[start:at])):
            break
        at += 2 if text[at] == 0x5C else 1
    return _Token(start, min(at, len(text)), False)


def _in_variable(word: bytes) -> bool:
    """Whether a `${name` of the word is still open."""
    return word.rfind(b"${") > word.rfind(b"}")


def _items(text: bytes) -> Iterator[_Item]:
    if b"\0" in text:
        raise ConfigError("it holds a NUL byte and is no configuration text")
    within: tuple[str, ...] = ()
    words: list[_Token] = []
    for token in _tokens(text):
        line = line_number(text, token.start)
        sign = text[token.start : token.end] if token.special else b""
        if not token.closed:
            raise ConfigError(f"line {line}: a quote is never closed")
        if not sign:
            words.append(token)
        elif sign == b";":
            if words:
                yield _Item(tuple(words), token.end, within)
            words = []
        elif sign == b"{":
            within = (*within, " ".join(text[word.start : word.end].decode("utf-8", "replace") for word in words))
            words = []
        else:
            if words or not within:
                raise ConfigError(f"line {line}: a }} is in the way")
            yield _Item((token,), token.end, within[:-1], closes=within)
            within = within[:-1]
    if words:
        raise ConfigError(f"line {line_number(text, words[0].start)}: a directive without its ;")
    if within:
        raise ConfigError(f"the block {neutral(within[-1], 120)} {{ is never closed")


def _path(section: str | None) -> tuple[str, ...]:
    """`http { server {` as the names of blocks, outermost first."""
    parts = (" ".join(part.split()) for part in (section or "").split("{"))
    return tuple(part for part in parts if part)


def _survey(text: bytes, directive: str, section: str | None) -> _Survey:
    path = _path(section)
    found: list[_Item] = []
    strays: list[_Item] = []
    closes: list[int] = []
    indent = b""
    for item in _items(text):
        if item.closes is not None:
            if item.closes == path:
                closes.append(item.words[0].start)
            continue
        if item.within == path:
            indent = _indent(text, item.words[0].start)
        if text[item.words[0].start : item.words[0].end] == directive.encode():
            (found if item.within == path else strays).append(item)
    where = f"; {directive} stands {_whereabouts(strays[-1])}" if strays else ""
    if path and not closes:
        raise ConfigError(f"it has no section {_written(path)}{where}")
    if len(closes) > 1:
        raise ConfigError(f"it has {len(closes)} sections {_written(path)}; which one is meant cannot be told")
    if not path and not found and strays:
        raise ConfigError(f"{directive} does not stand outside of all blocks{where}")
    return _Survey(found, closes[0] if closes else None, indent)


def _written(path: tuple[str, ...]) -> str:
    return " ".join(f"{neutral(part, 120)} {{" for part in path)


def _whereabouts(item: _Item) -> str:
    if not item.within:
        return "outside of all blocks: leave the knob's section out"
    return f'elsewhere: give the knob section = "{_written(item.within)}"'


def _indent(text: bytes, start: int) -> bytes:
    """The white space before what begins at `start`, where nothing else stands before it on its line."""
    before = text[text.rfind(b"\n", 0, start) + 1 : start]
    return before if not before.strip() else b""


def _arguments(text: bytes, item: _Item) -> tuple[int, int]:
    """The span of the arguments; (n, n) when there are none."""
    first = item.words[1:2]
    return (first[0].start, item.words[-1].end) if first else (item.words[0].end, item.words[0].end)


def _insert(text: bytes, directive: str, survey: _Survey, raw: bytes) -> bytes:
    added = directive.encode() + b" " + raw + b";"
    ending = b"\r\n" if b"\r\n" in text else b"\n"
    if survey.close is None:
        return text + added + ending if not text or text.endswith(b"\n") else text + ending + added
    start = text.rfind(b"\n", 0, survey.close) + 1
    outer = text[start : survey.close]
    if outer.strip() or start == 0:
        return text[: survey.close] + added + b" " + text[survey.close :]
    indent = survey.indent or outer + (b"\t" if outer.endswith(b"\t") else b"    ")
    return text[:start] + indent + added + ending + text[start:]


def _remove(text: bytes, directive: str, found: list[_Item]) -> bytes:
    """Without the directive; its whole line goes where nothing else stands on it."""
    if not found:
        return text
    if len(found) > 1:
        raise ConfigError(f"{directive} stands there {len(found)} times; without the last one another would count")
    start, end = found[0].words[0].start, found[0].end
    line, feed = text.rfind(b"\n", 0, start) + 1, text.find(b"\n", end)
    stop = len(text) if feed < 0 else feed + 1
    if text[line:start].strip() or text[end:stop].strip():
        return text[:start] + text[end + (text[end : end + 1] == b" ") :]
    if stop == len(text) and not text.endswith(b"\n"):
        line = len(text[:line].removesuffix(b"\n").removesuffix(b"\r"))
    return text[:line] + text[stop:]
