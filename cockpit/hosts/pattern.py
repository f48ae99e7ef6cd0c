"""A shell pattern (`php-fpm*`) as the regular expression that awk understands. Pure."""

from __future__ import annotations

_MAGIC = "*?[\\"


def is_pattern(text: str) -> bool:
    """Whether the text has wildcards or escapes."""
    return any(sign in text for sign in _MAGIC)


def regular(pattern: str) -> str:
    """The anchored extended regular expression that is equivalent to the shell pattern."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        part, at = _part(pattern, at)
        parts.append(part)
    return f"^{''.join(parts)}$"


def _part(pattern: str, at: int) -> tuple[str, int]:
    """The part at `at`, translated, and the position of the next."""
    sign = pattern[at]
    if sign == "*":
        return ".*", at + 1
    if sign == "?":
        return ".", at + 1
    if sign == "\\" and at + 1 < len(pattern):
        return _literal(pattern[at + 1]), at + 2
    end = _closing(pattern, at) if sign == "[" else -1
    if end > 0:
        return _bracket(pattern[at + 1 : end]), end + 1
    return _literal(sign), at + 1


def _closing(pattern: str, at: int) -> int:
    """The position that closes the bracket at `at`; -1 if it is never closed, and so literal."""
    begin = at + 1
    if pattern[begin : begin + 1] in ("!", "^"):
        begin += 1
    # A closing bracket at the very beginning is a member.
    return pattern.find("]", begin + 1)


def _bracket(members: str) -> str:
    negated = members[:1] in ("!", "^")
    listed = members[1:] if negated else members
    escaped = listed.replace("\\", "\\\\").replace("]", "\\]").replace("[", "\\[").replace("^", "\\^")
    return f"[{'^' if negated else ''}{escaped}]"


def _literal(sign: str) -> str:
    """A literal character. Beyond ASCII, a bracket would separate its bytes."""
    if sign in "^\\[]":
        return f"\\{sign}"
    return f"[{sign}]" if sign in ".*?+(){}|$/" else sign
