"""Open recordings for a command; lost ranges are listed on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cockpit.model.errors import RecordingError
from cockpit.model.text import neutral
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
            raise RecordingError(f"{error}; no cockpit wrote it so") from None
        finally:
            for what in recording.lost:
                print(f"cockpit: {neutral(path.name)}: {neutral(what)}", file=sys.stderr)
