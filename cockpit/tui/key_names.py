"""Names of keys on a keyboard, and the keys of the session's actions as Textual names them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.cells import cell_len
from textual.content import Content
from textual.style import Style

from cockpit.model.text import neutral
from cockpit.session.controls import Action
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.styled_line import Line, Piece, Spot, length

_NAMES = (
    "plus minus comma full_stop colon slash question_mark left_square_bracket right_square_bracket left right up down "
    "pageup pagedown home end escape enter equals_sign greater_than_sign less_than_sign shift+tab"
)
_PRINTED = "+ - , . : / ? [ ] ← → ↑ ↓ PgUp PgDn Home End Esc Enter = > < Shift+Tab"
_KEYS = dict(zip(_NAMES.split(), _PRINTED.split(), strict=True))
_NAMED = {printed: key for key, printed in _KEYS.items()}
# Printed names in a text such as `↑↓ PgUp PgDn`.
_EACH = re.compile(r"PgUp|PgDn|Home|End|Esc|Enter|Shift\+Tab|space|tab|Tab|F1|\^\S|\S")


def key_name(key: str) -> str:
    """Return e.g. `+` for `plus`, `^S` for `ctrl+s`."""
    if key.startswith("ctrl+"):
        return "^" + key.removeprefix("ctrl+").upper()
    return _KEYS.get(key, key)


def key_named(printed: str) -> str:
    """Return e.g. `plus` for `+`, `ctrl+s` for `^S`."""
    if printed.startswith("^"):
        return "ctrl+" + printed[1:].lower()
    return _NAMED.get(printed, printed if len(printed) == 1 else printed.lower())


def key_spots(keys: Line, x: int, y: int = 0) -> Iterator[Spot]:
    """Yield the cells of an entry of keys and label from cell `x`: each key, then the label for the first."""
    names, end = keys[0][0], x + length(keys)
    found = [(key.start(), key.end(), key_named(key[0])) for key in _EACH.finditer(names)]
    for first, last, key in found:
        yield Spot(y, x + first, x + last, "press", (key,))
    if found:
        yield Spot(y, x, end, "press", (found[0][2],))


def key_entry(key: str, label: str) -> Line:
    return ((key, "key"), (f" {label}", "dim"))


def spots_of(line: Line) -> Iterator[Spot]:
    """Yield the cells of every entry of `key_entry` in a line."""
    x = 0
    for piece, following in zip(line, (*line[1:], ("", "")), strict=True):
        if piece[1] == "key":
            yield from key_spots((piece, following), x)
        x += cell_len(piece[0])


def with_spots(shown: Content, spots: Iterable[Spot]) -> Content:
    """Return one line of text whose spots press their keys when they are clicked."""
    for spot in reversed(list(spots)):
        press = Style.from_meta({"@click": f"app.simulate_key({spot.arguments[0]!r})"})
        shown = shown.stylize(press, spot.start, spot.end)
    return shown


def key_hints(*entries: tuple[str, str], between: str = "   ") -> Content:
    """Return `KEY words   KEY words`, which can be clicked; the label of an entry without a key cannot."""
    text, spots = "", list[Spot]()
    for keys, words in entries:
        text += between if text else ""
        entry: Line = ((keys, ""), (words, ""))
        spots += key_spots(entry, cell_len(text)) if keys else []
        text += keys + words
    return with_spots(Content(text), spots)


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
