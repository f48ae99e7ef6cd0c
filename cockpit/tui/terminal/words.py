"""Words that several panes use: keys as they stand on a keyboard, what to press first."""

from __future__ import annotations

from cockpit.model.text import neutral
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.styled_line import Piece

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


def how_to_begin(scene: DrawContext) -> list[Piece]:
    """What to press first, from what the session offers."""
    first = [action for action in scene.actions if action.footer][:1]
    lines: list[Piece] = [("", "")] if first else []
    lines += [(f"press {key_name(action.keys[0])}: {action.label}", "key") for action in first]
    question = " ".join(scene.state.started.question.split()) if scene.state.started else ""
    if question:
        lines += [("", ""), (f"“{neutral(question)}”", "dim")]
    return lines
