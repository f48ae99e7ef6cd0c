"""Translates shell patterns such as `php-fpm*` to regular expressions of awk. Pure."""

from __future__ import annotations

_MAGIC = "*?[\\"


def is_pattern(text: str) -> bool:
    """Whether the text has wildcards or escapes."""
    return any(char in text for char in _MAGIC)


def regular(pattern: str) -> str:
    """Return the anchored extended regular expression that is equivalent to the shell pattern."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        part, at = _part(pattern, at)
        parts.append(part)
    return f"^{''.join(parts)}$"


def _part(pattern: str, at: int) -> tuple[str, int]:
    """Translate the part at `at`; return it and the position of the next part."""
    char = pattern[at]
    if char == "*":
        return ".*", at + 1
    if char == "?":
        return ".", at + 1
    if char == "\\" and at + 1 < len(pattern):
        return _literal(pattern[at + 1]), at + 2
    end = _closing(pattern, at) if char == "[" else -1
    if end > 0:
        return _bracket(pattern[at + 1 : end]), end + 1
    return _literal(char), at + 1


def _closing(pattern: str, at: int) -> int:
    """Return the position that closes the bracket at `at`; -1 if no bracket closes it, so that it is literal."""
    begin = at + 1
    if pattern[begin : begin + 1] in ("!", "^"):
        begin += 1
    # A closing bracket in first place is a member.
    return pattern.find("]", begin + 1)


def _bracket(members: str) -> str:
    negated = members[:1] in ("!", "^")
    listed = members[1:] if negated else members
    escaped = listed.replace("\\", "\\\\").replace("]", "\\]").replace("[", "\\[").replace("^", "\\^")
    return f"[{'^' if negated else ''}{escaped}]"


def _literal(char: str) -> str:
    """Escape a character. Non-ASCII characters are not put into brackets, which would split their bytes."""
    if char in "^\\[]":
        return f"\\{char}"
    return f"[{char}]" if char in ".*?+(){}|$/" else char
