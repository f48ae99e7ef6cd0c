"""Editing and deleting the files of profiles from the start screen."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from cockpit.model.errors import UsageError
from cockpit.model.text import neutral
from cockpit.tui.dialogs.prompt import Dialog


class DeleteScreen(Dialog[bool]):
    """Ends with whether the file is to be deleted."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "delete it"),
        Binding("escape,q", "dismiss(False)", "keep it"),
    ]
    DEFAULT_CSS = "DeleteScreen > Vertical { width: 72; border: solid $cockpit-warn; }"

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(f"Delete the profile {neutral(str(self.path))}? Its recordings stay."))
            yield Static("[@click=screen.dismiss(True)]y: delete it[/]   [@click=screen.dismiss(False)]Esc: keep it[/]")


def edit(app: App[Any], path: Path) -> None:
    """Give the terminal to the user's editor until it ends. Raises UsageError."""
    wanted = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        command = [*shlex.split(wanted), str(path.absolute())]
        with app.suspend():
            ended = subprocess.run(command, check=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"{wanted}: {error}; set EDITOR to your editor") from None
    except SuspendNotSupported:
        raise UsageError("an editor needs a terminal") from None
    if ended.returncode:
        raise UsageError(f"{wanted}: ended with exit code {ended.returncode}")
    app.refresh(layout=True)


def delete(path: Path) -> None:
    """Raises UsageError."""
    try:
        path.unlink()
    except OSError as error:
        raise UsageError(f"{path}: cannot be deleted: {error.strerror}") from None
