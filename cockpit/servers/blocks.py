"""Locate directives in named blocks (`http { server {`, `frontend web`), and the place of a missing directive. Pure.

A grammar yields the directives and the ends of blocks in file order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from cockpit.servers.editing import (
    ConfigError,
    ConfigText,
    Insertion,
    Location,
    Statement,
    TextSpan,
    excerpt,
    nested_indent,
)

_HEADER = re.compile(r'(?:"[^"]*"|[^"{])+')
# A condition after a name. A value may contain an IPv6 address in brackets.
CONDITION = re.compile(r"\[(\w+)=((?:[^\[\]]|\[[^\[\]]*\])+)\]")
ADDRESSED = re.compile(rf"(.*?)((?:{CONDITION.pattern})+)")
# The names of blocks, outermost first.
BlockPath = tuple[str, ...]


class BlockItem(NamedTuple):
    """A directive from `begin` to `end`, with the span of its value and its enclosing blocks (`within`). If `closes` is
    set, the item is the end of that block instead."""

    name: bytes
    begin: int
    value: TextSpan
    end: int
    within: BlockPath
    closes: BlockPath | None = None


class BlockStyle(NamedTuple):
    """Syntax of a new directive: `opener` follows a block's name, `assign` and `terminator` enclose a value. `inline`:
    several directives can share a line."""

    opener: str = " {"
    assign: bytes = b" "
    terminator: bytes = b""
    inline: bool = False


def path_of(section: str | None) -> BlockPath:
    """Split a section such as `http { server {` into its blocks. Braces in double quotes are part of a name."""
    headers = (" ".join(header.split()) for header in _HEADER.findall(section or ""))
    return tuple(header for header in headers if header)


def plain(header: str) -> str:
    """Return a header with spaces instead of the signs of its conditions, without the names of the directives."""
    parts = ADDRESSED.fullmatch(header)
    return " ".join([parts[1], *(value for _, value in CONDITION.findall(parts[2]))]) if parts else header


def header_of(section: str) -> Sequence[str]:
    """Return the words of the innermost header of a section."""
    return plain(" ".join(path_of(section)[-1:])).split()


def locate(text: ConfigText, name: str, path: BlockPath, items: Iterable[BlockItem], style: BlockStyle) -> Location:
    """Locate the directive in the block `path`; (): outside of all blocks. Raises ConfigError if the text has no such
    block, or several."""
    matches: list[BlockItem] = []
    elsewhere: list[BlockItem] = []
    closes: list[int] = []
    indent = b""
    for item in items:
        if item.closes is not None:
            closes += [item.begin] if item.closes == path else []
            continue
        if item.within == path:
            indent = text.indent_at(item.begin)
        if item.name == name.encode():
            (matches if item.within == path else elsewhere).append(item)
    _check_place(name, path, closes, matches, elsewhere, style)
    close = closes[0] if closes else None
    return Location(
        tuple(_statement(text, item) for item in matches), lambda: _insertion(text, name, close, indent, style)
    )


def sections_of(items: Iterable[BlockItem], names: Collection[str], style: BlockStyle) -> dict[str, set[str]]:
    """Map the blocks to the directives among `names` that they contain."""
    sections: dict[str, set[str]] = {}
    for item in items:
        if path := item.closes or item.within:
            sections.setdefault(_section(path, style), set()).update(
                {item.name.decode("utf-8", "replace")} & set(names)
            )
    return sections


def _check_place(
    name: str,
    path: BlockPath,
    closes: Sequence[int],
    matches: Sequence[BlockItem],
    elsewhere: Sequence[BlockItem],
    style: BlockStyle,
) -> None:
    hint = f"; {_fix(name, elsewhere[-1].within, style)}" if elsewhere else ""
    if path and not closes:
        raise ConfigError(f"no section {_section(path, style)}{hint}")
    if len(closes) > 1:
        raise ConfigError(several([path] * len(closes), path, style))
    if not path and not matches and elsewhere:
        raise ConfigError(f"{name} is not at the top level{hint}")


def several(sections: Sequence[BlockPath], path: BlockPath, style: BlockStyle) -> str:
    """Return the message about several sections of the same name, with one that can be told apart."""
    other = next((section for section in sections if section != path), None)
    fix = f"set section in the knob, e.g. section = '{_section(other, style)}'" if other else "edit the file by hand"
    return f"{len(sections)} sections {_section(path, style)}: cannot tell which; {fix}"


def _section(path: BlockPath, style: BlockStyle) -> str:
    return " ".join(f"{excerpt(header)}{style.opener}".lstrip() for header in path)


def _fix(name: str, path: BlockPath, style: BlockStyle) -> str:
    """Return the change to the knob by which it finds the directive."""
    if not path:
        return f"{name} is at the top level: remove section from the knob"
    return f"{name} is in another section: set section = '{_section(path, style)}' in the knob"


def _statement(text: ConfigText, item: BlockItem) -> Statement:
    start, end = item.value
    shown = text.shown(start, end)
    return Statement(shown, item.value, _removal(text, item.begin, item.end), text.line_number(start), start == end)


def _removal(text: ConfigText, begin: int, end: int) -> TextSpan:
    """Return the span to delete: whole lines if the directive is alone on them."""
    line, stop = text.line_start(begin), text.line_end(end)
    if text[line:begin].strip() or text[end:stop].strip():
        return begin, end + (text[end : end + 1] == b" ")
    return text.whole_lines(line, stop)


def _insertion(text: ConfigText, name: str, close: int | None, indent: bytes, style: BlockStyle) -> Insertion:
    before = name.encode() + style.assign
    if close is None:
        return text.new_line(len(text), before, style.terminator)
    if not style.opener:
        return text.new_line(close, (indent or b"    ") + before, style.terminator)
    start = text.line_start(close)
    outer = text[start:close]
    if not outer.strip() and start:
        return Insertion(start, (indent or nested_indent(outer)) + before, style.terminator + text.ending)
    if not style.inline:
        raise ConfigError(f"the section is on one line; add {name} by hand")
    return Insertion(close, before, style.terminator + b" ")
