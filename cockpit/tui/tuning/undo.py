"""The question before a change is undone: its diff and its cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from cockpit.model.text import neutral
from cockpit.session.controls import Tuning, UndoPreview
from cockpit.tui.dialogs.prompt import Dialog
from cockpit.tui.terminal.styled_line import content
from cockpit.tui.tuning.changes import preview_lines


class UndoScreen(Dialog[bool]):
    """Ends with whether the change is to be undone."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "dismiss(True)", "undo the change"),
        Binding("escape,q", "dismiss(False)", "leave it active"),
    ]
    DEFAULT_CSS = """
    UndoScreen > VerticalScroll { width: 100; border: solid $cockpit-warn; }
    UndoScreen Static { width: 1fr; height: auto; }
    """

    def __init__(self, preview: UndoPreview) -> None:
        super().__init__()
        self.preview = preview

    def compose(self) -> ComposeResult:
        with VerticalScroll() as room:
            room.border_title = Content(f"undo {self.preview.letter} on {neutral(self.preview.effect.host)}?")
            room.border_subtitle = (
                "[@click=screen.dismiss(True)]Enter undo[/]   [@click=screen.dismiss(False)]Esc leave it active[/]"
            )
            yield Static(content(preview_lines([self.preview.effect])))

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()


async def ask_to_undo(app: App[Any], tuning: Tuning, letter: str, undo: Callable[[str], None]) -> None:
    """Show the effects of an undo, and call `undo(letter)` if the user wants it. Raises ChangeRefused, HostError."""
    preview = await tuning.preview_undo(letter)
    if preview is None:
        undo(letter)
        return
    wanted = preview.letter

    def answered(sure: bool | None) -> None:
        if sure:
            undo(wanted)

    app.push_screen(UndoScreen(preview), answered)
