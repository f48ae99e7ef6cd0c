"""One question, one line of answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input, Static


class OneLine(ModalScreen[str | None]):
    """A field of one line. Ends with its text, or None if cancelled.

    Keys typed before the field exists are typed into it once it does.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "cancel")]

    def __init__(self) -> None:
        super().__init__()
        self._early: list[Key] = []
        self._ready = self._over = False

    def on_mount(self) -> None:
        self._ready = True
        self.query_one(Input).focus()
        for key in self._early:
            self.type(key)

    def on_key(self, event: Key) -> None:
        if self.focused is None:
            self.type(event)
            event.stop()

    def type(self, key: Key) -> None:
        """Takes a key that did not reach the field by itself."""
        if not self._ready:
            self._early.append(key)
        elif self._over:
            return
        elif key.key == "enter":
            self._end(self.query_one(Input).value)
        elif key.key == "escape":
            self._end(None)
        elif key.key == "backspace":
            self.query_one(Input).action_delete_left()
        elif key.is_printable and key.character:
            self.query_one(Input).insert_text_at_cursor(key.character)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._end(event.value)

    def _end(self, answer: str | None) -> None:
        if not self._over:
            self._over = True
            self.dismiss(answer)


class PromptScreen(OneLine):
    """A question, and a field for the answer."""

    DEFAULT_CSS = """
    PromptScreen { align: center middle; background: transparent; }
    PromptScreen > Vertical {
        width: 60; max-width: 100%; height: auto;
        padding: 0 1; border: solid $cockpit-chart; background: $surface;
    }
    PromptScreen .hint { color: $cockpit-dim; }
    """

    def __init__(self, question: str) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(self.question))
            field = Input(compact=True)
            field.cursor_blink = False
            yield field
            yield Static(Content("Enter: do it   Esc: leave it"), classes="hint")


class FilterScreen(OneLine):
    """One line at the bottom: each letter is passed to `typed`, so that its effect is visible at once."""

    DEFAULT_CSS = """
    FilterScreen { align: center bottom; background: transparent; }
    FilterScreen > Horizontal { width: 1fr; height: 1; padding: 0 1; background: $surface; }
    FilterScreen Static { width: auto; color: $cockpit-dim; }
    FilterScreen Input { width: 1fr; background: $panel; }
    """

    def __init__(self, label: str, text: str, typed: Callable[[str], None]) -> None:
        super().__init__()
        self.label = label
        self.text = text
        self.typed = typed

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static(Content(f"{self.label} "))
            field = Input(self.text, compact=True, select_on_focus=False)
            field.cursor_blink = False
            yield field
            yield Static(Content(" Enter: keep it   Esc: as before"))

    def on_input_changed(self, event: Input.Changed) -> None:
        # A key pressed right behind Enter still reaches the field.
        if not self._over:
            self.typed(event.value)
