"""Locate and encode the directives of an nginx configuration text. Pure.

A value is the arguments of a directive, between its name and the `;`. A section is a path of blocks, outermost first:
`http { server {`; of several blocks of one name, `http { server[server_name=www.example.org] {`. If a directive is set
several times, the last one counts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import ClassVar, NamedTuple

from cockpit.servers import blocks, same_name
from cockpit.servers.blocks import BlockItem, BlockPath, BlockStyle
from cockpit.servers.editing import (
    ConfigError,
    ConfigText,
    Grammar,
    Insertion,
    Location,
    Parameter,
    TextSpan,
    encode_line,
    excerpt,
)

_SPACE = b" \t\r\n"
_SPECIAL = b";{}"
# Directives with this suffix have a block of Lua code (content_by_lua_block).
_LUA = b"_by_lua_block"
# Lua tokens: a long comment or string (`--[==[`, `[==[`), a line comment, a quoted string (closed or not), a brace.
_LUA_PART = re.compile(rb"(?:--)?\[(=*)\[|--[^\n]*|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?|[{}]", re.DOTALL)
# Directives that tell blocks of the same name apart.
_DIFFERENT = ("server_name", "listen")
_FORMAT = "log_format"
_STYLE = BlockStyle(terminator=b";", inline=True)


class NginxGrammar(Grammar):
    including = ("include",)
    variable = re.compile(r"\$\w+|\$\{\w+\}")
    # A format of access logs has its name as a second word.
    names = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*|log_format [A-Za-z0-9_.-]+")
    # Before the directive http2 of nginx 1.25.1. On a socket without TLS, it would exclude HTTP/1.
    parameters: ClassVar = {"listen http2": Parameter("listen", "http2", among="ssl", is_flag=True)}

    def locate(self, text: ConfigText, name: str, section: str | None) -> Location:
        path = blocks.path_of(section)
        items = same_name.addressed(text, block_items(text), path)
        if len(same := [index for index, item in enumerate(items) if item.closes == path]) > 1:
            different = same_name.distinguished(text, block_items(text), _DIFFERENT)
            raise ConfigError(blocks.several([different[index].closes or () for index in same], path, _STYLE))
        if not name.startswith(_FORMAT):
            return blocks.locate(text, name, path, items, _STYLE)
        named = [_named_format(text, item) if item.name == _FORMAT.encode() else item for item in items]
        return blocks.locate(text, name, path, named, _STYLE)._replace(
            insertion=lambda: _first_place(text, name, path, items)
        )

    def sections_of(self, text: bytes, names: Collection[str]) -> dict[str, set[str]]:
        items = same_name.distinguished(text, block_items(ConfigText(text)), _DIFFERENT)
        return blocks.sections_of(items, names, _STYLE)

    def words(self, text: ConfigText, span: TextSpan) -> list[TextSpan]:
        start, end = span
        return [(start + token.start, start + token.end) for token in _tokens(ConfigText(text[start:end]))]

    def encode(self, value: str, like: bytes | None = None) -> bytes:
        raw = encode_line(value)
        tokens = list(_tokens(ConfigText(raw)))
        if any(token.special or raw[token.start : token.start + 1] == b"#" for token in tokens):
            raise ConfigError("a value must not contain ;, {, } or a # that starts a comment; put text in quotes")
        if not all(token.closed for token in tokens) or raw.endswith(b"\\"):
            raise ConfigError("a value must not contain an unclosed quote or a final backslash")
        if not tokens or tokens[-1].end != len(raw):
            raise ConfigError("a value must not contain a # that starts a comment")
        return raw


def _named_format(text: ConfigText, item: BlockItem) -> BlockItem:
    """Return a log_format with its name as a part of the directive's name."""
    words = list(_tokens(ConfigText(text[slice(*item.value)])))
    if len(words) < 2:
        return item
    start = item.value[0]
    name = b" ".join((item.name, text[start : start + words[0].end]))
    return item._replace(name=name, value=(start + words[1].start, item.value[1]))


