"""Read altered recordings with every command, in one process with 512 MiB; print problems to stdout.

python -m tests.hostile.fuzzing INTACT FOLDER FIRST COUNT
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import random
import resource
import shutil
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType

MEMORY = 512 << 20
SECONDS = 5.0


class TooLong(BaseException):
    """A file took more than SECONDS of CPU time."""


def commands(file: Path, folder: Path) -> tuple[list[str], ...]:
    return (
        ["report", str(file)],
        ["report", str(file), "--format", "html", "-o", str(folder / "page.html")],
        ["export", str(file), "-o", str(folder / "events.jsonl")],
        ["compare", str(file), str(file)],
        ["check", str(file)],
        ["recordings", "list"],
    )


def _raise_too_long(_: int, __: FrameType | None) -> None:
    raise TooLong


def problem(file: Path, folder: Path) -> str:
    """The first problem of a command with this file; "" if none."""
    from cockpit.cli import main

    for command in commands(file, folder):
        (folder / "events.jsonl").unlink(missing_ok=True)
        out, err = io.StringIO(), io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                code = main(command)
        except TooLong:
            return f"{command}: over {SECONDS} s: {traceback.format_exc()[-1500:]}"
        except BaseException:
            return f"{command}: {traceback.format_exc()}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        lines = err.getvalue().splitlines()
        if code not in (0, 2, 4, 99) or not all(line.startswith("cockpit: ") for line in lines):
            return f"{command}: exit {code}: {err.getvalue()[:2000]}"
    return ""


def run(intact: Path, folder: Path, first: int, count: int) -> None:
    from tests.hostile.recordings import alter

    signal.signal(signal.SIGPROF, _raise_too_long)
    library = folder / "state" / "cockpit" / "recordings"
    library.mkdir(parents=True, exist_ok=True)
    file = library / "altered.cockpit"
    for seed in range(first, first + count):
        for old in library.iterdir():
            old.unlink()
        shutil.copy(intact, file)
        with contextlib.suppress(MemoryError):
            alter(file, random.Random(seed))
        print(json.dumps([seed, problem(file, folder)]), flush=True)
        gc.collect()


if __name__ == "__main__":
    # Imported before memory is limited, as by any command.
    import tests.hostile.recordings  # noqa: F401

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    run(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
