"""Edit and delete profile files from the start screen."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from cockpit.model.errors import UsageError, naming


def edit(app: App[Any], path: Path) -> None:
    """Give the terminal to the user's editor until it ends. Raises UsageError."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        command = [*shlex.split(editor), str(path.absolute())]
        with app.suspend():
            ended = subprocess.run(command, check=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"{editor}: {error}; set EDITOR to your editor") from None
    except SuspendNotSupported:
        raise UsageError("an editor needs a terminal") from None
    if ended.returncode:
        raise UsageError(f"{editor}: exited with status {ended.returncode}")
    app.refresh(layout=True)


def delete(path: Path) -> None:
    """Delete the file. Raises UsageError."""
    with naming(path, "be deleted"):
        path.unlink()
