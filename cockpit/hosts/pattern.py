"""Translates shell patterns such as `php-fpm*` to regular expressions of awk. Pure."""

from __future__ import annotations

import re

_MAGIC = "*?[\\"
# An escaped character, a bracket, or another character. A closing bracket in first place is a member; a bracket that
# none closes is literal.
_PART = re.compile(r"\\(.)|\[([!^]?+)(.[^]]*)\]|(.)", re.DOTALL)


def is_pattern(text: str) -> bool:
    """Whether the text has wildcards or escapes."""
    return any(char in text for char in _MAGIC)


def regular(pattern: str) -> str:
    """Return the anchored extended regular expression that is equivalent to the shell pattern."""
    return f"^{_PART.sub(_translated, pattern)}$"


def _translated(part: re.Match[str]) -> str:
    escaped, negation, members, char = part.groups()
    if members is not None:
        listed = re.sub(r"[\\\]\[^]", r"\\\g<0>", members)
        return f"[{'^' if negation else ''}{listed}]"
    return {"*": ".*", "?": "."}.get(char) or _literal(escaped or char)


def _literal(char: str) -> str:
    """Escape a character. Non-ASCII characters are not put into brackets, which would split their bytes."""
    if char in "^\\[]":
        return f"\\{char}"
    return f"[{char}]" if char in ".*?+(){}|$/" else char
