"""Open recordings for a command, and list lost ranges on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cockpit.model.errors import RecordingError
from cockpit.model.text import sanitize
from cockpit.recording.packing import Damaged, reading
from cockpit.recording.reader import Recording


@contextmanager
def recording_at(path: Path) -> Iterator[Recording]:
    """Yield the open recording, then list lost ranges on stderr. Raises RecordingError, also for impossible events."""
    with Recording(path) as recording:
        try:
            with reading(str(path)):
                yield recording
        except Damaged as error:
            raise RecordingError(f"{error}; not written by cockpit") from None
        finally:
            for lost in recording.lost:
                print(f"cockpit: {sanitize(path.name)}: {sanitize(lost)}", file=sys.stderr)
