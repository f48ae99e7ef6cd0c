"""The journal of a study, in the folder of its recordings: original settings of the servers, and whether they are
restored.

The journal is written before the first change and replaced atomically, so that it is complete after a crash.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hmac
import os
import secrets
import tempfile
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from cockpit.files import make_private, read_bounded, state_folder, write_private
from cockpit.model.errors import UsageError, naming
from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob, ServerAction

FILE = "study.json"
LOCK = "lock"
_VERSION = 2
_MAX_BYTES = 16 << 20
_KEY_BYTES = 32


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """Facts to continue a study, and to restore its settings.

    `fingerprint` identifies the study, `seed` the order of its rounds (None: not drawn). `originals` are the knobs'
    values before the first change (None: not set), read at `since` (epoch s). `touched`: a change may be active; the
    originals of `knobs` have to be restored, and then the `actions` run. `finished`: the study is over. The session
    that restores the settings needs `target`, `hosts`, `knobs` and `ssh_config`.
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
    since: float = 0.0
    touched: bool = False
    finished: bool = False
    ssh_config: str = ""

    def left_on(self, hosts: Collection[str]) -> Journal:
        """Return the journal with the settings that are left to restore, those of `hosts`."""
        knobs = tuple(knob for knob in self.knobs if knob.host in hosts)
        actions = tuple(action for action in self.actions if action.host in hosts)
        return replace(self, knobs=knobs, actions=actions, touched=bool(hosts))


class _Sealed(msgspec.Struct, frozen=True):
    """The file's content. `seal` is a keyed hash of the journal, which proves that this user's cockpit wrote it."""

    journal: Journal
    seal: str


def read_journal(folder: Path) -> Journal | None:
    """Return the journal in a study's folder, None without one. Raises UsageError for an invalid journal."""
    path = folder / FILE
    try:
        sealed = msgspec.json.decode(read_bounded(path, _MAX_BYTES), type=_Sealed)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, RecursionError, MemoryError, ValueError) as error:
        raise UsageError(f"{path}: invalid journal: {error}") from None
    if sealed.journal.version != _VERSION:
        raise UsageError(f"{path}: written by another version of cockpit (journal {sealed.journal.version})")
    if sealed.journal.touched and not hmac.compare_digest(sealed.seal.encode(), _seal(sealed.journal).encode()):
        # The journal's commands would run on hosts; a folder from an archive or a clone must not bring commands.
        raise UsageError(
            f"{path}: was not written by this user's cockpit here, so its settings are not restored; delete it, and "
            "check the settings with: cockpit tune PROFILE history"
        )
    return sealed.journal


def _seal(journal: Journal) -> str:
    """Return a keyed hash of the journal's content. Raises UsageError if the key cannot be read or created."""
    return hmac.new(_key(), msgspec.json.encode(journal), "sha256").hexdigest()


def _key() -> bytes:
    """Return this user's random key in the state directory; create it if it is missing."""
    path = state_folder() / "journal.key"
    with naming(path, "be used"):
        make_private(path.parent)
        if not path.exists():
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".journal.") as new:
                new.write(secrets.token_bytes(_KEY_BYTES))
                new.flush()
                os.fsync(new.fileno())
                # If another process was first, its key is used.
                with contextlib.suppress(FileExistsError):
                    os.link(new.name, path)
        key = read_bounded(path, _KEY_BYTES)
    if len(key) != _KEY_BYTES:
        raise UsageError(f"{path}: is damaged; delete it")
    return key


def write_journal(folder: Path, journal: Journal) -> None:
    """Replace the journal and sync it to disk. Raises UsageError."""
    path = folder / FILE
    sealed = _Sealed(journal, _seal(journal))
    with naming(path, "be written"):
        write_private(path, msgspec.json.format(msgspec.json.encode(sealed), indent=2) + b"\n")


class LockRole(StrEnum):
    """The kind of process that locks a study's folder."""

    STUDY = "study"
    RESTORER = "restorer"


class LockHolder(NamedTuple):
    """The process that has locked a folder; `role` is None and `pid` 0 if the lock file cannot be read."""

    role: LockRole | None
    pid: int


class FolderLock:
    """A lock of a study's folder; the kernel releases it when the process ends."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        self._descriptor = -1

    def acquire(self, role: LockRole) -> LockHolder | None:
        """Lock the folder; return the other process if it is locked already. Raises UsageError for a failure."""
        with naming(self._path, "be written"):
            descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
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
