"""The journal of a study, beside its recordings: the original settings of the servers, and whether they are restored.

It is written before the first change and replaced atomically, so that it is complete after a crash.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hmac
import os
import secrets
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import msgspec
import platformdirs

from cockpit.files import read_bounded, write_private
from cockpit.model.errors import UsageError
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob, ServerAction

FILE = "study.json"
LOCK = "lock"
_VERSION = 2
_MOST = 16 << 20  # bytes
_KEY_BYTES = 32


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """`fingerprint` identifies the study, `seed` the order of its rounds (None: none was drawn).

    `originals` are the knobs' values before the first change (None: not set); `touched`: a change may be active, so
    that they have to be restored, and then the `actions` run. `finished`: the study is over. `target`, `hosts`,
    `knobs` and `ssh_config` are needed for the session that puts things back.
    """

    version: int = _VERSION
    name: str
    fingerprint: str
    seed: int | None = None
    target: str = ""
    hosts: tuple[HostConfig, ...] = ()
    knobs: tuple[Knob, ...] = ()
    actions: tuple[ServerAction, ...] = ()
    originals: dict[str, str | None] = {}
    touched: bool = False
    finished: bool = False
    ssh_config: str = ""


class _Sealed(msgspec.Struct, frozen=True):
    """The file: `seal`, a keyed hash of the journal, proves that this user's cockpit wrote it."""

    journal: Journal
    seal: str


def read_journal(folder: Path) -> Journal | None:
    """Read the journal of a study's folder; None if there is none. Raises UsageError for an invalid one."""
    path = folder / FILE
    try:
        found = msgspec.json.decode(read_bounded(path, _MOST), type=_Sealed)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, RecursionError, MemoryError, ValueError) as error:
        raise UsageError(f"{path}: invalid journal: {error}") from None
    if found.journal.version != _VERSION:
        raise UsageError(f"{path}: was written by another cockpit (journal {found.journal.version})")
    if found.journal.touched and not hmac.compare_digest(found.seal.encode(), _seal(found.journal).encode()):
        # Its commands would run on hosts: a folder that came with an archive or a clone must not bring them.
        raise UsageError(
            f"{path}: was not written by this user's cockpit here, so its settings are not restored; delete it, and "
            "check the settings with: cockpit tune PROFILE history"
        )
    return found.journal


def _seal(journal: Journal) -> str:
    """Return a keyed hash of the journal's content. Raises UsageError if the key cannot be read or made."""
    return hmac.new(_key(), msgspec.json.encode(journal), "sha256").hexdigest()


def _key() -> bytes:
    """This user's random key in the state directory, made when it is first needed."""
    path = platformdirs.user_state_path("cockpit") / "journal.key"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".journal.") as beside:
                beside.write(secrets.token_bytes(_KEY_BYTES))
                beside.flush()
                os.fsync(beside.fileno())
                # Whoever comes second takes the first one's key.
                with contextlib.suppress(FileExistsError):
                    os.link(beside.name, path)
        key = read_bounded(path, _KEY_BYTES)
    except OSError as error:
        raise UsageError(f"{path}: cannot be used: {error.strerror}") from None
    if len(key) != _KEY_BYTES:
        raise UsageError(f"{path}: is damaged; delete it")
    return key


def write_journal(folder: Path, journal: Journal) -> None:
    """Replace the journal, synced to the disk. Raises UsageError."""
    path = folder / FILE
    sealed = _Sealed(journal, _seal(journal))
    try:
        write_private(path, msgspec.json.format(msgspec.json.encode(sealed), indent=2) + b"\n")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


class LockRole(StrEnum):
    """Kinds of processes that lock a study's folder."""

    STUDY = "study"
    KEEPER = "keeper"


class LockHolder(NamedTuple):
    """The process that has a folder; `role` is None and `pid` 0 if its entry cannot be read."""

    role: LockRole | None
    pid: int


class FolderLock:
    """A study's folder belongs to one process at a time; the kernel releases it when that ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        self._descriptor = -1

    def take(self, role: LockRole) -> LockHolder | None:
        """Lock the folder; return its holder if another process has it. Raises UsageError if it cannot be locked."""
        try:
            descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise UsageError(f"{self._path}: cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _holder(os.read(descriptor, 200).decode("utf-8", "replace"))
            os.close(descriptor)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise UsageError(f"{self._path}: cannot be locked: {error.strerror}") from None
            return holder
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{role} {os.getpid()}".encode())
        self._descriptor = descriptor
        return None

    def release(self) -> None:
        """Unlock the folder, if this process has locked it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _holder(entry: str) -> LockHolder:
    role, _, pid = entry.partition(" ")
    if role not in tuple(LockRole) or not pid.isdecimal() or len(pid) > 10:
        return LockHolder(None, 0)
    return LockHolder(LockRole(role), int(pid))
