"""The command line in a systemd unit: the words of its last ExecStart. Pure."""

from __future__ import annotations

import re

from cockpit.servers.editing import ConfigText, TextSpan

_EXEC_START = re.compile(rb"(?m)^ExecStart[ \t]*=[ \t]*((?:[^\\\n]|\\[^\n]|\\\n)*)")
# The end of a line that the next one continues, with the comments between them.
_JOINED = re.compile(rb"\\\r?\n(?:[ \t]*[#;][^\n]*(?:\n|$))*")
_COMMENT = re.compile(rb"[ \t]*[#;]")
_WORD = re.compile(rb"(?:[^\s\\]|\\[^\n])+")
# A word without quotes, variables and specifiers.
PLAIN = re.compile(rb"[\w.,:/=+@~\[\]-]+")


def join_lines(text: ConfigText) -> ConfigText:
    """Return the text with spaces instead of the ends of continued lines and the comments between them. Positions stay
    the same."""
    parts, at = [], 0
    while match := _JOINED.search(text, at):
        if _COMMENT.match(text, text.line_start(match.start())):
            end = text.line_end(match.start())
            parts.append(text[at:end])
        else:
            end = match.end()
            parts += [text[at : match.start()], b" " * len(match[0])]
        at = end
    return ConfigText(b"".join((*parts, text[at:])))


def command_line(text: ConfigText) -> TextSpan | None:
    """Return the span of the last ExecStart command with its continuation lines; None if there is none."""
    commands = list(_EXEC_START.finditer(text))
    return commands[-1].span(1) if commands else None


def words(text: ConfigText, start: int, end: int) -> list[TextSpan]:
    """Return the spans of the words between `start` and `end`. Only spaces separate words; quotes have no effect."""
    return [match.span() for match in _WORD.finditer(text, start, end)]
