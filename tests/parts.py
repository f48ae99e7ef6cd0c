"""`python -m tests.parts check|test|lab`: run the parts of `make check`, `make test` or `make test-lab`.

Every part runs, even if an earlier part failed; the parts of a stage run in parallel. A table at the end shows result
and duration (s) of each part. The exit code is 1 if any part failed, 130 if the parts were interrupted.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

BIN = Path(sys.executable).parent
PYTEST = (sys.executable, "-m", "pytest", "-p", "tests.durations")
# Tests wait for servers and processes for a part of the time: more processes than CPUs keep two CPUs busy.
SIDE_BY_SIDE = ("--dist", "loadgroup", "--no-loadscope-reorder", "--numprocesses")
INTERRUPTED = 130


class Part(NamedTuple):
    """A command that must succeed. `live`: it prints directly, also if other parts run beside it."""

    name: str
    command: tuple[str, ...]
    live: bool = False


CHECKS = (
    Part("lint", (f"{BIN}/ruff", "check", ".")),
    Part("format", (f"{BIN}/ruff", "format", "--check", ".")),
    Part("imports", (f"{BIN}/lint-imports", "--no-logo")),
    Part("types", (f"{BIN}/mypy",)),
)
TESTS = Part("tests", (*PYTEST, "-m", "not lab", *SIDE_BY_SIDE, "4"), live=True)
LAB = Part("lab", (*PYTEST, "-m", "lab", *SIDE_BY_SIDE, "6"), live=True)
STAGES: dict[str, tuple[tuple[Part, ...], ...]] = {
    "check": (CHECKS,),
    "test": ((*CHECKS, TESTS),),
    "lab": ((LAB,),),
}


def run(*stages: Sequence[Part]) -> int:
    """Run the stages one after another, the parts of a stage in parallel, and print the table."""
    rows: list[str] = []
    codes: list[int] = []
    for parts in stages:
        began = time.monotonic()
        for part, code in zip(parts, _exit_codes(parts), strict=True):
            result = {0: "passed", INTERRUPTED: "interrupted"}.get(code, "FAILED")
            rows.append(f"{part.name:14} {result:12} {time.monotonic() - began:5.0f} s")
            codes.append(code)
        if INTERRUPTED in codes:
            break
    print("\n" + "\n".join(rows), flush=True)
    return INTERRUPTED if INTERRUPTED in codes else int(any(codes))


def _exit_codes(parts: Sequence[Part]) -> Iterator[int]:
    """Run commands in parallel to their end. Those that are not live print only if they fail.

    Ctrl-C reaches the commands too: wait until they have cleaned up.
    """
    interrupted = False
    with ExitStack() as stack:
        outputs = [None if part.live else stack.enter_context(tempfile.TemporaryFile()) for part in parts]
        started = [
            stack.enter_context(subprocess.Popen(part.command, stdout=output, stderr=output and subprocess.STDOUT))
            for part, output in zip(parts, outputs, strict=True)
        ]
        for process, output in zip(started, outputs, strict=True):
            try:
                process.wait()
            except KeyboardInterrupt:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                interrupted = True
                process.wait()
            if output and process.returncode:
                output.seek(0)
                print(output.read().decode(errors="replace"), end="", flush=True)
            yield INTERRUPTED if interrupted else process.returncode


def main(name: str) -> int:
    """Run the stages of that name. All but the lab, whose hosts have a /tmp of their own, leave no temporary files."""
    if name == "lab":
        return run(*STAGES[name])
    with tempfile.TemporaryDirectory(prefix="cockpit-", ignore_cleanup_errors=True) as folder:
        # Some tests act as another user.
        Path(folder).chmod(0o1777)
        os.environ["TMPDIR"] = folder
        return run(*STAGES[name])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
