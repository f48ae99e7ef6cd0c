"""Names of keys."""

from __future__ import annotations

_KEYS = {
    "plus": "+",
    "minus": "-",
    "comma": ",",
    "full_stop": ".",
    "colon": ":",
    "slash": "/",
    "question_mark": "?",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "escape": "Esc",
    "enter": "Enter",
    "equals_sign": "=",
    "shift+tab": "Shift+Tab",
}


def key_name(key: str) -> str:
    """`plus` as `+`, `ctrl+s` as `^S`."""
    if key.startswith("ctrl+"):
        return "^" + key.removeprefix("ctrl+").upper()
    return _KEYS.get(key, key)
