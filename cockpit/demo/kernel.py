"""Process settings: name, parent-death signal, adoption of orphans.

Linux only; elsewhere each call returns False.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36


def set_name(name: str) -> bool:
    """Show this process under `name` (at most 15 bytes) in ps, top and /proc/PID/comm."""
    return _prctl(_PR_SET_NAME, ctypes.create_string_buffer(name.encode()[:15]))


def die_with_parent(parent: int) -> bool:
    """Have the kernel kill this process when `parent` ends; exit at once if it has ended."""
    if not _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL)):
        return False
    if os.getppid() != parent:
        os._exit(0)
    return True


def adopt_orphans() -> bool:
    """Become the parent of descendants that lose theirs, instead of init."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))


def children() -> list[int]:
    """Return the pids of this process's children; none without /proc."""
    me = os.getpid()
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # exited
        if int(fields[1]) == me:
            pids.append(int(entry.name))
    return pids


def _prctl(option: int, value: object) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    zero = ctypes.c_ulong(0)
    return bool(ctypes.CDLL(None).prctl(ctypes.c_int(option), value, zero, zero, zero) == 0)
