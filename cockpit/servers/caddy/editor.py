"""Locate and encode the directives of a Caddyfile. Pure.

A value is the arguments of a directive, up to the brace of its block if it has one. A section is a path of blocks,
outermost first: `:80 { reverse_proxy localhost:9000 {`. The global options are `{`, a block in them is `{ servers {`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from cockpit.servers import blocks
from cockpit.servers.blocks import BlockItem, BlockPath, BlockStyle
from cockpit.servers.caddy.grammar import GLOBAL, IMPORT, is_address, items, path_of, tokens
from cockpit.servers.editing import ConfigError, ConfigText, Grammar, Insertion, Location, encode_line

_STYLE = BlockStyle()
# Blocks of the global options that are created with their first setting.
_CREATED: tuple[BlockPath, ...] = ((GLOBAL,), (GLOBAL, "servers"), (GLOBAL, "servers", "timeouts"))
_TRANSPORT = "transport http"
_MATCHERS = ("*", "/", "@")


class CaddyGrammar(Grammar):
    names = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
    including = (IMPORT.decode(),)
    variable = re.compile(r"\{\$\w+(?::[^{}\s\"`\\#]*)?\}")

    def locate(self, text: ConfigText, name: str, section: str | None) -> Location:
        path = path_of(section)
        block_items = list(items(text))
        ends = [item.begin for item in block_items if item.closes == path]
        if path in _CREATED and not ends:
            return Location((), lambda: _with_blocks(text, name, path, block_items))
        location = blocks.locate(text, name, path, block_items, _STYLE)
        if len(location.statements) > 1 and name not in self.including:
            times = len(location.statements)
            raise ConfigError(
                f"{name} is set {times} times in this section; change it by hand", location.statements[-1].line
            )
        if not path:
            return location._replace(insertion=_no_section)
        if any(item.closes == path and not item.name for item in block_items):
            return location._replace(insertion=lambda: _at_the_end(text, name))
        return location

    def sections_of(self, text: bytes, names: Collection[str]) -> dict[str, set[str]]:
        return blocks.sections_of(items(ConfigText(text)), names, _STYLE)

    def includes(self, text: bytes, section: str | None) -> list[tuple[str, int]]:
        """Return the included files without the arguments of the imports; see Grammar.includes."""
        return [(path.split()[0].strip("\"'`"), line) for path, line in super().includes(text, section) if path]

    def encode(self, value: str, like: bytes | None = None) -> bytes:
        raw = encode_line(value)
        words = list(tokens(ConfigText(raw)))
        if any(word.text in (b"{", b"}") for word in words):
            raise ConfigError("a value must not contain { or }: Caddy reads them as a block, even in quotes")
        if not words or words[-1].end != len(raw):
            raise ConfigError("a value must not contain a # that starts a comment")
        return raw


def header_of(section: str) -> Sequence[str]:
    """Return the type of the innermost block (site, options, `transport http`, or a directive), then the words of its
    header; for a transport, the addresses of its proxy."""
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
    raise ConfigError("the directive is not set; name a section in the knob to add it, e.g. section = ':80 {'")


def _at_the_end(text: ConfigText, name: str) -> Insertion:
    """Return the insertion in a site without braces, which ends with the file."""
    if b"\\" in text.rstrip(b"\r\n").rpartition(b"\n")[2]:
        raise ConfigError(f"the last line contains a backslash; add {name} by hand")
    return text.new_line(len(text), f"{name} ".encode())


def _with_blocks(text: ConfigText, name: str, path: BlockPath, block_items: Sequence[BlockItem]) -> Insertion:
    """Return the insertion of a global option together with its missing blocks. Global options are at the start of the
    file."""
    ends = {item.closes: item.begin for item in block_items if item.closes}
    known = max(depth for depth in range(len(path)) if depth == 0 or path[:depth] in ends)
    at, indent = 0, b""
    if known:
        close = ends[path[:known]]
        at = text.line_start(close)
        if text[at:close].strip() or not at:
            raise ConfigError(f"the section is on one line; add {name} by hand")
        indent = text[at:close] + b"\t"
    ending = text.ending
    before, after = b"", b"" if known else ending
    for part in path[known:]:
        before += indent + (part.encode() + b" {" if part else b"{") + ending
        after = indent + b"}" + ending + after
        indent += b"\t"
    return Insertion(at, before + indent + name.encode() + b" ", ending + after)
