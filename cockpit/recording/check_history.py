"""Results of checks over months: a line of JSON per check and a file per profile, in the user's state folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from cockpit.files import make_private, open_new, read_bounded, state_folder
from cockpit.model.errors import UsageError, naming
from cockpit.model.load.plan import LoadPlan
from cockpit.profiles.catalogue import SUFFIX, find

_ENDING = ".ndjson"
_MOST = 64 << 20  # bytes
_LONGEST_NAME = 200


class PastCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A check that was run. `wall`: its start (epoch s); `release` as its user named it; `machine` ran the load. The
    `plan` is without secrets; `metrics` have the names of thresholds and hold a value per check, the mean of its
    runs. `target`: the name or path of the profile, or the URL."""

    target: str = ""
    wall: float
    release: str = ""
    machine: str = ""
    exit_code: int = 0
    plan: LoadPlan
    metrics: Mapping[str, float]


class CheckedTarget(NamedTuple):
    """A profile or URL with checks: their number, and the newest one."""

    target: str
    checks: int
    newest: PastCheck


def folder() -> Path:
    return state_folder() / "checks"


def append(target: str, check: PastCheck) -> None:
    """Add a check of a profile, by name or path, or of a URL without credentials. Raises UsageError if the file cannot
    be written."""
    line = msgspec.json.encode(replace(check, target=_name(target)))
    path = _path(target)
    with naming(path, "be written"):
        make_private(path.parent)
        with os.fdopen(open_new(path, os.O_APPEND), "ab") as file:
            # The last line may be incomplete, as after a full disk.
            file.write(b"\n" + line if file.tell() else line)


def past_checks(target: str) -> list[PastCheck]:
    """Return the checks of a profile or URL, oldest first. Lines that cannot be read, as after a full disk, are left
    out. Raises UsageError without any check."""
    try:
        return _checks(_path(target))
    except FileNotFoundError:
        raise UsageError(f"{target}: no check yet; run: cockpit check {target}") from None


def checked_targets() -> list[CheckedTarget]:
    """Return the profiles and URLs with checks, the last checked first. Files that cannot be read are left out."""
    targets = []
    for path in folder().glob(f"*{_ENDING}"):
        with suppress(UsageError, FileNotFoundError):
            checks = _checks(path)
            if checks and _path(checks[-1].target) == path:
                targets.append(CheckedTarget(checks[-1].target, len(checks), checks[-1]))
    return sorted(targets, key=lambda checked: -checked.newest.wall)


def _checks(path: Path) -> list[PastCheck]:
    """Return the checks in a file, oldest first. Raises FileNotFoundError and UsageError."""
    try:
        lines = read_bounded(path, _MOST).splitlines()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    checks = []
    for line in lines:
        with suppress(msgspec.MsgspecError, ValueError):
            checks.append(_decoder.decode(line))
    return sorted(checks, key=lambda check: check.wall)


def _path(target: str) -> Path:
    name = _name(target)
    file = quote(name, safe="")
    if len(file) > _LONGEST_NAME:
        file = f"{file[:_LONGEST_NAME]}-{sha256(name.encode()).hexdigest()[:16]}"
    return folder() / f"{file}{_ENDING}"


def _name(target: str) -> str:
    """Return a URL, the name of a profile that is found by its name, or the path of another profile."""
    if "://" in target or not ("/" in target or target.endswith(SUFFIX)):
        return target
    path = Path(os.path.realpath(target))
    named = find(path.name.removesuffix(SUFFIX))
    return path.name.removesuffix(SUFFIX) if named and named.resolve() == path else str(path)


_decoder = msgspec.json.Decoder(PastCheck)
