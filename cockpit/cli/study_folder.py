"""Folder of a study: its choice, its lock, and the recorded sessions."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from itertools import count
from pathlib import Path
from typing import NamedTuple

from cockpit.cli.open_recording import recording_at
from cockpit.model.errors import RecordingError, UsageError, naming
from cockpit.model.fold.fold import fold_all
from cockpit.model.state import State
from cockpit.model.study import Study
from cockpit.model.text import sanitize
from cockpit.study.collecting import collect
from cockpit.study.journal import FILE, FolderLock, Journal, LockRole, read_journal
from cockpit.study.results import StudyResult

# The default folder of studies.
STUDIES = Path("studies")
PAGE = "page.html"
# Result files beside the recordings, with their format of `cockpit report`.
RESULTS = {
    "result.txt": "text",
    "result.md": "md",
    "result.json": "json",
    PAGE: "html",
    "runs.csv": "csv",
    "verdicts.csv": "verdicts-csv",
}
# Maximum wait (s) for a restorer that restores settings.
RESTORED_WITHIN = 300.0
_HOLDERS = {LockRole.STUDY: "a study", LockRole.RESTORER: "the restorer of its settings"}


class StudyFolder(NamedTuple):
    """Folder of a study, locked by this process, with its journal and the file of the next recording.

    `left`: folder of a killed study that is not continued but whose settings have to be restored.
    `continued`: this process continues the unfinished study in the folder.
    """

    path: Path
    lock: FolderLock
    journal: Journal
    recording: Path
    left: Path | None = None
    continued: bool = False


def open_folder(options: Namespace, name: str, study: Study) -> StudyFolder:
    """Return the folder of `-o`, else the newest of this study in `studies/`; an unfinished study is continued.

    Raises UsageError if the folder belongs to another study, cannot be written or is in use, or if --resume finds no
    study.
    """
    newest = folder = options.output or _newest(name, study.form)
    journal = _unfinished(folder, study, options)
    if journal is None:
        if options.resume:
            raise UsageError(f"{folder}: no unfinished study of this profile; leave out --resume")
        folder = options.output or _next(name, study.form)
        if (folder / FILE).exists() and not options.fresh:
            raise UsageError(
                f"{folder}: already contains a study; choose another folder, or add --fresh to start over there"
            )
    with naming(folder, "be created"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = locked(folder)
    # A restorer may have restored all settings during the wait.
    known = read_journal(folder)
    continued = journal is not None
    if journal is not None:
        print(f"cockpit: {folder}: continuing the unfinished study", file=sys.stderr)
        journal = known or journal
    else:
        _move_old_results(folder, known)
        touched = known if known is not None and known.touched else Journal(name=name, fingerprint=study.fingerprint)
        journal = touched
    left = newest if newest != folder and (old := read_journal(newest)) and old.touched else None
    return StudyFolder(folder, lock, journal, _recording(folder), left, continued)


def _unfinished(folder: Path, study: Study, options: Namespace) -> Journal | None:
    """Return the journal of an unfinished study with the same plan, else None."""
    journal = None if options.fresh else read_journal(folder)
    if journal is None or journal.finished:
        return None
    if journal.fingerprint != study.fingerprint:
        if options.output or options.resume:
            raise UsageError(
                f"{folder}: contains an unfinished study with another plan; --fresh restores its settings and restarts"
            )
        return None
    return journal


def _numbered(name: str, form: str) -> list[Path]:
    pattern = f"{name}-{form}-*"
    paths = [path for path in STUDIES.glob(pattern) if _is_number(path.name.rpartition("-")[2])]
    return sorted(paths, key=lambda path: int(path.name.rpartition("-")[2]))


def _newest(name: str, form: str) -> Path:
    known = _numbered(name, form)
    return known[-1] if known else STUDIES / f"{name}-{form}-1"


def _next(name: str, form: str) -> Path:
    known = _numbered(name, form)
    if known and not (known[-1] / FILE).exists():
        return known[-1]
    number = int(known[-1].name.rpartition("-")[2]) + 1 if known else 1
    return STUDIES / f"{name}-{form}-{number}"


def locked(folder: Path) -> FolderLock:
    """Lock the folder, after waiting for a restorer in it. Raises UsageError if another study uses it."""
    lock = FolderLock(folder)
    deadline = time.monotonic() + RESTORED_WITHIN
    waiting = False
    while holder := lock.acquire(LockRole.STUDY):
        words = f"{_HOLDERS[holder.role]}, process {holder.pid}" if holder.role else "another process"
        if holder.role is not LockRole.RESTORER or time.monotonic() > deadline:
            raise UsageError(f"{folder}: in use by {words}")
        if not waiting:
            print(f"cockpit: {folder}: waiting for {words}", file=sys.stderr)
            waiting = True
        time.sleep(0.2)
    return lock


def _move_old_results(folder: Path, known: Journal | None) -> None:
    """Move recordings and results of a replaced study to a folder beside them."""
    if known is None:
        return
    old = [*folder.glob("*.cockpit*"), *(path for name in RESULTS if (path := folder / name).exists())]
    if not old:
        return
    aside = next(path for number in count(1) if not (path := folder / f"before-{number}").exists())
    with naming(aside, "be created"):
        aside.mkdir()
        for path in old:
            path.rename(aside / path.name)


def _recording(folder: Path) -> Path:
    numbers = [int(path.stem) for path in folder.glob("*.cockpit") if _is_number(path.stem)]
    return folder / f"{max(numbers, default=0) + 1}.cockpit"


def _is_session(path: Path) -> bool:
    """Return whether the path is a recording of this study: a numbered file that is not a link."""
    return _is_number(path.stem) and not path.is_symlink()


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 10


def sessions_of(folder: Path) -> list[State]:
    """Return the last states of the sessions recorded in a study's folder, oldest first.

    An unreadable recording (of a session killed before its first write) is left out, with a warning.
    """
    files = sorted((path for path in folder.glob("*.cockpit") if _is_session(path)), key=lambda path: int(path.stem))
    states = []
    for path in files:
        try:
            with recording_at(path) as recording:
                states.append(fold_all(recording.events()))
        except RecordingError as error:
            print(f"cockpit: left out: {sanitize(str(error), 1000)}", file=sys.stderr)
    return states


def result_in(folder: Path) -> StudyResult | None:
    """Return the result of the study recorded in a folder; None without a recorded run."""
    states = sessions_of(folder)
    session_name = next((state.started.name for state in reversed(states) if state.study and state.started), "")
    result = collect(states, session_name)
    return result if result and result.cells else None
