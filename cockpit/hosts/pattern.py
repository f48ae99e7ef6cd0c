"""A shell pattern (`php-fpm*`) as the regular expression that awk understands. Pure."""

from __future__ import annotations

_MAGIC = "*?[\\"


def is_pattern(text: str) -> bool:
    """Whether a shell would take it for more than the text that it is."""
    return any(sign in text for sign in _MAGIC)


def regular(pattern: str) -> str:
    """The extended regular expression, anchored, that matches what the shell pattern does."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        part, at = _part(pattern, at)
        parts.append(part)
    return f"^{''.join(parts)}$"


def _part(pattern: str, at: int) -> tuple[str, int]:
    """What stands at `at` in the pattern, and where the next part begins."""
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
    """Where the bracket that opens at `at` is closed; -1 where it is not, so that it is a bracket like any other."""
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
    """A sign that stands for itself. Bytes beyond ASCII do so anyway, and a bracket would part them."""
    if sign in "^\\[]":
        return f"\\{sign}"
    return f"[{sign}]" if sign in ".*?+(){}|$/" else sign
