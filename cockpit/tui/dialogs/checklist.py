"""A list of entries that can each be selected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList

from cockpit.tui.key_names import bindings
from cockpit.tui.key_table import DialogKey


class ChecklistItem(NamedTuple):
    words: str
    value: str
    picked: bool = False


class Checklist(OptionList):
    """A list with several selectable entries; beyond its ends the arrows move to the next field."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings([DialogKey.SELECT]),
        Binding("enter", "screen.go", "continue", show=False),
    ]
    DEFAULT_CSS = """
    Checklist { background: $background; border: none; padding: 0; scrollbar-size: 1 1; color: $cockpit-text; }
    Checklist { text-wrap: nowrap; text-overflow: ellipsis; }
    Checklist:focus { background-tint: transparent; border: none; }
    Checklist > .option-list--option-highlighted { background: $background; color: $cockpit-text; text-style: none; }
    Checklist:focus > .option-list--option-highlighted { background: $cockpit-band; color: $cockpit-strong; }
    """

    class Changed(Message):
        """The selection changed."""

    def __init__(self, entries: Sequence[ChecklistItem], *, id: str | None = None) -> None:
        super().__init__(*(_shown(entry, entry.picked) for entry in entries), id=id, compact=True)
        self._entries = tuple(entries)
        self._picked = {place for place, entry in enumerate(entries) if entry.picked}

    @property
    def selected(self) -> list[str]:
        """Values of the selected entries, in the order of the list."""
        return [entry.value for place, entry in enumerate(self._entries) if place in self._picked]

    def on_mount(self) -> None:
        if self._entries:
            self.highlighted = 0

    def action_pick(self) -> None:
        """Select or deselect the highlighted entry."""
        if self.highlighted is not None:
            self._toggle(self.highlighted)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._toggle(event.option_index)

    def action_cursor_down(self) -> None:
        if self.highlighted is None or self.highlighted >= len(self._entries) - 1:
            self.app.action_focus_next()
        else:
            super().action_cursor_down()

    def action_cursor_up(self) -> None:
        if not self.highlighted:
            self.app.action_focus_previous()
        else:
            super().action_cursor_up()

    def _toggle(self, place: int) -> None:
        self._picked ^= {place}
        self.replace_option_prompt_at_index(place, _shown(self._entries[place], place in self._picked))
        self.post_message(self.Changed())


def _shown(entry: ChecklistItem, picked: bool) -> Content:
    return Content(f"[{'x' if picked else ' '}] {entry.words}")
