"""A process that outlives a killed study (see `standby`) and restores its settings.

The restorer locks the study's folder and restores the values in the journal. It retries while hosts are unreachable,
for TRIES_FOR seconds; the next start of the study restores the rest.
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
from cockpit.model.load.plan import LoadPlan
from cockpit.model.text import sanitize
from cockpit.profiles.profile import Profile
from cockpit.recording.writer import RecordingWriter
from cockpit.session.live_session import LiveSession
from cockpit.session.recovery import restore
from cockpit.study.journal import FolderLock, Journal, LockRole, read_journal, write_journal
from cockpit.study.standby import DONE, READY
from cockpit.tuning.applied import ChangeFailed

# Seconds for which unreachable hosts are retried, and between two attempts; after an incomplete rollback, which reloads
# the server at each attempt.
TRIES_FOR = 600.0
PAUSE, PAUSE_AFTER_RELOAD = 5.0, 60.0
LOG = "restorer.log"


class RestorerProcess:
    """The study's handle of its restorer process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @classmethod
    async def start(cls, folder: Path) -> RestorerProcess:
        """Start a restorer for the folder; return when it is ready."""
        process = _start_process(folder)
        assert process.stdout is not None
        with process.stdout:
            line = await asyncio.to_thread(process.stdout.readline)
        if line != READY:
            raise CockpitError(f"{folder}: the restorer process exited at its start, status {process.wait()}")
        return cls(process)

    async def dismiss(self) -> None:
        """Stop the restorer without restoring anything, and wait for its end."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as pipe:
            pipe.write(DONE)
        await asyncio.to_thread(self._process.wait)

    def leave(self) -> None:
        """Have the restorer restore the settings once the study has unlocked its folder."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        _LEFT.append(self._process)


def _start_process(folder: Path) -> subprocess.Popen[bytes]:
    """Start a process that survives this one; asyncio would kill its children when the loop ends."""
    return subprocess.Popen(
        # -P: do not import modules from the working directory.
        [sys.executable, "-P", "-m", "cockpit.study.standby", str(folder.absolute())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C and a hangup only end the study
    )


# Processes that survive this one. Without a reference to them Python would warn.
_LEFT: list[subprocess.Popen[bytes]] = []


def restore_when_unlocked(folder: Path) -> int:
    """Return the exit status. 0: nothing to restore, or restored; 1: failed (see the log in the folder)."""
    lock = FolderLock(folder)
    deadline = time.monotonic() + TRIES_FOR
    while lock.acquire(LockRole.RESTORER):
        if time.monotonic() > deadline:
            return 0  # another process continues the study and restores the settings
        time.sleep(0.1)
    return attempts(folder, deadline)


def attempts(folder: Path, deadline: float) -> int:
    """Retry until the deadline; keep only the recording of the last attempt, and log each error once."""
    recording = restore_recording(folder)
    reported = ""
    while True:
        try:
            journal = read_journal(folder)
            if journal is not None:
                recording.unlink(missing_ok=True)
                asyncio.run(restore_settings(folder, journal, recording))
            return 0
        except CockpitError as error:
            why = sanitize(str(error), 1000)
            pause = PAUSE_AFTER_RELOAD if isinstance(error, ChangeFailed) else PAUSE
        if why != reported:
            with os.fdopen(open_new(folder / LOG, os.O_APPEND), "a") as log:
                log.write(f"{why}\n")
            reported = why
        if time.monotonic() > deadline:
            return 1
        time.sleep(pause)


async def restore_settings(folder: Path, journal: Journal, recording: Path) -> Journal:
    """Restore every knob's original value, run the actions for the end of the study, and update the journal.

    Raises HostError, ChangeRefused, ChangeRolledBack, UsageError; the journal then has the hosts that are left.
    """
    if not journal.touched:
        return journal
    names = {knob.host for knob in journal.knobs} | {action.host for action in journal.actions}
    profile = Profile(
        name=journal.name,
        plan=LoadPlan(url=journal.target),
        hosts=tuple(host for host in journal.hosts if host.name in names),
        knobs=journal.knobs,
        actions=journal.actions,
    )
    ssh_config = Path(journal.ssh_config) if journal.ssh_config else None
    recorder = RecordingWriter(recording)
    async with LiveSession(profile, recorder, ssh_config=ssh_config, check_target=False) as live:
        with suppress(CockpitError):  # an unreachable host fails below, others do not
            await live.hosts_up(names)
        failed = await restore(live, journal.knobs, journal.actions, journal.originals, journal.since)
    left = journal.left_on(failed)
    write_journal(folder, left)
    if failed:
        raise max(failed.values(), key=lambda error: isinstance(error, ChangeFailed))
    return left


def restore_recording(folder: Path) -> Path:
    """Return the path of a new recording in the study's folder, beside its numbered recordings."""
    number = 1
    while (path := folder / f"restored-{number}.cockpit").exists():
        number += 1
    return path
