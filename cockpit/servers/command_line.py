"""The command line of a unit: the words of its last ExecStart. Pure."""

from __future__ import annotations

import re

from cockpit.servers.editing import Span

_EXEC_START = re.compile(rb"(?m)^ExecStart[ \t]*=[ \t]*((?:[^\\\n]|\\[^\n]|\\\n)*)")
_WORD = re.compile(rb"(?:[^\s\\]|\\[^\n])+")
# A word without quotes, variables and specifiers.
PLAIN = re.compile(rb"[\w.,:/=+@~\[\]-]+")


def command_line(text: bytes) -> Span | None:
    """The span of the last command, with the lines that backslashes join to it; None without one."""
    commands = list(_EXEC_START.finditer(text))
    return commands[-1].span(1) if commands else None


def words(text: bytes, start: int, end: int) -> list[Span]:
    """The spans of the words in a part of a text, separated by spaces alone: quotes stay in them."""
    return [found.span() for found in _WORD.finditer(text, start, end)]
