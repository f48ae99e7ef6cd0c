"""One question, one line of answer."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static


class PromptScreen(ModalScreen[str | None]):
    """Ends with the answer, or None where the person thought better of it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "cancel")]
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

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)
