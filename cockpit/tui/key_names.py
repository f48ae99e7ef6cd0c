"""Keys of the table as bindings, and as text that can be clicked."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.style import Style

from cockpit.model.text import sanitize
from cockpit.session.controls import Action
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.key_table import AppKey, DialogKey, FooterEntry, SessionKey, Shortcut, key_named, key_names
from cockpit.tui.terminal.styled_line import Line, Piece, Spot, length

# Printed names in a text such as `↑↓ PgUp PgDn`.
_EACH = re.compile(r"PgUp|PgDn|Home|End|Esc|Enter|Delete|Shift\+Tab|space|Tab|F\d+|\^\S|\S")
# Jumps are typed.
_SESSION: dict[str, Shortcut] = {key.action: key for key in SessionKey} | {"jump": AppKey.COMMAND_LINE}


def bindings(keys: Iterable[Shortcut], priority: Collection[Shortcut] = ()) -> list[BindingType]:
    """Return a binding for each key; keys in `priority` override the focused widget's bindings."""
    return [Binding(key.key, key.action, key.description, priority=key in priority) for key in keys]


def close_binding(
    *openers: Shortcut | str, action: str = DialogKey.CLOSE.action, description: str = DialogKey.CLOSE.description
) -> Binding:
    """Return the binding that closes a dialog without fields, also by the keys that open it."""
    keys = (DialogKey.CLOSE, DialogKey.QUIT, *openers)
    return Binding(",".join(key if isinstance(key, str) else key.key for key in keys), action, description)


def key_spots(keys: Line, x: int) -> Iterator[Spot]:
    """Yield the clickable spots of an entry that starts at cell `x`: each key; the label presses the first key."""
    names, end = keys[0][0], x + length(keys)
    spots = [(key.start(), key.end(), key_named(key[0])) for key in _EACH.finditer(names)]
    for first, last, key in spots:
        yield Spot(0, x + first, x + last, "simulate_key", (key,), "app")
    if spots:
        yield Spot(0, x, end, "simulate_key", (spots[0][2],), "app")


def key_entry(key: Shortcut | str, label: str) -> Line:
    return ((str(key), "key"), (f" {label}", "dim"))


def footer_entries(entries: Iterable[FooterEntry], hosts: int = 0) -> list[Line]:
    """Return the entries of the footer for a session with `hosts` hosts."""
    groups = [entry if isinstance(entry, tuple) else (entry,) for entry in entries]
    shown = [keys for keys in groups if keys[0].hosts <= hosts]
    # Cells are scarce in the footer.
    return [key_entry(key_names(*keys).replace("↑ ↓", "↑↓"), keys[0].label) for keys in shown]


def spots_of(line: Line) -> Iterator[Spot]:
    """Yield the clickable spots of every `key_entry` in a line."""
    x = 0
    for piece, following in zip(line, (*line[1:], ("", "")), strict=False):
        if piece[1] == "key":
            yield from key_spots((piece, following), x)
        x += cell_len(piece[0])


def with_spots(shown: Content, spots: Iterable[Spot]) -> Content:
    """Return one line of text in which a click on a spot presses its key."""
    for spot in reversed(list(spots)):
        press = Style.from_meta({"@click": f"app.simulate_key({spot.arguments[0]!r})"})
        shown = shown.stylize(press, spot.start, spot.end)
    return shown


def key_hints(*entries: tuple[Shortcut | str, str], between: str = "   ") -> Content:
    """Return `KEY words   KEY words`; entries with a key can be clicked."""
    text, spots = "", list[Spot]()
    for key, words in entries:
        text += between if text else ""
        keys = str(key)
        entry: Line = ((keys, ""), (words, ""))
        spots += key_spots(entry, cell_len(text)) if keys else []
        text += keys + words
    return with_spots(Content(text), spots)


def click_hint(key: Shortcut, label: str = "") -> str:
    """Return `KEY label` as markup; a click runs the screen's action independently of the focus."""
    return f"[@click=screen.{key.action}]{key} {label or key.label}[/]"


def action_key(action: Action) -> Shortcut:
    return _SESSION[action.name]


def no_load_words(context: DrawContext) -> str:
    """Return why a pane of runs is empty: nothing was started yet; a replay is loading, or before its first load."""
    if context.extent is None:
        return f"No runs yet. Press {SessionKey.TOGGLE} to start."
    if context.state.started is None:
        return "Loading the recording …"
    return f"No load up to here. Press {SessionKey.NEXT} for the next run or change."


def start_hint(context: DrawContext) -> list[Piece]:
    """Return the first key to press, and the profile's question."""
    first = [action for action in context.actions if action.footer][:1]
    lines: list[Piece] = [("", "")] if first else []
    lines += [(f"press {action_key(action)}: {action.label}", "key") for action in first]
    question = " ".join(context.state.started.question.split()) if context.state.started else ""
    if question:
        lines += [("", ""), (f"“{sanitize(question)}”", "dim")]
    return lines
