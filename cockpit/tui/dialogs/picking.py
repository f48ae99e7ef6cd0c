"""One of several values, picked from a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static

from cockpit.model.text import neutral
from cockpit.tui.dialogs.listing import ListScreen


class PickScreen(ListScreen[str]):
    """Ends with the value, or None if cancelled. It starts at `at`, the active value."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "cancel")]

    def __init__(self, title: str, values: Sequence[str], at: str | None) -> None:
        super().__init__()
        self.heading = title
        self.values = values
        self.at = at

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = Content(neutral(self.heading))
            found = [Content(f"{neutral(value)}{'  active' if value == self.at else ''}") for value in self.values]
            yield OptionList(*found, compact=True)
            yield Static(Content("Enter: pick it   Esc: leave it"), classes="hint")

    def on_mount(self) -> None:
        if self.at in self.values:
            self.query_one(OptionList).highlighted = self.values.index(self.at)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self.values[event.option_index])