def _first_place(text: ConfigText, name: str, path: BlockPath, items: Sequence[BlockItem]) -> Insertion:
    """Return the place of a format, which must precede its use: before the first directive of its block."""
    inside = [item for item in items if (item.closes or item.within)[: len(path)] == path]
    at = text.line_start(inside[0].begin) if path else 0
    if path and (inside[0].within != path or inside[0].closes or text[at : inside[0].begin].strip()):
        raise ConfigError(f"the section does not begin with a directive of its own; add {name} by hand")
    indent = text.indent_at(inside[0].begin) if path else b""
    return text.new_line(at, indent + name.encode() + b" ", b";")


class _Token(NamedTuple):
    """A word, or one of `;` `{` `}` (`special`). `closed` is False if its quote is not closed."""

    start: int
    end: int
    special: bool
    closed: bool = True


def _tokens(text: ConfigText) -> Iterator[_Token]:
    at, first = 0, b""
    while at < len(text):
        byte = text[at]
        if byte in _SPACE:
            at += 1
        elif byte == 0x23:
            at = text.line_stop(at)
        elif byte in _SPECIAL:
            yield _Token(at, at + 1, True)
            at = _lua_end(text, at + 1) if byte == 0x7B and first.endswith(_LUA) else at + 1
            first = b""
        else:
            token = _quoted(text, at) if byte in b"\"'" else _bare(text, at)
            yield token
            at = token.end
            first = first or text[token.start : token.end]


def _quoted(text: ConfigText, start: int) -> _Token:
    at = start + 1
    while at < len(text) and text[at] != text[start]:
        at += 2 if text[at] == 0x5C else 1
    if at < len(text):
        return _Token(start, at + 1, False)
    return _Token(start, len(text), False, closed=False)


def _bare(text: ConfigText, start: int) -> _Token:
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
    """Return whether the word ends inside `${…`."""
    return word.rfind(b"${") > word.rfind(b"}")


def block_items(text: ConfigText) -> Iterator[BlockItem]:
    """Yield the directives and the ends of blocks in order. Raises ConfigError."""
    within: BlockPath = ()
    words: list[_Token] = []
    for token in _tokens(text):
        line = text.line_number(token.start)
        sign = text[token.start : token.end] if token.special else b""
        if not token.closed:
            raise ConfigError("a quote is never closed", line)
        if not sign:
            words.append(token)
        elif sign == b";":
            if words:
                yield BlockItem(_bytes(text, words[0]), words[0].start, _arguments(words), token.end, within)
            words = []
        elif sign == b"{":
            within = (*within, " ".join(_bytes(text, word).decode("utf-8", "replace") for word in words))
            words = []
        else:
            if words or not within:
                raise ConfigError("unexpected }", line)
            yield BlockItem(b"}", token.start, (token.end, token.end), token.end, within[:-1], closes=within)
            within = within[:-1]
    if words:
        raise text.error("a directive without ;", words[0].start)
    if within:
        raise ConfigError(f"the block {excerpt(within[-1])} {{ is never closed")


def _bytes(text: ConfigText, word: _Token) -> bytes:
    return text[word.start : word.end]


def _arguments(words: list[_Token]) -> TextSpan:
    return (words[1].start, words[-1].end) if len(words) > 1 else (words[0].end, words[0].end)


def _lua_end(text: ConfigText, start: int) -> int:
    """Return the position of the `}` of the Lua block whose content starts at `start`. Raises ConfigError if there is
    none."""
    depth, at = 1, start
    while part := _LUA_PART.search(text, at):
        at = part.end()
        if part[0] == b"{":
            depth += 1
        elif part[0] == b"}":
            depth -= 1
            if depth == 0:
                return part.start()
        elif part[1] is not None:
            closing = text.find(b"]" + part[1] + b"]", at)
            at = len(text) if closing < 0 else closing + len(part[1]) + 2
    raise text.error("a block of Lua code is never closed", start)
