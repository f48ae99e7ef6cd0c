"""The command line in a systemd unit: the words of its last ExecStart. Pure."""

from __future__ import annotations

import re

from cockpit.servers.editing import Span

_EXEC_START = re.compile(rb"(?m)^ExecStart[ \t]*=[ \t]*((?:[^\\\n]|\\[^\n]|\\\n)*)")
_WORD = re.compile(rb"(?:[^\s\\]|\\[^\n])+")
# A word without quotes, variables and specifiers.
PLAIN = re.compile(rb"[\w.,:/=+@~\[\]-]+")


def command_line(text: bytes) -> Span | None:
    """Return the span of the last ExecStart command with its continuation lines; None if there is none."""
    commands = list(_EXEC_START.finditer(text))
    return commands[-1].span(1) if commands else None


def words(text: bytes, start: int, end: int) -> list[Span]:
    """Return the spans of the words between `start` and `end`. Only spaces separate words; quotes have no effect."""
    return [found.span() for found in _WORD.finditer(text, start, end)]
