"""`python -m tests.parts check|test|lab`: run `make check`, `make test` or `make test-lab`.

The checks run side by side, and a table at the end shows their results. The exit code is 0 if all is well, 130 after
Ctrl-C.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

BIN = Path(sys.executable).parent
CHECKS: Mapping[str, Sequence[str]] = {
    "lint": (f"{BIN}/ruff", "check", "."),
    "format": (f"{BIN}/ruff", "format", "--check", "."),
    "imports": (f"{BIN}/lint-imports", "--no-logo"),
    "types": (f"{BIN}/mypy",),
}
PYTEST = (sys.executable, "-m", "pytest", "-p", "tests.durations")
XDIST = ("--dist", "loadgroup", "--no-loadscope-reorder", "-n")
# Libraries of macOS may crash in forks of a process that has used them.
FORKS = ("-p", "tests.shared_collection", "--forks") if sys.platform == "linux" else XDIST
# Tests wait for servers and processes for a part of the time: more processes than CPUs keep two CPUs busy.
SUITES = {
    "test": (*PYTEST, *FORKS, "6", "-m", "not lab", "--ignore", "tests/lab"),
    "lab": (*PYTEST, *XDIST, "6", "-m", "lab"),
}
INTERRUPTED = 130


def run_checks(checks: Mapping[str, Sequence[str]]) -> int:
    """Run commands side by side, print the output of those that fail, and the table; return 1 if any failed."""
    failed = False
    rows = []
    with ExitStack() as stack:
        started = []
        for name, command in checks.items():
            output = stack.enter_context(tempfile.TemporaryFile())
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            started.append((name, stack.enter_context(process), output))
        for name, process, output in started:
            if process.wait():
                failed = True
                output.seek(0)
                print(output.read().decode(errors="replace"), end="")
            rows.append(f"{name:14} {'FAILED' if process.returncode else 'passed'}")
    print("\n".join(rows), flush=True)
    return int(failed)


def run_suite(command: Sequence[str]) -> int:
    """Run a suite. Ctrl-C reaches it too: wait until it has cleaned up."""
    with subprocess.Popen(command) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            process.wait()
            return INTERRUPTED


def main(name: str) -> int:
    """Run the checks or a suite. All but the lab, whose hosts have a /tmp of their own, leave no temporary files."""
    if name == "lab":
        return run_suite(SUITES[name])
    with tempfile.TemporaryDirectory(prefix="cockpit-", ignore_cleanup_errors=True) as folder:
        # Some tests act as another user.
        Path(folder).chmod(0o1777)
        os.environ["TMPDIR"] = folder
        return run_checks(CHECKS) if name == "check" else run_suite(SUITES[name])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
