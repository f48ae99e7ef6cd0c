"""Locate and encode the keywords of a HAProxy configuration text. Pure.

A keyword can have several words (`timeout client`); its value is the rest of the line without a comment. A section is
identified by its header line: `global`, `defaults`, `frontend web`. If a keyword is set several times, the last line
counts, except for some keywords of `global`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import ClassVar, NamedTuple

from cockpit.servers import blocks
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
    only_section,
)

SECTIONS = frozenset(
    {
        *(b"global", b"defaults", b"frontend", b"backend", b"listen", b"peers", b"resolvers", b"userlist", b"mailers"),
        *(b"program", b"http-errors", b"ring", b"cache", b"fcgi-app", b"log-forward", b"crt-store", b"traces"),
        *(b"log-profile", b"acme", b"healthcheck"),
    }
)
# A word with its quotes and escaped characters, or a comment to the end of the line.
_WORD = re.compile(rb"""#[^\n]*|(?:\\[^\n]|"(?:\\[^\n]|[^"\\\n])*"|'[^'\n]*'|[^\s\\"'#])+|["'\\]""")
_STYLE = BlockStyle(opener="")
# Lines between .if and .endif are in a block of this name in their section.
_CONDITION = ".if"
# Keywords without arguments: `on` is the keyword, `off` is `no` and the keyword.
FLAGS = ("option http-keep-alive", "option http-server-close", "option httpclose", "option httplog")
_NO = b"no"
# Keywords that begin no section, also at the start of a line.
_KEYWORD = re.compile(
    rb"(?:no|acl|balance|bind|bind-process|capture|chroot|compression|cookie|cpu-map|daemon|default|default-server|"
    rb"default_backend|description|dispatch|email-alert|enabled|errorfile|errorloc\d*|external-check|filter|fullconn|"
    rb"group|hash-type|http-[a-z-]+|id|ignore-persist|load-server-state-from-file|log|log-[a-z-]+|max[a-z-]+|mode|"
    rb"monitor-uri|nbproc|nbthread|node|option|persist|pidfile|quiet|rate-limit|redirect|retries|retry-on|server|"
    rb"server-[a-z-]+|(?:pre|re|un)?setenv|source|spread-checks|ca-base|crt-base|busy-polling|errorfiles|hard-stop-after|"
    rb"hold|lua-[a-z-]+|monitor|nameserver|peer|table|use-fcgi-app|ssl-[a-z-]+|stats|stick|stick-table|tcp-[a-z-]+|timeout|tune\.[\w.-]+|uid|gid|"
    rb"ulimit-n|unique-id-[a-z]+|use-server|use_backend|user)\Z"
)
# Keywords of `global` whose first line counts: later ones are "already specified" (2.6, 3.0).
_FIRST = frozenset(
    {
        *("maxconn", "maxconnrate", "maxsessrate", "maxsslrate", "maxpipes", "ulimit-n", "tune.maxaccept"),
        *("tune.maxpollevents", "tune.runqueue-depth", "spread-checks", "chroot", "pidfile"),
    }
)
_GLOBAL: BlockPath = ("global",)


