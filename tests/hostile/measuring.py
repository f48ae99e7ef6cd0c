"""Fuzzers run in processes of their own, so that their memory can be measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# What a process with the parsers in it may take, at most.
MOST_MIB = 200


def peak_mib() -> float:
    """Return the most memory this process had resident, in MiB. Not ru_maxrss: that is inherited from the parent."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measured(module: str, *arguments: str) -> dict[str, Any]:
    """What a module prints as JSON when it is run; fails with the end of its error output where it fails."""
    done = subprocess.run([sys.executable, "-m", module, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    said: dict[str, Any] = json.loads(done.stdout)
    return said
