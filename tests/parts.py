"""`python -m tests.parts [check]`: run the parts of `make test`, or those of `make check`.

Every part runs, whatever the parts before it found. A table at the end shows the result and the seconds of each; the
exit code is 1 if any part failed, 130 if the parts were interrupted.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

BIN = Path(sys.executable).parent
PYTEST = (sys.executable, "-m", "pytest")
# Where tests that have the machine to themselves are: see tests/conftest.py.
ALONE = ("tests/load/truth", "tests/lab")
# Tests wait for servers and processes half of the time, so four at a time keep two CPUs busy.
SIDE_BY_SIDE = ("--numprocesses", "4", "--dist", "loadfile", "--no-loadscope-reorder")
INTERRUPTED = 130


class Part(NamedTuple):
    """A command that must succeed."""

    name: str
    command: tuple[str, ...]


CHECKS = (
    Part("lint", (f"{BIN}/ruff", "check", ".")),
    Part("format", (f"{BIN}/ruff", "format", "--check", ".")),
    Part("types", (f"{BIN}/mypy",)),
    Part("imports", (f"{BIN}/lint-imports", "--no-logo")),
)
INSTALL = Part("lab packages", ("sh", "tests/lab/install"))
TESTS = (
    Part("tests", (*PYTEST, "-m", "not alone", *SIDE_BY_SIDE)),
    Part("tests alone", (*PYTEST, "-m", "alone", *ALONE)),
)


def run(parts: Sequence[Part]) -> int:
    """Run the parts one after another and print the table."""
    rows: list[str] = []
    codes: list[int] = []
    for part in parts:
        began = time.monotonic()
        codes.append(_exit_code(part.command))
        rows.append(f"{part.name:14} {_result(codes[-1]):12} {time.monotonic() - began:5.0f} s")
        if codes[-1] == INTERRUPTED:
            break
    print("\n" + "\n".join(rows), flush=True)
    return INTERRUPTED if INTERRUPTED in codes else int(any(codes))


def _exit_code(command: Sequence[str]) -> int:
    """Run a command to its end. Ctrl-C reaches the command too: wait until it has cleaned up."""
    with subprocess.Popen(command) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            process.wait()
            return INTERRUPTED


def _result(code: int) -> str:
    return {0: "passed", INTERRUPTED: "interrupted"}.get(code, "FAILED")


def main(names: list[str]) -> int:
    if names == ["check"]:
        return run(CHECKS)
    lab = () if os.environ.get("LAB") == "0" else (INSTALL,)
    return run((*CHECKS, *lab, *TESTS))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
