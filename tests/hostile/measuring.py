"""Run fuzzers in separate processes and measure their memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# Seeds of each fuzzer. Development machines can test many more.
SEEDS = range(int(os.environ.get("COCKPIT_FUZZ_SEEDS", "2")))
# Limit for a process with all parsers loaded.
MAX_MIB = 200


def peak_mib() -> float:
    """Peak resident memory of this process, in MiB. Not ru_maxrss, which is inherited from the parent."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measured(module: str, *arguments: str) -> dict[str, Any]:
    """Run a module and return the JSON it prints; on failure, show the end of its stderr."""
    completed = subprocess.run([sys.executable, "-m", module, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr[-3000:]
    result: dict[str, Any] = json.loads(completed.stdout)
    return result
