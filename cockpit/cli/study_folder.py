"""A study's folder: which one it is, who has it, and the sessions recorded in it."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import NamedTuple

from cockpit.cli.opening import recording_at
from cockpit.model.errors import RecordingError, UsageError
from cockpit.model.fold import fold_all
from cockpit.model.state import State
from cockpit.model.study import Study
from cockpit.model.text import neutral
from cockpit.study.collecting import collect
from cockpit.study.journal import FILE, FolderLock, Journal, LockRole, read_journal
from cockpit.study.results import StudyResult

# Where studies lie when nobody says where.
STUDIES = Path("studies")
PAGE = "page.html"
# Results beside the recordings, each with its format as `cockpit report` names it.
RESULTS = {
    "result.txt": "text",
    "result.md": "md",
    "result.json": "json",
    PAGE: "html",
    "runs.csv": "csv",
    "verdicts.csv": "verdicts-csv",
}
# How long a keeper that puts settings back is waited for (s).
KEEPER_WITHIN = 300.0
_HOLDERS = {LockRole.STUDY: "a study", LockRole.KEEPER: "the keeper that puts its settings back"}


class Place(NamedTuple):
    """A study's folder, locked for this process: its journal, and the file that the next session is recorded in.

    `left` is the folder of one that was killed and is not gone on with, if its settings still have to be put back.
    `continued`: the study in the folder is unfinished, and this process goes on with it.
    """

    folder: Path
    lock: FolderLock
    journal: Journal
    recording: Path
    left: Path | None = None
    continued: bool = False


def open_place(options: Namespace, name: str, study: Study) -> Place:
    """The folder of `-o`, or the newest of this study in `studies/`: one that is not finished goes on.

    Raises UsageError: it belongs to another study, cannot be written, is in use, or --resume finds nothing to go on
    with.
    """
    newest = folder = options.output or _newest(name, study.form)
    journal = _unfinished(folder, study, options)
    if journal is None:
        if options.resume:
            raise UsageError(f"{folder}: --resume: no unfinished study of this profile lies there")
        folder = options.output or _next(name, study.form)
        if (folder / FILE).exists() and not options.fresh:
            raise UsageError(
                f"{folder}: holds a study already; name another folder, or add --fresh to start over there"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made: {error.strerror}") from None
    lock = locked(folder)
    # A keeper may have put everything back while we waited for it.
    known = read_journal(folder)
    continued = journal is not None
    if journal is not None:
        print(f"cockpit: {folder}: goes on where it stopped", file=sys.stderr)
        journal = known or journal
    else:
        _set_aside(folder, known)
        touched = known if known is not None and known.touched else Journal(name=name, fingerprint=study.fingerprint)
        journal = touched
    left = newest if newest != folder and (old := read_journal(newest)) and old.touched else None
    return Place(folder, lock, journal, _recording(folder), left, continued)


def _unfinished(folder: Path, study: Study, options: Namespace) -> Journal | None:
    """The journal there, if it is of this very study and not finished and may go on."""
    found = None if options.fresh else read_journal(folder)
    if found is None or found.finished:
        return None
    if found.fingerprint != study.fingerprint:
        if options.output or options.resume:
            raise UsageError(
                f"{folder}: holds an unfinished study with another plan; --fresh begins anew there, its settings put "
                "back first"
            )
        return None
    return found


def _numbered(name: str, form: str) -> list[Path]:
    """The folders of this study in studies/, oldest first."""
    pattern = f"{name}-{form}-*"
    found = [path for path in STUDIES.glob(pattern) if _is_number(path.name.rpartition("-")[2])]
    return sorted(found, key=lambda path: int(path.name.rpartition("-")[2]))


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
    """The folder's lock, once a keeper that has it is done. Raises UsageError while another study has it."""
    lock = FolderLock(folder)
    deadline = time.monotonic() + KEEPER_WITHIN
    waiting = False
    while holder := lock.take(LockRole.STUDY):
        words = f"{_HOLDERS[holder.role]}, process {holder.pid}" if holder.role else "another process"
        if holder.role is not LockRole.KEEPER or time.monotonic() > deadline:
            raise UsageError(f"{folder}: is in use by {words}")
        if not waiting:
            print(f"cockpit: {folder}: waiting for {words}", file=sys.stderr)
            waiting = True
        time.sleep(0.2)
    return lock


def _set_aside(folder: Path, known: Journal | None) -> None:
    """Recordings and results of a study that is begun anew go to a folder of their own beside them."""
    if known is None:
        return
    old = [*folder.glob("*.cockpit*"), *(path for name in RESULTS if (path := folder / name).exists())]
    if not old:
        return
    number = len(list(folder.glob("before-*"))) + 1
    aside = folder / f"before-{number}"
    aside.mkdir()
    for path in old:
        path.rename(aside / path.name)


def _recording(folder: Path) -> Path:
    numbers = [int(path.stem) for path in folder.glob("*.cockpit") if _is_number(path.stem)]
    return folder / f"{max(numbers, default=0) + 1}.cockpit"


def _is_session(path: Path) -> bool:
    """Whether it is a recording of this study: a file by a number, and no link out of the folder."""
    return _is_number(path.stem) and not path.is_symlink()


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 10


def sessions_of(folder: Path) -> list[State]:
    """The last states of the sessions recorded in a study's folder, oldest first.

    One that does not read (it was killed before anything was written) is left out, and said.
    """
    files = sorted((path for path in folder.glob("*.cockpit") if _is_session(path)), key=lambda path: int(path.stem))
    states = []
    for path in files:
        try:
            with recording_at(path) as recording:
                states.append(fold_all(recording.events()))
        except RecordingError as error:
            print(f"cockpit: left out: {neutral(str(error), 1000)}", file=sys.stderr)
    return states


def result_in(folder: Path) -> StudyResult | None:
    """The result of the study recorded in a folder; None when no run of one is recorded there."""
    states = sessions_of(folder)
    named = next((state.started.name for state in reversed(states) if state.study and state.started), "")
    result = collect(states, named)
    return result if result and result.cells else None
