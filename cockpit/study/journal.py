"""The small file beside a study's recordings: what the servers' settings were, and whether they are that again.

It is written before the first change and replaced in one step, so that whoever reads it after a crash finds it whole.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import msgspec

from cockpit.model.errors import UsageError
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob, ServerAction

FILE = "study.json"
LOCK = "lock"
_VERSION = 1


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """`fingerprint` tells which study. `originals` are the knobs' values before the first change (None: not set);
    `touched`: a change may be in force, so that they have to be put back, and then the `actions` be done. `finished`:
    every step is done. `hosts`, `knobs` and `ssh_config` are what it takes to put things back.
    """

    version: int = _VERSION
    name: str
    fingerprint: str
    hosts: tuple[HostConfig, ...] = ()
    knobs: tuple[Knob, ...] = ()
    actions: tuple[ServerAction, ...] = ()
    originals: dict[str, str | None] = {}
    touched: bool = False
    finished: bool = False
    ssh_config: str = ""


def read_journal(folder: Path) -> Journal | None:
    """The journal of a study's folder; None where there is none. Raises UsageError for one that does not read."""
    path = folder / FILE
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Journal)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path}: is no study's journal: {error}") from None
    if found.version != _VERSION:
        raise UsageError(f"{path}: was written by another cockpit (journal {found.version})")
    return found


def write_journal(folder: Path, journal: Journal) -> None:
    """Puts the journal in the place of the one before, on the disk when this returns. Raises UsageError."""
    path, beside = folder / FILE, folder / f"{FILE}.part"
    try:
        descriptor = os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(journal), indent=2) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


class FolderLock:
    """A study's folder belongs to one process at a time; the kernel lets go of it when that ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        self._descriptor = -1

    def take(self, who: str) -> str:
        """ "" once the folder is ours, else who has it. Raises UsageError where it cannot be locked at all."""
        try:
            descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise UsageError(f"{self._path}: cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(descriptor, 200).decode("utf-8", "replace")
            os.close(descriptor)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise UsageError(f"{self._path}: cannot be locked: {error.strerror}") from None
            return holder or "another process"
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{who}, process {os.getpid()}".encode())
        self._descriptor = descriptor
        return ""

    def release(self) -> None:
        """Lets go of the folder, if it is ours."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
