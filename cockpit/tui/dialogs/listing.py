"""The base of dialogs with a list to choose from."""

from __future__ import annotations

from typing import TypeVar

from textual.screen import ModalScreen

Picked = TypeVar("Picked")


class ListScreen(ModalScreen[Picked | None]):
    """Ends with the choice, or None. It holds a Vertical with an OptionList and a line of class `hint`."""

    DEFAULT_CSS = """
    ListScreen { align: center middle; background: transparent; }
    ListScreen > Vertical {
        width: 50; max-width: 100%; height: auto; max-height: 100%;
        padding: 0 1; border: solid $cockpit-chart; border-title-color: $cockpit-strong; background: $surface;
    }
    ListScreen OptionList { height: auto; max-height: 14; background: $surface; }
    ListScreen .hint { color: $cockpit-dim; }
    """
