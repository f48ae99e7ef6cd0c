"""The confirmation before an undo, with the diff and the cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual.app import App

from cockpit.model.text import sanitize
from cockpit.tui.dialogs.prompt import ConfirmScreen
from cockpit.tui.terminal.styled_line import content
from cockpit.tui.tuning.changes import preview_lines

if TYPE_CHECKING:
    from cockpit.session.live_tuning import LiveTuning


async def ask_to_undo(app: App[Any], tuning: LiveTuning, letter: str, undo: Callable[[str], None]) -> None:
    """Show the diff of an undo, and call `undo(letter)` once confirmed. Raises ChangeRefused, HostError."""
    preview = await tuning.preview_undo(letter)
    if preview is None:
        undo(letter)
        return
    title = f"undo {preview.letter} on {sanitize(preview.host)}?"
    confirm = ConfirmScreen(content(preview_lines([preview])), "undo", "leave it active", title)
    confirm.ask(app, lambda _: undo(preview.letter))
