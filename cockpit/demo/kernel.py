"""What a process asks the kernel for itself: a name, an end with its parent, its orphaned descendants.

Linux only; elsewhere each call says False and the caller has another way, or does without.
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
    """Have this process killed when process `parent`, which made it, ends. Exits at once if that has happened."""
    if not _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL)):
        return False
    if os.getppid() != parent:
        os._exit(0)
    return True


def adopt_orphans() -> bool:
    """Make this process, in place of init, the parent of those of its descendants that lose theirs."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))


def children() -> list[int]:
    """The processes whose parent this one is; none where there is no /proc to tell, and no orphans are adopted."""
    me = os.getpid()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended while we looked
        if int(fields[1]) == me:
            found.append(int(entry.name))
    return found


def _prctl(option: int, value: object) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    zero = ctypes.c_ulong(0)
    return bool(ctypes.CDLL(None).prctl(ctypes.c_int(option), value, zero, zero, zero) == 0)
