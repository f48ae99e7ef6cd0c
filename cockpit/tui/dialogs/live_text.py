"""A dialog with a text about the session, updated while the dialog is open."""

from __future__ import annotations

from collections.abc import Iterable

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from cockpit.model.state import State
from cockpit.session.loop import Session
from cockpit.tui.dialogs.prompt import Dialog
from cockpit.tui.key_names import key_hints
from cockpit.tui.key_table import DialogKey

# Seconds between updates.
_POLL = 0.5


class LiveText(Dialog[None]):
    """Base of these dialogs; `heading` is the title, `lines` returns the text for a state."""

    DEFAULT_CSS = "LiveText > VerticalScroll { width: 110; }"
    heading = ""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self._shown: object = None

    def compose(self) -> ComposeResult:
        with VerticalScroll() as panel:
            panel.border_title = self.heading
            yield Static(id="text")
            yield Static(key_hints((DialogKey.CLOSE, ": close"), ("↑ ↓", ": scroll")), classes="hint")

    def on_mount(self) -> None:
        self.set_interval(_POLL, self._update)
        self._update()

    def lines(self, state: State) -> Iterable[Content]:
        raise NotImplementedError

    def part(self, state: State) -> object:
        """Return the part of the state that the text depends on."""
        return state

    def _update(self) -> None:
        state = self.session.shown
        if (part := self.part(state)) is not self._shown:
            self._shown = part
            self.query_one("#text", Static).update(Content("\n").join(self.lines(state)))
