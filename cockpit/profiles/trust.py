"""Trusted profiles, which may run commands: shipped ones, those written by cockpit, and those accepted by the user.

Trust is by the hash of the profile and of all local files named in it; any edit revokes it. Each accepted hash is the
name of an empty file in a folder that only the user can write.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from cockpit.files import make_private, state_folder
from cockpit.model.errors import UsageError
from cockpit.profiles.catalogue import shipped_folder
from cockpit.profiles.profile import Profile
from cockpit.profiles.reader import digest_of
from cockpit.profiles.uses import is_load_only


def folder() -> Path:
    """Return the folder of accepted hashes; it might not exist yet."""
    return state_folder() / "trusted"


def is_trusted(profile: Profile) -> bool:
    """Return whether a profile may be used without asking; always if it only sends requests to its target."""
    if profile.source is None or is_load_only(profile):
        return True
    return _is_shipped(Path(profile.source.path)) or _is_accepted(profile.source.digest)


def accept(profile: Profile) -> None:
    """Trust a profile with the content that was read. Raises UsageError if that cannot be stored."""
    if profile.source is not None:
        _record(profile.source.digest)


def accept_written(text: str) -> None:
    """Trust a profile written by cockpit, which names no local files. If that cannot be stored, the user is asked when
    the profile is opened."""
    with contextlib.suppress(UsageError):
        _record(digest_of(text.encode(), {}))


def _record(digest: str) -> None:
    path = folder() / digest
    try:
        make_private(path.parent)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}; the profile is not trusted") from None
    if not _is_accepted(digest):
        raise UsageError(f"{path.parent}: others can write to the folder; chmod 700 {path.parent}")


def _is_accepted(digest: str) -> bool:
    path = folder() / digest
    return _is_protected(path.parent, {os.getuid()}) and _is_protected(path, {os.getuid()})


def _is_shipped(path: Path) -> bool:
    """Return whether a path is in the folder of shipped profiles, and only root or the user can edit it."""
    shipped = shipped_folder()
    try:
        real = path.resolve()
        where = shipped.resolve() if shipped else None
    except (OSError, RuntimeError):
        return False
    owners = {0, os.getuid()}
    return real.parent == where and _is_protected(real, owners) and _is_protected(real.parent, owners)


def _is_protected(path: Path, owners: set[int]) -> bool:
    """Return whether a path belongs to one of the owners, is no link, and is not writable by everybody."""
    try:
        facts = path.lstat()
    except OSError:
        return False
    return facts.st_uid in owners and not stat.S_ISLNK(facts.st_mode) and not facts.st_mode & stat.S_IWOTH
