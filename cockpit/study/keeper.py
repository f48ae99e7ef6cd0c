"""A process that outlives a killed study: `python -m cockpit.study.keeper FOLDER` restores its settings.

It waits for the end of its stdin. A study writes `done` there before it ends by itself; a killed one writes
nothing. The keeper then locks the study's folder and restores the values in the journal. If hosts are unreachable it
retries for a while; the next start of the study does the rest.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from cockpit.files import open_new
from cockpit.model.errors import CockpitError
from cockpit.model.text import neutral
from cockpit.study.journal import FolderLock, LockRole, read_journal
from cockpit.study.restore import put_back

DONE = b"done\n"
READY = b"ready\n"
# Seconds: for how long hosts that are out of reach are tried again, and between two attempts.
TRIES_FOR = 600.0
PAUSE = 5.0
LOG = "keeper.log"


class StudyGuard:
    """A keeper at work, as the study sees it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @classmethod
    async def start(cls, folder: Path) -> StudyGuard:
        """Starts one for the folder; returns once it waits."""
        process = _started(folder)
        assert process.stdout is not None
        with process.stdout:
            line = await asyncio.to_thread(process.stdout.readline)
        if line != READY:
            raise CockpitError(f"the keeper of {folder} ended at its start, with {process.wait()}")
        return cls(process)

    async def dismiss(self) -> None:
        """Tells it that nothing is left to do, and waits until it has gone."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as pipe:
            pipe.write(DONE)
        await asyncio.to_thread(self._process.wait)

    def leave(self) -> None:
        """Make the keeper restore what the study could not, as soon as the study has unlocked its folder."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        _LEFT.append(self._process)


def _started(folder: Path) -> subprocess.Popen[bytes]:
    """Start a process that survives: asyncio would kill it when its loop ends."""
    return subprocess.Popen(
        [sys.executable, "-m", "cockpit.study.keeper", str(folder.absolute())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C and a closed terminal are for the study
    )


# Processes that survive us; kept, so that Python does not warn about them.
_LEFT: list[subprocess.Popen[bytes]] = []


def main() -> int:
    """Exit 0: nothing had to be done, or it is done; 1: it could not be done (see the log in the folder)."""
    folder = Path(sys.argv[1])
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    if sys.stdin.buffer.read() == DONE:
        return 0
    lock = FolderLock(folder)
    deadline = time.monotonic() + TRIES_FOR
    while lock.take(LockRole.KEEPER):
        if time.monotonic() > deadline:
            return 0  # another process goes on with the study: it sees to the settings
        time.sleep(0.1)
    return _attempts(folder, deadline)


def _attempts(folder: Path, deadline: float) -> int:
    while True:
        try:
            journal = read_journal(folder)
            if journal is not None:
                asyncio.run(put_back(folder, journal))
            return 0
        except CockpitError as error:
            with os.fdopen(open_new(folder / LOG, os.O_APPEND), "a") as log:
                log.write(f"{neutral(str(error), 1000)}\n")
        if time.monotonic() > deadline:
            return 1
        time.sleep(PAUSE)


if __name__ == "__main__":
    sys.exit(main())
