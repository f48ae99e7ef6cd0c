"""Editing and deleting the files of profiles from the start screen."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from cockpit.model.errors import UsageError


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
