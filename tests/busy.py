"""`python -m tests.busy [ROUNDS]`: run `make test` and `make test-lab` several times while every CPU is busy.

One process per CPU computes without a pause. The rounds fail if any test fails in any of them.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

ROUNDS = 3
SUITES = tuple((sys.executable, "-m", "tests.parts", suite) for suite in ("test", "lab"))
# Ends when its parent has ended, for any reason.
_HOG = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    sum(range(100_000))"
_FAILURE = re.compile(r"^(FAILED|ERROR) ")


@contextmanager
def busy_cpus() -> Iterator[None]:
    """Keep every CPU busy until the end of the block."""
    cpus = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)
    hogs = [subprocess.Popen([sys.executable, "-ISc", _HOG, str(os.getpid())]) for _ in cpus]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def run(commands: Sequence[tuple[str, ...]], rounds: int) -> int:
    """Run the commands `rounds` times on busy CPUs; return 1 if any of them failed."""
    failures: list[str] = []
    with busy_cpus():
        for number in range(1, rounds + 1):
            failures += [f"round {number}: {line}" for command in commands for line in _failures(command)]
    print(f"busy: {rounds} rounds, {len(failures)} failures", *failures, sep="\n  ", flush=True)
    return int(bool(failures))


def _failures(command: tuple[str, ...]) -> list[str]:
    """Run the command once, print its output, and return pytest's lines about failed tests."""
    found = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout
        try:
            for line in process.stdout:
                print(line, end="", flush=True)
                if _FAILURE.match(line):
                    found.append(line.strip())
        except KeyboardInterrupt:
            # Ctrl-C reaches the command too: wait until it has cleaned up.
            process.communicate()
            raise
    return found or ["exit code " + str(process.returncode)] * bool(process.returncode)


if __name__ == "__main__":
    try:
        sys.exit(run(SUITES, int(sys.argv[1]) if sys.argv[1:] else ROUNDS))
    except KeyboardInterrupt:
        sys.exit(130)
