"""The idle watchdog of programs on a host: ends a program whose client vanished without closing its standard input.

The client was stopped, or the network was cut and the connection stays open: `docker exec` and `kubectl exec` then keep
the program for hours. The client sends a line at least every BEAT seconds.
"""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files

# Time (s) without input after which a program is ended (up to twice as long), and maximum time between two lines of its
# client.
IDLE, BEAT = 60.0, 15.0
# Time (s) between two looks whether the program still runs.
NAP = 5.0


def idle_seconds(interval: float) -> float:
    """Return the idle timeout (s) of a program that gets a line every `interval` seconds."""
    return max(IDLE, math.ceil(4 * interval))


def naps(seconds: float) -> tuple[str, str]:
    """Return the arguments NAP and NAPS of `idle` for a time without input."""
    nap = min(NAP, seconds)
    return f"{nap:g}", str(math.ceil(seconds / nap))


@cache
def watchdog() -> str:
    """Return the shell functions `idle READER NAP NAPS` and `end_idle PID`."""
    text = (files("cockpit.hosts") / "idle.sh").read_text(encoding="utf-8")
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
