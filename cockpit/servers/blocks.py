"""Directives in named blocks (`http { server {`, `frontend web`): located, and the place of a missing one. Pure.

A grammar gives the directives and the ends of blocks in the order of the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from cockpit.servers.editing import (
    ConfigError,
    Insertion,
    Location,
    Span,
    Statement,
    deeper,
    excerpt,
    indent_of,
    line_end,
    line_ending,
    line_number,
    new_line,
    whole_lines,
)

_PART = re.compile(r'(?:"[^"]*"|[^"{])+')
# The names of blocks, outermost first.
BlockPath = tuple[str, ...]


class BlockItem(NamedTuple):
    """A directive from `begin` to `end`, with its value and the blocks around it; or the end of the block `closes`."""

    name: bytes
    begin: int
    value: Span
    end: int
    within: BlockPath
    closes: BlockPath | None = None


class BlockStyle(NamedTuple):
    """How a grammar writes: `opener` after a block's name, `assign` and `terminator` around a value; `inline`: several
    directives may be on one line."""

    opener: str = " {"
    assign: bytes = b" "
    terminator: bytes = b""
    inline: bool = False


def path_of(section: str | None) -> BlockPath:
    """The blocks of `http { server {`; braces in double quotes are part of a name."""
    parts = (" ".join(part.split()) for part in _PART.findall(section or ""))
    return tuple(part for part in parts if part)


def header_of(section: str) -> Sequence[str]:
    """The words of the innermost header of a section."""
    return " ".join(path_of(section)[-1:]).split()


def locate(text: bytes, name: str, path: BlockPath, items: Iterable[BlockItem], style: BlockStyle) -> Location:
    """The directive in the block of this path; (): outside of all blocks. Raises ConfigError: no such block, or
    several."""
    found: list[BlockItem] = []
    elsewhere: list[BlockItem] = []
    closes: list[int] = []
    indent = b""
    for item in items:
        if item.closes is not None:
            closes += [item.begin] if item.closes == path else []
            continue
        if item.within == path:
            indent = indent_of(text, item.begin)
        if item.name == name.encode():
            (found if item.within == path else elsewhere).append(item)
    _check_place(name, path, closes, found, elsewhere, style)
    close = closes[0] if closes else None
    return Location(
        tuple(_statement(text, item) for item in found), lambda: _insertion(text, name, close, indent, style)
    )


def sections_of(items: Iterable[BlockItem], names: Collection[str], style: BlockStyle) -> dict[str, set[str]]:
    """The blocks, each with those of the directives that it has."""
    found: dict[str, set[str]] = {}
    for item in items:
        if path := item.closes or item.within:
            found.setdefault(_written(path, style), set()).update({item.name.decode("utf-8", "replace")} & set(names))
    return found


def _check_place(
    name: str,
    path: BlockPath,
    closes: Sequence[int],
    found: Sequence[BlockItem],
    elsewhere: Sequence[BlockItem],
    style: BlockStyle,
) -> None:
    hint = f"; {name} is {_place(elsewhere[-1].within, style)}" if elsewhere else ""
    if path and not closes:
        raise ConfigError(f"it has no section {_written(path, style)}{hint}")
    if len(closes) > 1:
        raise ConfigError(f"it has {len(closes)} sections {_written(path, style)}; one of them cannot be chosen")
    if not path and not found and elsewhere:
        raise ConfigError(f"{name} is not outside of all blocks{hint}")


def _written(path: BlockPath, style: BlockStyle) -> str:
    return " ".join(f"{excerpt(part)}{style.opener}".lstrip() for part in path)


def _place(path: BlockPath, style: BlockStyle) -> str:
    if not path:
        return "outside of all blocks: leave the knob's section out"
    return f"elsewhere: give the knob section = '{_written(path, style)}'"


def _statement(text: bytes, item: BlockItem) -> Statement:
    start, end = item.value
    shown = text[start:end].decode("utf-8", "backslashreplace")
    return Statement(shown, item.value, _whole(text, item.begin, item.end), line_number(text, start), start == end)


def _whole(text: bytes, begin: int, end: int) -> Span:
    """Its lines if nothing else is on them."""
    line, stop = text.rfind(b"\n", 0, begin) + 1, line_end(text, end)
    if text[line:begin].strip() or text[end:stop].strip():
        return begin, end + (text[end : end + 1] == b" ")
    return whole_lines(text, line, stop)


def _insertion(text: bytes, name: str, close: int | None, indent: bytes, style: BlockStyle) -> Insertion:
    before = name.encode() + style.assign
    if close is None:
        return new_line(text, len(text), before, style.terminator)
    if not style.opener:
        return new_line(text, close, (indent or b"    ") + before, style.terminator)
    start = text.rfind(b"\n", 0, close) + 1
    outer = text[start:close]
    if not outer.strip() and start:
        return Insertion(start, (indent or deeper(outer)) + before, style.terminator + line_ending(text))
    if not style.inline:
        raise ConfigError("the section is on one line; add it by hand")
    return Insertion(close, before, style.terminator + b" ")
