"""Internal errors as one line."""

from __future__ import annotations

import traceback
from pathlib import Path


def internal_error(error: Exception) -> str:
    """Describe an error by its type and source line. Its text is left out, because it may quote the host."""
    raised = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(raised[-1].filename).name}:{raised[-1].lineno}" if raised else ""
    return f"internal error in cockpit: {type(error).__name__}{where}; please report it"
