"""Parser for Apache configuration texts: logical lines, words and nested sections, with their positions. Pure.

The rules are those of httpd: a backslash at the end of a line joins the next line (in comments, too), words can be
quoted, `#` starts a comment only as the first character of a line. Names of sections are case-insensitive, their
arguments are case-sensitive.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cockpit.servers.editing import SPACE, ConfigError, ConfigText, LogicalLine

# A section of this name is only a definition: its content applies where the macro is used.
MACRO = "macro"


class Word(NamedTuple):
    """A word of a line: its content, its span in the body including quotes, and its `quote`, b"" if it has none."""

    content: bytes
    start: int
    end: int
    quote: bytes
    closed: bool


class ConfigBlock(NamedTuple):
    """The opening tag of a section: `name` in lower case, `argument` as in the file."""

    name: str
    argument: str
    header: str
    line: LogicalLine


class Item(NamedTuple):
    """A directive, or the end of a section (`closes`), and its enclosing sections, outermost first."""

    line: LogicalLine
    name: Word
    within: tuple[ConfigBlock, ...]
    closes: ConfigBlock | None = None


def lines(text: ConfigText) -> Iterator[LogicalLine]:
    """Yield the logical lines, including blank lines and comments. Their spans cover the text without gaps."""
    start, number = 0, 1
    while start < len(text):
        at, first = start, number
        body = b""
        pieces: list[tuple[int, int]] = []
        continued = True
        while continued and at < len(text):
            stop, end = text.line_stop(at), text.line_end(at)
            pieces.append((len(body), at))
            body += text[at:stop]
            body = body.removesuffix(b"\r") if end > stop else body
            continued = end > stop and body.endswith(b"\\")
            if continued:
                body = body[:-1]
                pieces = [piece for piece in pieces if piece[0] <= len(body)]
            at, number = end, number + 1
        yield LogicalLine(first, start, at, body, tuple(pieces), continued)
        start = at


def word_at(body: bytes, at: int) -> Word | None:
    """Return the next word of `body` from `at`; None at its end."""
    while at < len(body) and body[at] in SPACE:
        at += 1
    if at == len(body):
        return None
    quote = body[at : at + 1] if body[at] in b"\"'" else b""
    content = bytearray()
    end = at + len(quote)
    while end < len(body) and (body[end] not in quote if quote else body[end] not in SPACE):
        if body[end] == 0x5C and end + 1 < len(body) and body[end + 1] in b"\\" + quote:
            end += 1
        content.append(body[end])
        end += 1
    closed = not quote or end < len(body)
    return Word(bytes(content), at, end + 1 if quote and closed else end, quote, closed)


def words(body: bytes, at: int = 0) -> Iterator[Word]:
    while word := word_at(body, at):
        yield word
        at = word.end


def items(text: ConfigText) -> Iterator[Item]:
    """Yield the directives and section ends in order. Raises ConfigError if sections are not properly nested."""
    within: tuple[ConfigBlock, ...] = ()
    for line in lines(text):
        name = word_at(line.body, 0)
        if name is None or line.body[name.start : name.start + 1] == b"#":
            continue
        if within and _contains_code(within[-1]) and not _closes(within[-1], name):
            continue
        if name.content.startswith(b"</"):
            closing = name.content[2:].rstrip(b">").decode("utf-8", "replace")
            if not within or within[-1].name != closing.lower():
                raise ConfigError(f"</{closing}> closes no open section", line.number)
            yield Item(line, name, within[:-1], closes=within[-1])
            within = within[:-1]
        elif name.content.startswith(b"<"):
            within = (*within, _block(line, name))
        else:
            yield Item(line, name, within)
    if within:
        raise ConfigError(f"<{within[-1].header}> is never closed", within[-1].line.number)


def _contains_code(block: ConfigBlock) -> bool:
    """Return whether a section contains code instead of directives: <Perl>, <LuaHook…>."""
    return block.name == "perl" or block.name.startswith("lua")


def _closes(block: ConfigBlock, name: Word) -> bool:
    return name.content.lower().rstrip(b">") == b"</" + block.name.encode()


def _block(line: LogicalLine, name: Word) -> ConfigBlock:
    opening = line.body.rstrip(SPACE).removesuffix(b">")
    kind = name.content[1:].rstrip(b">").decode("utf-8", "replace")
    argument = opening[name.end :].strip(SPACE).decode("utf-8", "backslashreplace")
    return ConfigBlock(kind.lower(), argument, f"{kind} {argument}".strip(), line)
