"""`python -m tests.parts [check]`: run the parts of `make test`, or those of `make check`.

Every part runs, even if an earlier part failed; the parts of a stage run in parallel. A table at the end shows result
and duration (s) of each part. The exit code is 1 if any part failed, 130 if the parts were interrupted.
"""

from __future__ import annotations

import json
import os
import re
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
PYTEST = (sys.executable, "-m", "pytest")
# Folders with tests that need the machine to themselves.
ALONE = ("tests/lab",)
# Tests wait for servers and processes more than half of the time, so six at a time keep two CPUs busy.
SIDE_BY_SIDE = ("--numprocesses", "6", "--dist", "loadgroup", "--no-loadscope-reorder")
INTERRUPTED = 130


class Part(NamedTuple):
    """A command that must succeed. `live`: it prints directly, also if other parts run beside it. `again`: the command
    that runs its few failed tests, which are appended, once more."""

    name: str
    command: tuple[str, ...]
    live: bool = False
    again: tuple[str, ...] = ()


TYPES = Part("types", (f"{BIN}/mypy",))
# Collection also compiles all tests once, for all processes that run them.
CHECKS = (
    Part("lint", (f"{BIN}/ruff", "check", ".")),
    Part("format", (f"{BIN}/ruff", "format", "--check", ".")),
    Part("imports", (f"{BIN}/lint-imports", "--no-logo")),
    Part("collect", (*PYTEST, "--collect-only", "-qq")),
)
INSTALL = Part("lab packages", ("sh", "tests/lab/install"), live=True)
# Failed tests run once more without others beside them, if they are few: a test that fails twice fails the part.
AGAIN = (*PYTEST, "-m", "not alone")
FEW = 20
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
TESTS = Part("tests", (*PYTEST, "-m", "not alone", *SIDE_BY_SIDE), live=True, again=AGAIN)
TESTS_ALONE = Part("tests alone", (*PYTEST, "-m", "alone", *ALONE), live=True)


def run(*stages: Sequence[Part]) -> int:
    """Run the stages one after another, the parts of a stage in parallel, and print the table."""
    rows: list[str] = []
    codes: list[int] = []
    for parts in stages:
        began = time.monotonic()
        for part, code in zip(parts, _exit_codes(parts), strict=True):
            rows.append(f"{part.name:14} {_result(code):12} {time.monotonic() - began:5.0f} s")
            if code == 1 and part.again and 0 < len(failed := _failed_tests()) <= FEW:
                code = subprocess.run((*part.again, *failed)).returncode
                rows += [f"{'once more':14} {_result(code):12} {time.monotonic() - began:5.0f} s", *failed]
            codes.append(code)
        if INTERRUPTED in codes:
            break
    print("\n" + "\n".join(rows), flush=True)
    return INTERRUPTED if INTERRUPTED in codes else int(any(codes))


def _failed_tests() -> list[str]:
    """Return the tests and files that failed in the last run of pytest, without the `@GROUP` that xdist appends to
    tests."""
    names = json.loads(LAST_FAILED.read_text()) if LAST_FAILED.exists() else ()
    return sorted(re.sub(r"@[^@\]]*$", "", name) for name in names)


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


def _result(code: int) -> str:
    return {0: "passed", INTERRUPTED: "interrupted"}.get(code, "FAILED")


def main(names: list[str]) -> int:
    if names == ["check"]:
        return run((*CHECKS, TYPES))
    lab = () if os.environ.get("LAB") == "0" else (INSTALL,)
    return run((*CHECKS, *lab), (TESTS, TYPES), (TESTS_ALONE,))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
