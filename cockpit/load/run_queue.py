"""Time that this thread was ready to run while others had the CPU; 0 except on Linux."""

from __future__ import annotations

from pathlib import Path

_COUNTERS = Path("/proc/thread-self/schedstat")


class RunQueue:
    """The time on a run queue since the last asking."""

    def __init__(self) -> None:
        self._last = waited() or 0

    def since_last(self) -> float:
        now = waited()
        if now is None:
            # Without a file descriptor to spare it cannot be read; the next asking has it all.
            return 0.0
        last, self._last = self._last, now
        return (now - last) / 1e9


def waited() -> int | None:
    """Return the nanoseconds that this thread has waited on a run queue; None if the kernel does not count them."""
    try:
        # Time on a CPU, time waiting for one, and how often.
        return int(_COUNTERS.read_bytes().split()[1])
    except (OSError, IndexError):
        return None
