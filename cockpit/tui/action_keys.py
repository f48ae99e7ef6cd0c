"""Keys of the session's actions, as Textual names them, and the hint that names the first."""

from __future__ import annotations

from cockpit.model.text import neutral
from cockpit.session.controls import Action
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.styled_line import Piece
from cockpit.tui.terminal.words import key_name

ACTION_KEYS = {
    "toggle": "space",
    "answer": "k",
    "keep": "y",
    "unfinished": "U",
    "more": "plus",
    "less": "minus",
    "load": "equals_sign",
    "mark": "m",
    "undo": "u",
    "back": "left",
    "forward": "right",
    "back_10": "comma",
    "forward_10": "full_stop",
    "back_tenth": "pageup",
    "forward_tenth": "pagedown",
    "home": "home",
    "end": "end",
    "previous": "left_square_bracket",
    "next": "right_square_bracket",
    "faster": "plus",
    "slower": "minus",
    "jump": "colon",
}


def action_key(action: Action) -> str:
    """Return the key of an action."""
    return ACTION_KEYS[action.name]


def action_key_name(action: Action) -> str:
    """Return the key of an action as it is printed on a keyboard."""
    return key_name(action_key(action))


def how_to_begin(scene: DrawContext) -> list[Piece]:
    """What to press first, from what the session offers."""
    first = [action for action in scene.actions if action.footer][:1]
    lines: list[Piece] = [("", "")] if first else []
    lines += [(f"press {action_key_name(action)}: {action.label}", "key") for action in first]
    question = " ".join(scene.state.started.question.split()) if scene.state.started else ""
    if question:
        lines += [("", ""), (f"“{neutral(question)}”", "dim")]
    return lines
