"""Assignments in a text that a shell sources, e.g. in /etc/default. Pure; the text is parsed, never run.

Quotes, here-documents, comments and command substitutions are skipped as by a POSIX shell, so that only real
assignments are found.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cockpit.servers.editing import ConfigText, ends_escaped

_ASSIGNMENT = re.compile(rb"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_HERE_DOCUMENT = re.compile(rb"<<(-?)[ \t]*(?:\"([^\"\n]+)\"|'([^'\n]+)'|\\?([A-Za-z_][A-Za-z0-9_]*))")
_ENDS_WORD = b" \t\r\n;&|<>()"
_IDENTIFIER = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
_DECLARES = frozenset({b"export", b"readonly", b"declare", b"typeset", b"local"})
# Keywords that can be followed by a command.
_KEYWORDS = frozenset({b"if", b"then", b"else", b"elif", b"fi", b"while", b"until", b"do", b"done", b"{", b"}", b"!"})
# Keywords around commands that might not be executed, or not in this shell.
_OPENS = frozenset({b"if", b"while", b"until", b"for", b"case", b"{"})
_CLOSES = frozenset({b"fi", b"done", b"esac", b"}"})
_COMMANDS = frozenset(
    (
        *(b"for", b"case", b"esac", b"in", b".", b"source", b":", b"[", b"[[", b"test", b"unset", b"set", b"shift"),
        *(b"exit", b"return", b"ulimit", b"umask", b"true", b"false", b"echo", b"printf", b"cd", b"eval", b"shopt"),
    )
)


class ShellAssignment(NamedTuple):
    """An assignment `NAME=value` and the span of its value. `append`: `NAME+=`; `is_prefix`: it applies only to the
    command that follows it; `is_computed`: the value is an array or the output of a command. `is_conditional`: whether
    it is executed depends on a command; also an argument `NAME` of a command such as `unset` or `read`."""

    name: bytes
    start: int
    value: tuple[int, int]
    append: bool
    is_computed: bool
    is_prefix: bool = False
    is_conditional: bool = False

    @property
    def is_plain(self) -> bool:
        return not (self.append or self.is_computed or self.is_prefix or self.is_conditional)


class ShellText(NamedTuple):
    """A parsed text. `blocks` are spans of quoted or literal text over several lines; `unknown` is the position of the
    first word that is not a known shell command, or opens a condition that is never closed; None: there is none."""

    assignments: tuple[ShellAssignment, ...]
    blocks: tuple[tuple[int, int], ...]
    unknown: int | None


def parse(text: ConfigText) -> ShellText:
    """Parse a text. Raises ConfigError if a quote is never closed."""
    return _Reader(text).read()


def word_end(text: ConfigText, start: int) -> int:
    """Return the end of a word, including its quotes. Raises ConfigError if a quote is never closed."""
    at = start
    while at < len(text) and text[at] not in _ENDS_WORD:
        at = _part_end(text, at)
    return min(at, len(text))


def _part_end(text: ConfigText, at: int, quoted: bool = False) -> int:
    """Return the end of the quoted part, substitution or byte at `at`; `quoted`: inside double quotes."""
    byte = text[at]
    if byte == 0x27 and not quoted:
        return _closing(text, at, text.find(b"'", at + 1))
    if byte == 0x22:
        return _nested_end(text, at, at + 1, b'"', quoted=True)
    if byte == 0x60:
        return _nested_end(text, at, at + 1, b"`")
    if text[at : at + 2] == b"$(":
        return _nested_end(text, at, at + 2, b")")
    if text[at : at + 2] == b"${":
        return _nested_end(text, at, at + 2, b"}", quoted)
    return at + 2 if byte == 0x5C else at + 1


def _closing(text: ConfigText, start: int, at: int) -> int:
    if at < 0 or at >= len(text):
        raise text.error("a quote is never closed", start)
    return at + 1


def _nested_end(text: ConfigText, start: int, at: int, sign: bytes, quoted: bool = False) -> int:
    """Return the end of the part that `sign` closes, skipping nested quotes and substitutions."""
    while at < len(text) and text[at] != sign[0]:
        if text[at] == 0x5C:
            at += 2
        elif sign == b")" and text[at] == 0x28:
            at = _nested_end(text, at, at + 1, b")")
        elif sign == b"`":
            at += 1
        else:
            at = _part_end(text, at, quoted)
    return _closing(text, start, at)


class _Reader:
    def __init__(self, text: ConfigText) -> None:
        self._text = text
        self._found: list[ShellAssignment] = []
        self._blocks: list[tuple[int, int]] = []
        self._unknown: int | None = None
        self._waiting: list[tuple[bytes, bool, bool]] = []
        self._command = True
        self._declares = False
        self._statement = 0
        self._depth = self._cases = self._opened = 0
        # The number of open `case` at each open parenthesis: the sign `)` also ends a pattern of a `case`.
        self._parentheses: list[int] = []
        self._chained = False

    def read(self) -> ShellText:
        at = 0
        while at < len(self._text):
            at = self._step(at)
        if self._unknown is None and self._is_inside():
            self._unknown = self._opened
        return ShellText(tuple(self._found), tuple(self._blocks), self._unknown)

    def _is_inside(self) -> bool:
        """Return whether a command decides if the next assignment is executed."""
        return self._depth > 0 or bool(self._parentheses) or self._chained

    def _step(self, at: int) -> int:
        text, byte = self._text, self._text[at]
        if byte == 0x0A:
            self._chained = self._chained and self._command
            self._next_command()
            return self._here_documents(at + 1)
        if byte in b" \t\r":
            return at + 1
        if text[at : at + 2] == b"\\\n":
            return at + 2
        if byte == 0x23 or (byte == 0x3B and self._begins_comment(at)):
            return text.line_stop(at)
        if byte in b"<>":
            return self._redirection(at)
        if byte in b";&|()":
            if byte == 0x28:
                self._parentheses.append(self._cases)
            elif byte == 0x29 and self._parentheses[-1:] == [self._cases]:
                self._parentheses.pop()
            self._chained = byte in b"&|"
            self._opened = at
            self._next_command()
            return at + 1
        return self._word(at)

    def _begins_comment(self, at: int) -> bool:
        """Return whether a semicolon starts a comment of systemd's EnvironmentFile, which no shell accepts."""
        text = self._text
        return text[at + 1 : at + 2] != b";" and not text[text.line_start(at) : at].strip()

    def _next_command(self) -> None:
        self._command, self._declares, self._statement = True, False, len(self._found)

    def _redirection(self, at: int) -> int:
        document = _HERE_DOCUMENT.match(self._text, at)
        if document and self._text[at : at + 3] != b"<<<":
            is_quoted = document[4] is None or b"\\" in document[0]
            self._waiting.append((document[2] or document[3] or document[4], bool(document[1]), is_quoted))
            return document.end()
        if self._command and self._unknown is None:
            self._unknown = at
        while at < len(self._text) and self._text[at] in b"<>&|":
            at += 1
        while at < len(self._text) and self._text[at] in b" \t":
            at += 1
        return word_end(self._text, at)

    def _here_documents(self, at: int) -> int:
        """Return the end of the here-documents that start at this line."""
        for delimiter, tabs, is_quoted in self._waiting:
            start, line = at, None
            while at < len(self._text) and line != delimiter:
                end = self._text.line_end(at)
                while not is_quoted and ends_escaped(self._text[at:end].removesuffix(b"\n")) and end < len(self._text):
                    end = self._text.line_end(end)
                line = self._text[at:end].rstrip(b"\r\n")
                line = line.lstrip(b"\t") if tabs else line
                at = end
            if line != delimiter:
                raise self._text.error("a here-document is never closed", start)
            self._blocks.append((start, at))
        self._waiting = []
        return at

    def _word(self, at: int) -> int:
        end = max(word_end(self._text, at), at + 1)
        word = self._text[at:end]
        if b"\n" in word:
            self._blocks.append((at, end))
        match = _ASSIGNMENT.match(word)
        if match and (self._command or self._declares):
            self._found.append(self._assignment(at, end, match))
        elif self._command:
            self._read_command(word, at, end)
        elif _IDENTIFIER.fullmatch(word) and not self._declares:
            self._found.append(ShellAssignment(word, at, (end, end), False, False, is_conditional=True))
        return end

    def _assignment(self, at: int, end: int, match: re.Match[bytes]) -> ShellAssignment:
        start = at + match.end()
        array = start == end and self._text[end : end + 1] == b"("
        computed = array or _substitutes(ConfigText(self._text[start:end]))
        append = bool(match[2])
        return ShellAssignment(match[1], at, (start, end), append, computed, is_conditional=self._is_inside())

    def _read_command(self, word: bytes, at: int, end: int) -> None:
        self._depth = max(0, self._depth + (word in _OPENS) - (word in _CLOSES))
        self._cases = max(0, self._cases + (word == b"case") - (word == b"esac"))
        self._opened = at if word in _OPENS else self._opened
        if word in _KEYWORDS:
            return
        self._command = False
        self._declares = word in _DECLARES
        for number in range(self._statement, len(self._found)):
            self._found[number] = self._found[number]._replace(is_prefix=True)
        labels = self._text[end : end + 1] in (b")", b"(")
        if self._unknown is None and not labels and not self._declares and word not in _COMMANDS:
            self._unknown = at


def _substitutes(raw: ConfigText) -> bool:
    """Return whether the value contains a command substitution outside of quotes."""
    at = 0
    while at < len(raw):
        if raw[at] == 0x60 or raw[at : at + 2] == b"$(":
            return True
        at = _part_end(raw, at)
    return False
