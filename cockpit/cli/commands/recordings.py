"""`cockpit recordings`: list, rename, delete and prune the recordings of the library."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from datetime import datetime

from cockpit.cli.file_changes import ChangedFile, emit_changes
from cockpit.cli.terminal import aligned, emit
from cockpit.model.errors import EXIT_GOOD, UsageError
from cockpit.model.text import clock, mebibytes, sanitize
from cockpit.recording import library
from cockpit.recording.database import in_use
from cockpit.recording.library import RecordingInfo
from cockpit.report.encoding import to_json


def recordings(options: Namespace) -> int:
    if options.action == "list":
        _list(options)
    else:
        changes = {"rename": _renamed, "delete": _deleted, "prune": _pruned}[options.action](options)
        emit_changes(changes, as_json=options.json)
    return EXIT_GOOD


def _list(options: Namespace) -> None:
    kept = library.list_recordings()
    if options.json:
        emit(to_json(kept))
    elif not kept:
        emit(f"no recordings in {library.folder()}")
    else:
        emit("\n".join(aligned([("name", "started", "duration", "runs", "size", "target"), *map(_row, kept)])))


def _row(recording: RecordingInfo) -> tuple[str, str, str, str, str, str]:
    size = mebibytes(recording.size)
    if recording.problem:
        return sanitize(recording.name), "", "", "", size, sanitize(recording.problem)
    began = datetime.fromtimestamp(recording.began).strftime("%Y-%m-%d %H:%M:%S")
    target = sanitize(recording.target or recording.session)
    target = target if recording.ended else f"{target} (not ended)"
    return sanitize(recording.name), began, clock(recording.seconds), str(recording.runs), size, target


def _renamed(options: Namespace) -> Iterator[ChangedFile]:
    path = library.rename(options.name, options.new)
    yield ChangedFile(action="renamed", name=options.new, path=str(path), size=path.stat().st_size)


def _deleted(options: Namespace) -> Iterator[ChangedFile]:
    paths = {name: library.in_library(name) for name in options.names}
    for name, path in paths.items():
        yield ChangedFile(action="deleted", name=name, path=str(path), size=library.delete(name))


def _pruned(options: Namespace) -> Iterator[ChangedFile]:
    """Delete the oldest recordings; unreadable files stay, because their age is unknown."""
    if options.keep is None and options.older is None:
        raise UsageError("prune: choose recordings with --keep N, --older T, or both")
    kept = [recording for recording in library.list_recordings() if not recording.problem]
    chosen = kept if options.keep is None else kept[options.keep :]
    if options.older is not None:
        chosen = [recording for recording in chosen if recording.began < time.time() - options.older]
    for recording in chosen:
        name, path = recording.name, library.in_library(recording.name)
        if in_use(path):
            print(f"cockpit: {name}: not deleted: in use", file=sys.stderr)
        elif options.dry_run:
            yield ChangedFile(action="would delete", name=name, path=str(path), size=recording.size)
        else:
            yield ChangedFile(action="deleted", name=name, path=str(path), size=library.delete(name))
