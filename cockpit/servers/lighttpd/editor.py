"""Locate and encode the settings of a lighttpd configuration text. Pure.

A setting is `key = value`, up to the end of its line or of the line that closes its parentheses. A section is a path of
conditions, outermost first: `$HTTP["host"] == "a" {`; `global {` is the top level. A value, as text, is the expression
in the file, without quotes around a single word.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from cockpit.servers import blocks
from cockpit.servers.blocks import BlockItem, BlockPath, BlockStyle
from cockpit.servers.editing import ConfigError, ConfigText, Grammar, Location, encode_line, ends_escaped, excerpt

_TOKEN = re.compile(
    rb'[ \t\r\v\f]+|#[^\n]*|"(?:\\.|[^"\\])*"?|\+=|:=|=>|==|=~|!=|!~|[\n{}()=+]|[^\s#"{}()=+:!]+|.', re.DOTALL
)
_WORD = re.compile(rb"[A-Za-z0-9_/.:@*-]+")
_QUOTED_WORD = re.compile(rb'"([A-Za-z0-9_/.:@*-]+)"')
_BARE = re.compile(rb"-?[0-9]+|(?:var|env)\.[A-Za-z0-9_.]+")
_STYLE = BlockStyle(assign=b" = ")
# The next line belongs to an operator at the end of a line.
_OPERATORS = (b"=", b"+=", b":=", b"=>", b"+", b"==", b"!=", b"=~", b"!~")
# Settings in a block of this name are at the top level, also inside a condition.
_GLOBAL = "global"
_CONNECTIONS, _FILES = "server.max-connections", "server.max-fds"
# Appended to the name of a `+=` statement, so that it is not read as the value of the setting.
_APPENDED = b" +="


class LighttpdGrammar(Grammar):
    def locate(self, text: ConfigText, name: str, section: str | None) -> Location:
        path = blocks.path_of(section)
        items = list(_items(text))
        for item in items:
            if item.name == name.encode() + _APPENDED and item.within == path:
                raise text.error(f"{name} += adds to its value; change it by hand", item.begin)
        location = blocks.locate(text, name, path, items, _STYLE)
        return location._replace(
            statements=tuple(statement._replace(shown=_shown(statement.shown)) for statement in location.statements)
        )

    def sections_of(self, text: bytes, names: Collection[str]) -> dict[str, set[str]]:
        return blocks.sections_of(_items(ConfigText(text)), names, _STYLE)

    def encode(self, value: str, like: bytes | None = None) -> bytes:
        raw = encode_line(value)
        quoted = like is not None and _QUOTED_WORD.fullmatch(like) is not None
        if _BARE.fullmatch(raw) and not quoted:
            return raw
        if _WORD.fullmatch(raw):
            return b'"' + raw + b'"'
        depth = 0
        for token in _tokens(ConfigText(raw)):
            sign = raw[token.start : token.end]
            depth += (sign == b"(") - (sign == b")")
            if sign in (b"{", b"}", b"=", b"+=", b":=") or sign.startswith(b"#") or depth < 0:
                raise ConfigError('a value must not contain =, {, } or a # that starts a comment; put text in "quotes"')
        if depth:
            raise ConfigError("a value must not contain an unclosed parenthesis")
        return raw

    def coerced(self, text: bytes, name: str, section: str | None) -> str:
        if section or name not in (_CONNECTIONS, _FILES):
            return ""
        connections, most = (self.number(text, setting, section) for setting in (_CONNECTIONS, _FILES))
        if connections is None or most is None or connections <= most // 2:
            return ""
        return f"lighttpd silently lowers {_CONNECTIONS} {connections} to {most // 2}: at most {_FILES} / 2"


class _Token(NamedTuple):
    start: int
    end: int


def _shown(value: str) -> str:
    word = _QUOTED_WORD.fullmatch(value.encode())
    return word[1].decode() if word else value


def _tokens(text: ConfigText) -> Iterator[_Token]:
    """Yield all tokens except white space, including line feeds and comments. Raises ConfigError for an unclosed
    quote."""
    at = 0
    while token := _TOKEN.match(text, at):
        at = token.end()
        if token[0].startswith(b'"') and (
            len(token[0]) < 2 or not token[0].endswith(b'"') or ends_escaped(token[0][1:-1])
        ):
            raise text.error("a quote is never closed", token.start())
        if token[0].strip(b" \t\r\v\f"):
            yield _Token(token.start(), at)


def _items(text: ConfigText) -> Iterator[BlockItem]:
    within: BlockPath = ()
    outer: list[BlockPath] = []
    words: list[_Token] = []
    depth = 0
    for token in _tokens(text):
        sign = text[token.start : token.end]
        depth += (sign == b"(") - (sign == b")")
        is_open = depth > 0 or (words and text[words[-1].start : words[-1].end] in _OPERATORS)
        if sign.startswith(b"#") or (sign == b"\n" and is_open):
            continue
        if sign not in (b"\n", b"{", b"}") or depth > 0:
            words.append(token)
            continue
        if sign == b"{":
            if not words:
                raise text.error("unexpected {", token.start)
            outer.append(within)
            header = " ".join(text[words[0].start : token.start].decode("utf-8", "replace").split())
            within = () if header == _GLOBAL else (*within, header)
        else:
            yield from _setting(text, words, within)
        words = []
        if sign == b"}":
            if not outer:
                raise text.error("unexpected }", token.start)
            if within:
                yield BlockItem(b"}", token.start, token, token.end, within[:-1], closes=within)
            within = outer.pop()
    if depth > 0:
        raise text.error("a parenthesis is never closed", words[0].start)
    yield from _setting(text, words, within)
    if outer:
        raise ConfigError(f"the section {excerpt(within[-1] if within else _GLOBAL)} {{ is never closed")


def _setting(text: ConfigText, words: list[_Token], within: BlockPath) -> Iterator[BlockItem]:
    """Yield the setting of a line; nothing for other lines, e.g. `include "file"`."""
    if len(words) < 3:
        return
    name, sign = (text[word.start : word.end] for word in words[:2])
    value = (words[2].start, words[-1].end)
    if sign in (b"=", b":="):
        yield BlockItem(name, words[0].start, value, value[1], within)
    elif sign == b"+=":
        yield BlockItem(name + _APPENDED, words[0].start, value, value[1], within)
