"""Recordings opened for a command, which says on stderr what of them turned out to be lost."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cockpit.model.text import neutral
from cockpit.session.recording.reader import Recording


@contextmanager
def recording_at(path: Path) -> Iterator[Recording]:
    """Open until the block is left. A damaged place is known once it was read: what is lost is said in the end, a line
    each. Raises RecordingError."""
    with Recording(path) as recording:
        try:
            yield recording
        finally:
            for what in recording.lost:
                print(f"cockpit: {neutral(path.name)}: {neutral(what)}", file=sys.stderr)
