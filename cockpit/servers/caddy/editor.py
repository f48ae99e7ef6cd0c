"""Directives of a Caddyfile: located and spelled. Pure.

A value is the directive's arguments; of a directive with a block those before the brace. A section is a path of blocks,
outermost first: `:80 { reverse_proxy localhost:9000 {`. The global options are `{`, and their blocks `{ servers {`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from cockpit.servers import blocks
from cockpit.servers.blocks import BlockItem, BlockPath, BlockStyle
from cockpit.servers.caddy.grammar import GLOBAL, IMPORT, is_address, items, path_of, tokens
from cockpit.servers.editing import (
    ConfigError,
    Grammar,
    Insertion,
    Location,
    checked,
    line_ending,
    new_line,
)

_STYLE = BlockStyle()
# Blocks of the global options that are added with their first setting.
_ADDED: tuple[BlockPath, ...] = ((GLOBAL,), (GLOBAL, "servers"), (GLOBAL, "servers", "timeouts"))
_TRANSPORT = "transport http"
_MATCHERS = ("*", "/", "@")


class CaddyGrammar(Grammar):
    names = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
    including = (IMPORT.decode(),)
    variable = re.compile(r"\{\$\w+(?::[^{}\s\"`\\#]*)?\}")

    def locate(self, text: bytes, name: str, section: str | None) -> Location:
        path = path_of(section)
        every = list(items(text))
        ends = [item.begin for item in every if item.closes == path]
        if path in _ADDED and not ends:
            return Location((), lambda: _with_blocks(text, name, path, every))
        location = blocks.locate(text, name, path, every, _STYLE)
        if len(location.found) > 1 and name not in self.including:
            times = len(location.found)
            raise ConfigError(f"it has {name} {times} times there; change them by hand", location.found[-1].line)
        if not path:
            return location._replace(insertion=_no_section)
        if any(item.closes == path and not item.name for item in every):
            return location._replace(insertion=lambda: _at_the_end(text, name))
        return location

    def sections_of(self, text: bytes, names: Collection[str]) -> dict[str, set[str]]:
        return blocks.sections_of(items(text), names, _STYLE)

    def includes(self, text: bytes, section: str | None) -> list[tuple[str, int]]:
        """Without the arguments of imports."""
        return [(path.split()[0].strip("\"'`"), line) for path, line in super().includes(text, section) if path]

    def spell(self, value: str, like: bytes | None = None) -> bytes:
        raw = checked(value)
        words = list(tokens(raw))
        if any(word.text in (b"{", b"}") for word in words):
            raise ConfigError("it contains { or }, which Caddy takes for a block, in quotes too")
        if not words or words[-1].end != len(raw):
            raise ConfigError("it contains a # that would begin a comment")
        return raw


def header_of(section: str) -> Sequence[str]:
    """The words of the innermost header of a section, behind the sort of block that it is: a site, the global options,
    a proxy's transport with the proxy's addresses."""
    try:
        path = path_of(section)
    except ConfigError:
        return ()
    if not path:
        return ()
    if len(path) == 1:
        words = path[0].split() or ["options"]
        return ("site", *words) if is_address(path[0]) else words
    if path[-1] != _TRANSPORT:
        return path[-1].split()
    return (_TRANSPORT, *(word for word in path[-2].split()[1:] if not word.startswith(_MATCHERS)))


def _no_section() -> Insertion:
    raise ConfigError("it is not set; give the knob the section to add it to, as section = ':80 {'")


def _at_the_end(text: bytes, name: str) -> Insertion:
    """In a site without braces, which ends with the file."""
    if b"\\" in text.rstrip(b"\r\n").rpartition(b"\n")[2]:
        raise ConfigError("its last line has a backslash; add it by hand")
    return new_line(text, len(text), f"{name} ".encode())


def _with_blocks(text: bytes, name: str, path: BlockPath, every: Sequence[BlockItem]) -> Insertion:
    """The place of a setting whose blocks are missing, with these blocks around it: global options are at the start."""
    ends = {item.closes: item.begin for item in every if item.closes}
    known = max(depth for depth in range(len(path)) if depth == 0 or path[:depth] in ends)
    at, indent = 0, b""
    if known:
        close = ends[path[:known]]
        at = text.rfind(b"\n", 0, close) + 1
        if text[at:close].strip() or not at:
            raise ConfigError("the section around it is on one line; add it by hand")
        indent = text[at:close] + b"\t"
    ending = line_ending(text)
    before, after = b"", b"" if known else ending
    for part in path[known:]:
        before += indent + (part.encode() + b" {" if part else b"{") + ending
        after = indent + b"}" + ending + after
        indent += b"\t"
    return Insertion(at, before + indent + name.encode() + b" ", ending + after)
