"""Open recordings for a command, and list lost ranges on stderr."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from cockpit.model.errors import RecordingError
from cockpit.model.text import sanitize
from cockpit.recording.packing import Damaged, reading
from cockpit.recording.reader import Recording

# CPU time (s) for reading a recording and for its report, and what each MiB of the file adds.
_SECONDS, _SECONDS_PER_MIB = 60.0, 10.0


@contextmanager
def recording_at(path: Path, bounded: bool = True) -> Iterator[Recording]:
    """Yield the open recording, then list lost ranges on stderr. `bounded`: the CPU time until then has a limit.

    Raises RecordingError, also for impossible events.
    """
    with _deadline(path) if bounded else nullcontext(), Recording(path) as recording:
        try:
            with reading(str(path)):
                yield recording
        except Damaged as error:
            raise RecordingError(f"{error}; not written by cockpit") from None
        finally:
            for lost in recording.lost:
                print(f"cockpit: {sanitize(path.name)}: {sanitize(lost)}", file=sys.stderr)


@contextmanager
def _deadline(path: Path) -> Iterator[None]:
    """Limit the CPU time of this process by the size of the file. Only the main thread can: signals arrive there."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # os.path returns False for an invalid name; pathlib raises.
    size = os.path.getsize(path) if os.path.isfile(path) else 0  # noqa: PTH113, PTH202
    seconds = _SECONDS + _SECONDS_PER_MIB * size / 2**20

    def end(*_: object) -> None:
        raise RecordingError(
            f"needs more than {seconds:.0f} s of CPU time; replay it instead: cockpit replay FILE", str(path)
        )

    handler = signal.signal(signal.SIGPROF, end)
    left, _ = signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, left)
        signal.signal(signal.SIGPROF, handler)