class HaproxyGrammar(Grammar):
    names = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*(?: [A-Za-z0-9_.-]+){0,2}")
    parameters: ClassVar = {"bind alpn": Parameter("bind", "alpn", among="ssl")}

    def locate(self, text: ConfigText, name: str, section: str | None) -> Location:
        items = list(_items(text, len(name.split())))
        within = (item.within[0] for item in items if item.within and item.name == name.encode())
        header = " ".join(section.split()) if section else only_section(name, list(within))
        path: BlockPath = (header,) if header else ()
        for item in items:
            if item.name == name.encode() and item.within == (*path[:1], _CONDITION):
                raise text.error(f"{name} depends on an .if; change it by hand", item.begin)
        if not path:
            return Location((), _no_section)
        if path == _GLOBAL:
            # Several sections `global` are one.
            ends = [item for item in items if item.closes == _GLOBAL]
            items = [item for item in items if item not in ends[:-1]]
        location = blocks.locate(text, name, path, items, _STYLE)
        if path == _GLOBAL and name in _FIRST:
            return location._replace(statements=location.statements[::-1])
        return _as_flag(text, name, location) if name in FLAGS else location

    def encode_in(self, text: bytes, name: str, section: str | None, value: str, like: bytes | None) -> bytes:
        if name not in FLAGS:
            return super().encode_in(text, name, section, value, like)
        if value not in ("on", "off"):
            raise ConfigError("the value must be on or off")
        return name.encode() if value == "on" else _NO + b" " + name.encode()

    def sections_of(self, text: bytes, names: Collection[str]) -> dict[str, set[str]]:
        sections: dict[str, set[str]] = {}
        for length in {len(name.split()) for name in names}:
            items = (item for item in _items(ConfigText(text), length) if item.within[-1:] != (_CONDITION,))
            for section, contained in blocks.sections_of(items, names, _STYLE).items():
                sections[section] = sections.get(section, set()) | contained
        return sections

    def encode(self, value: str, like: bytes | None = None) -> bytes:
        raw = encode_line(value)
        words = list(_words(ConfigText(raw), 0, len(raw)))
        if not words or words[-1].end != len(raw) or any(not word.closed for word in words):
            raise ConfigError(
                "a value must not contain an unclosed quote, a final backslash or a # that starts a comment"
            )
        return raw

    def words(self, text: ConfigText, span: TextSpan) -> list[TextSpan]:
        return [(word.start, word.end) for word in _words(text, *span)]


class _Word(NamedTuple):
    start: int
    end: int
    closed: bool


def _words(text: ConfigText, start: int, end: int) -> Iterator[_Word]:
    while match := _WORD.search(text, start, end):
        start = match.end()
        if match[0].startswith(b"#"):
            return
        yield _Word(*match.span(), match[0] not in (b'"', b"'", b"\\"))


def _items(text: ConfigText, length: int) -> Iterator[BlockItem]:
    """Yield the lines, with their first `length` words as the name. A section ends after its last line with words."""
    within: BlockPath = ()
    at = close = conditions = 0
    indented = False
    while at < len(text):
        start, at = at, text.line_end(at)
        words = list(_words(text, start, at))
        if not words:
            continue
        first = text[words[0].start : words[0].end]
        condition = (_CONDITION,) if conditions else ()
        if first.startswith(b"."):
            conditions += (first == b".if") - (first == b".endif")
        elif first in SECTIONS or (indented and words[0].start == start and not _KEYWORD.match(first)):
            # In an indented file, an unknown word at the start of a line is a section of a later version.
            indented = False
            if within:
                yield _end(close, within)
            within = (_joined(text, words).decode("utf-8", "replace"), *condition)
        else:
            indented = indented or words[0].start > start
            yield _keyword(text, words, length, (*within[:1], *(condition or within[1:])))
        close = close if conditions and first not in SECTIONS else at
    if conditions:
        raise text.error(".if without .endif", len(text))
    if within:
        yield _end(close, within)


def _as_flag(text: ConfigText, name: str, location: Location) -> Location:
    """Turn the keyword itself into the value, on or off."""

    def insertion() -> Insertion:
        place = location.insertion()
        return place._replace(before=place.before.removesuffix(name.encode() + _STYLE.assign))

    statements = (
        statement._replace(shown="off" if text.startswith(_NO, statement.value[0]) else "on", has_no_value=False)
        for statement in location.statements
    )
    return Location(tuple(statements), insertion)


def _keyword(text: ConfigText, words: list[_Word], length: int, within: BlockPath) -> BlockItem:
    after_no = words[text[words[0].start : words[0].end] == _NO :][:length]
    if (flag := _joined(text, after_no)).decode("utf-8", "replace") in FLAGS:
        return BlockItem(flag, words[0].start, (words[0].start, after_no[-1].end), words[-1].end, within)
    head, rest = words[:length], words[length:]
    value = (rest[0].start, rest[-1].end) if rest else (words[-1].end, words[-1].end)
    return BlockItem(_joined(text, head), words[0].start, value, words[-1].end, within)


def _joined(text: ConfigText, words: list[_Word]) -> bytes:
    return b" ".join(text[word.start : word.end] for word in words)


def _end(close: int, within: BlockPath) -> BlockItem:
    return BlockItem(b"", close, (close, close), close, (), closes=within)


def _no_section() -> Insertion:
    raise ConfigError("the keyword is not set; name a section in the knob to add it, e.g. section = 'global'")
