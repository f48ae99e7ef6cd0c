"""Errors of cockpit's own, as one line beside the host that they came up with."""

from __future__ import annotations

import traceback
from pathlib import Path


def fault(error: Exception) -> str:
    """The type of the error and where it was raised; not its text, which may hold whatever the host sent."""
    raised = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(raised[-1].filename).name}:{raised[-1].lineno}" if raised else ""
    return f"internal error of cockpit: {type(error).__name__}{where}; please report it"
