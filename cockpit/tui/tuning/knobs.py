"""A knob's line in the tuning panel: name, value in force, cost, and a field for another value."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.events import Key
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

from cockpit.model.knobs import Knob
from cockpit.model.state import KnobState
from cockpit.model.text import neutral
from cockpit.tui.tuning.changes import hint, in_force

# Before the field itself gets the next key: what is typed right after belongs to the next field.
_UP_AND_DOWN: list[BindingType] = [
    Binding("up", "screen.move(-1)", "knob above", priority=True),
    Binding("down", "screen.move(1)", "knob below", priority=True),
]


class Value(Static, can_focus=True):
    """A knob's value where nothing can be typed, so that the arrows still reach its details."""

    BINDINGS: ClassVar[list[BindingType]] = _UP_AND_DOWN


class Field(Input):
    """Where a new value is typed; the space bar asks for the list where there is one."""

    BINDINGS: ClassVar[list[BindingType]] = _UP_AND_DOWN

    class Picking(Message):
        """The person wants to pick of the knob's values."""

        def __init__(self, field: Field) -> None:
            super().__init__()
            self.field = field

    def __init__(self, knob: Knob) -> None:
        super().__init__(compact=True, suggester=SuggestFromList(knob.choices) if knob.choices else None)
        self.knob = knob
        # A blinking cursor is traffic on a line that may have little to spare.
        self.cursor_blink = False

    def on_key(self, event: Key) -> None:
        if event.key == "space" and self.knob.choices:
            event.stop()
            event.prevent_default()
            self.post_message(self.Picking(self))


class KnobRow(Horizontal):
    """A line high; `typed` is what stands in its field."""

    def __init__(self, state: KnobState, editable: bool) -> None:
        super().__init__()
        self.knob = state.knob
        self.editable = editable
        self.known = state

    def compose(self) -> ComposeResult:
        yield Static(Content(neutral(self.knob.name)), classes="name")
        if not self.editable:
            yield Value(Content(in_force(self.known)), classes="value")
            yield Static(Content(neutral(self.knob.price)), classes="cost")
            return
        yield Static(Content(in_force(self.known)), classes="value")
        yield Static(Content(neutral(self.knob.price)), classes="cost")
        field = Field(self.knob)
        field.placeholder = hint(self.known)
        yield field

    def update(self, state: KnobState) -> bool:
        """Shows the value as it is now; whether it is another."""
        if state is self.known:
            return False
        self.known = state
        self.query_one(".value", Static).update(Content(in_force(state)))
        if self.editable:
            self.query_one(Field).placeholder = hint(state)
        return True

    @property
    def place(self) -> Field | Value:
        """What of it the arrows go to."""
        return self.query_one(Field) if self.editable else self.query_one(Value)

    def typed(self) -> str:
        """The new value that was typed; empty where there is none or it is in force already."""
        value = self.query_one(Field).value.strip() if self.editable else ""
        return "" if self.known.known and value == self.known.value else value

    def clear(self) -> None:
        """Forgets what was typed."""
        self.query_one(Field).value = ""
