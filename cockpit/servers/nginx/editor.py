"""Directives of an nginx configuration text: located and spelled. Pure.

A value is the directive's arguments between its name and the `;`. A section is a path of blocks, outermost first:
`http { server {`. Of several such directives nginx takes the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    deeper,
    excerpt,
    indent_of,
    line_end,
    line_ending,
    line_number,
    new_line,
    whole_lines,
)
from cockpit.servers.nginx import lua

_SPACE = b" \t\r\n"
_SPECIAL = b";{}"
# Blocks of such directives hold Lua code (content_by_lua_block).
_LUA = b"_by_lua_block"


class NginxGrammar(Grammar):
    def locate(self, text: bytes, name: str, section: str | None) -> Location:
        survey = _survey(text, name, section)
        return Location(tuple(_statement(text, item) for item in survey.found), lambda: _insertion(text, name, survey))

    def spell(self, value: str, like: bytes | None = None) -> bytes:
        raw = checked(value)
        tokens = list(_tokens(raw))
        if any(token.special or raw[token.start : token.start + 1] == b"#" for token in tokens):
            raise ConfigError("it contains ; { } or a # that would begin a comment; put text in quotes")
        if not all(token.closed for token in tokens) or raw.endswith(b"\\"):
            raise ConfigError("a quote in it is not closed, or a backslash ends it")
        if not tokens or tokens[-1].end != len(raw):
            raise ConfigError("it contains a # that would begin a comment")
        return raw


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
    check_text(text)
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
        raise ConfigError(f"the block {excerpt(within[-1], 120)} {{ is never closed")


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
            indent = indent_of(text, item.words[0].start)
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
    return " ".join(f"{excerpt(part, 120)} {{" for part in path)


def _whereabouts(item: _Item) -> str:
    if not item.within:
        return "outside of all blocks: leave the knob's section out"
    return f'elsewhere: give the knob section = "{_written(item.within)}"'


def _statement(text: bytes, item: _Item) -> Statement:
    """Its whole lines are removed if nothing else is on them."""
    begin, bare = item.words[0].start, len(item.words) < 2
    value = (item.words[0].end, item.words[0].end) if bare else (item.words[1].start, item.words[-1].end)
    shown = text[value[0] : value[1]].decode("utf-8", "backslashreplace")
    return Statement(shown, value, _whole(text, begin, item.end), line_number(text, value[0]), bare)


def _whole(text: bytes, begin: int, end: int) -> Span:
    line, stop = text.rfind(b"\n", 0, begin) + 1, line_end(text, end)
    if text[line:begin].strip() or text[end:stop].strip():
        return begin, end + (text[end : end + 1] == b" ")
    return whole_lines(text, line, stop)


def _insertion(text: bytes, directive: str, survey: _Survey) -> Insertion:
    name = directive.encode() + b" "
    if survey.close is None:
        return new_line(text, len(text), name, b";")
    start = text.rfind(b"\n", 0, survey.close) + 1
    outer = text[start : survey.close]
    if outer.strip() or start == 0:
        return Insertion(survey.close, name, b"; ")
    return Insertion(start, (survey.indent or deeper(outer)) + name, b";" + line_ending(text))
