"""Names of keys on a keyboard, and the keys of the session's actions as Textual names them."""

from __future__ import annotations

from cockpit.model.text import neutral
from cockpit.session.controls import Action
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.styled_line import Piece

_NAMES = (
    "plus minus comma full_stop colon slash question_mark left_square_bracket right_square_bracket left right up down "
    "pageup pagedown home end escape enter equals_sign greater_than_sign less_than_sign shift+tab"
)
_PRINTED = "+ - , . : / ? [ ] ← → ↑ ↓ PgUp PgDn Home End Esc Enter = > < Shift+Tab"
_KEYS = dict(zip(_NAMES.split(), _PRINTED.split(), strict=True))


def key_name(key: str) -> str:
    """Return e.g. `+` for `plus`, `^S` for `ctrl+s`."""
    if key.startswith("ctrl+"):
        return "^" + key.removeprefix("ctrl+").upper()
    return _KEYS.get(key, key)


# Keys of the session's actions.
ACTION_KEYS = dict(
    pair.split(":")
    for pair in [
        "toggle:space",
        "answer:k",
        "keep:y",
        "unfinished:U",
        "more:plus",
        "less:minus",
        "mark:m",
        "back:left",
        "forward:right",
        "back_10:comma",
        "forward_10:full_stop",
        "back_tenth:pageup",
        "forward_tenth:pagedown",
        "home:home",
        "end:end",
        "previous:left_square_bracket",
        "next:right_square_bracket",
        "faster:greater_than_sign",
        "slower:less_than_sign",
        "jump:colon",
    ]
)


def action_key(action: Action) -> str:
    return ACTION_KEYS[action.name]


def action_key_name(action: Action) -> str:
    return key_name(action_key(action))


def how_to_begin(context: DrawContext) -> list[Piece]:
    """Return the first key to press, and the profile's question."""
    first = [action for action in context.actions if action.footer][:1]
    lines: list[Piece] = [("", "")] if first else []
    lines += [(f"press {action_key_name(action)}: {action.label}", "key") for action in first]
    question = " ".join(context.state.started.question.split()) if context.state.started else ""
    if question:
        lines += [("", ""), (f"“{neutral(question)}”", "dim")]
    return lines
