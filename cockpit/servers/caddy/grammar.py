r"""Words, directives and blocks of a Caddyfile, split as by Caddy 2.6, with the heredocs of Caddy 2.7. Pure.

A word ends at white space. A directive ends with its line, unless a backslash at the end of the line or in its comment
joins the next line. `{` at the end of a line opens the directive's block, even in quotes; `\{` is a word. {$NAME} is
part of a word: Caddy expands variables before it splits words. A heredoc is one word: `<<MARKER` at the end of a line,
up to a line that starts with the marker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from cockpit.servers.blocks import BlockItem, BlockPath
from cockpit.servers.editing import ConfigText, TextSpan, excerpt

# White space of Unicode in UTF-8. A carriage return is white space only before a line feed.
_SPACE = rb"[ \t\v\f]|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]|\xe2\x81\x9f|\xe3\x80\x80"
_BLANK = re.compile(rb"(?:%b|\r+(?=\n)|\\\r*\n)+" % _SPACE)
_VARIABLE = rb"\{\$[^{}\n]*\}"
_QUOTED = re.compile(rb'"(?:%b|\\.|[^"\\])*"|`[^`]*`' % _VARIABLE, re.DOTALL)
_WORD = re.compile(rb"(?:%b|\\(?!%b|[\r\n]|\Z)[^\r\n]|(?!%b)[^\\\r\n])+" % (_VARIABLE, _SPACE, _SPACE))
_OPEN_VARIABLE = re.compile(rb"\{\$[^{}\n]*(?:[{\n]|\Z)")
# Whether the quote or # starts a text or a comment depends on Caddy's version, or on whether the variable is empty.
_UNCERTAIN = re.compile(rb'(?:\\|(?:%b)+\\?)["`#]' % _VARIABLE)
_BRACES = (b"{", b"}")
# `<<` with a space after the marker is a plain word.
_HEREDOC = re.compile(rb"<<([^\n ]*)(?:\n|\Z)")
_MARKER = re.compile(rb"[A-Za-z0-9_-]+")
# A line outside of all blocks is a site without braces if it starts with an address, else a directive in an imported
# file. Names of directives contain none of these characters.
_ADDRESS = re.compile(rb'["`]?(?:localhost\b|\{\$|[^\s{(@&"`]*[.:])')
IMPORT = b"import"
# The name of the block of global options. It has no header.
GLOBAL = ""


class Token(NamedTuple):
    """A word, a brace, or the line feed at the end of a directive."""

    start: int
    end: int
    text: bytes


class _Open(NamedTuple):
    """An open block: its path, the words of its header, and the position of its brace (None: without braces)."""

    path: BlockPath
    words: tuple[Token, ...]
    brace: int | None


def tokens(text: ConfigText) -> Iterator[Token]:
    """Yield the words, braces and line feeds. Raises ConfigError for texts whose words depend on Caddy's version or on
    the environment."""
    if broken := _OPEN_VARIABLE.search(text):
        raise text.error("a {$ is not closed on its line", broken.start())
    at, continued = 0, False
    while at < len(text):
        if blank := _BLANK.match(text, at):
            at, continued = blank.end(), continued or b"\\" in blank[0]
        elif text[at : at + 1] == b"#":
            end = text.line_stop(at)
            # A backslash anywhere in a comment joins the next line.
            joins = b"\\" in text[at:end]
            at, continued = min(end + joins, len(text)), continued or joins
        elif text[at : at + 1] == b"\n":
            yield Token(at, at + 1, b"\n")
            at, continued = at + 1, False
        else:
            token = _heredoc(text, at) or _word(text, at)
            if continued and b"\n" in token.text:
                raise text.error("a multi-line text on a continuation line", at)
            yield token
            at = token.end


def _word(text: ConfigText, at: int) -> Token:
    sign = text[at : at + 1]
    quoted = sign in (b'"', b"`")
    match = _QUOTED.match(text, at) if quoted else _WORD.match(text, at)
    if problem := _problem(sign, match[0] if match else b"", quoted):
        raise text.error(problem, at)
    assert match is not None
    # Caddy reads a brace as that of a block, even in quotes.
    inner = match[0][1:-1] if quoted else match[0]
    return Token(at, match.end(), inner if inner in _BRACES else match[0])


def _problem(sign: bytes, word: bytes, quoted: bool) -> str:
    """Return why a text with this word cannot be edited; "" if it can. `sign` is the first byte; `word` is empty if no
    word matches."""
    if not word and quoted:
        return "a quote is never closed"
    if not word:
        return "a backslash before a space or at the end" if sign == b"\\" else "a carriage return within a line"
    if _UNCERTAIN.match(word):
        return "a backslash or a {$NAME} before a quote or a #"
    return ""


def _heredoc(text: ConfigText, at: int) -> Token | None:
    """Return the heredoc at `at`; None: another word. Raises ConfigError if it is malformed."""
    opened = _HEREDOC.match(text, at)
    if opened is None:
        return None
    marker = opened[1].replace(b"\r", b"")
    closed = text.find(marker, opened.end()) if _MARKER.fullmatch(marker) else -1
    if closed < 0:
        raise text.error("a heredoc (<<) is never closed", at)
    end = closed + len(marker)
    if text[text.line_start(closed) : closed].strip(b" \t") or text[end : end + 1].strip():
        raise text.error("the closing marker of a heredoc shares its line with other text", closed)
    return Token(at, end, text[at:end])


def items(text: ConfigText) -> Iterator[BlockItem]:
    """Yield the directives and the ends of blocks. A directive with a block follows the end of its block; its value is
    the words before the brace."""
    blocks: list[_Open] = []
    words: list[Token] = []
    # The position after a brace that must be followed by a line feed; None: no restriction.
    ended = None
    for token in tokens(text):
        if token.text == b"\n":
            ended = None
            if words and not (not blocks and words[-1].text.endswith(b",")):
                yield from _line(words, blocks)
                words = []
            continue
        if ended is not None:
            raise text.error("unexpected text after a brace on its line", token.start)
        if token.text == b"{":
            blocks.append(_opened(text, token, words, blocks))
            # The brace of a site can be followed by a directive on the same line.
            ended, words = (token.end if len(blocks) > 1 else None), []
        elif token.text == b"}":
            if words or not blocks or blocks[-1].brace is None:
                raise text.error("unexpected }", token.start)
            yield from _closed(token, blocks.pop())
            ended = token.end
        else:
            words.append(token)
    yield from _line(words, blocks)
    yield from _end(text, blocks)


def path_of(section: str | None) -> BlockPath:
    """Split a section such as `:80 { handle /x {` into its blocks, outermost first; `{ servers {` starts with the
    global options. Raises ConfigError."""
    names: list[list[str]] = [[]]
    words = [token.text for token in tokens(ConfigText((section or "").encode())) if token.text != b"\n"]
    for word in words:
        if word == b"{":
            names.append([])
        else:
            names[-1].append(word.decode("utf-8", "replace"))
    if not names[-1]:
        names.pop()
    return tuple(" ".join(words) for words in names)


def is_address(header: str) -> bool:
    """Return whether the header of a block is the address of a site."""
    return _ADDRESS.match(header.encode()) is not None


def _line(words: list[Token], blocks: list[_Open]) -> Iterator[BlockItem]:
    if not words:
        return
    if not blocks and words[0].text != IMPORT and _ADDRESS.match(words[0].text):
        blocks.append(_Open((_header(words),), tuple(words), None))
        return
    yield _directive(words, words[-1].end, blocks[-1].path if blocks else ())


def _opened(text: ConfigText, brace: Token, words: list[Token], blocks: list[_Open]) -> _Open:
    outer = blocks[-1].path if blocks else ()
    if not words and (outer or text[text.line_start(brace.start) : brace.start].strip()):
        raise text.error("unexpected {: no name before it on its line", brace.start)
    return _Open((*outer, _header(words) if words else GLOBAL), tuple(words), brace.start)


def _closed(brace: Token, block: _Open) -> Iterator[BlockItem]:
    outer = block.path[:-1]
    if block.words:
        yield _directive(list(block.words), brace.end, outer)
    yield BlockItem(b"}", brace.start, (brace.end, brace.end), brace.end, outer, closes=block.path)


def _end(text: ConfigText, blocks: list[_Open]) -> Iterator[BlockItem]:
    if not blocks:
        return
    last = blocks[-1]
    if last.brace is not None:
        raise text.error(f"the block {excerpt(last.path[-1])} {{ is never closed", last.brace)
    yield BlockItem(b"", len(text), (len(text), len(text)), len(text), (), closes=last.path)


def _directive(words: list[Token], end: int, within: BlockPath) -> BlockItem:
    value: TextSpan = (words[1].start, words[-1].end) if len(words) > 1 else (words[0].end, words[0].end)
    return BlockItem(words[0].text, words[0].start, value, end, within)


def _header(words: list[Token]) -> str:
    return " ".join(word.text.decode("utf-8", "replace") for word in words)
