"""Results of checks over months: a line of JSON per check and a file per profile, in the user's state folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

import msgspec

from cockpit.files import make_private, open_new, read_bounded, state_folder
from cockpit.model.errors import UsageError, naming
from cockpit.model.load.plan import LoadPlan

_ENDING = ".ndjson"
_MOST = 64 << 20  # bytes
_LONGEST_NAME = 200


class PastCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A check that was run. `wall`: its start (epoch s); `release` as its user named it; `machine` ran the load. The
    `plan` is without secrets; `metrics` have the names of thresholds and hold a value per check, the mean of its
    runs."""

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
    path = _path(target)
    with naming(path, "be written"):
        make_private(path.parent)
        with os.fdopen(open_new(path, os.O_APPEND), "ab") as file:
            file.write(msgspec.json.encode(check) + b"\n")


def past_checks(target: str) -> list[PastCheck]:
    """Return the checks of a profile or URL, oldest first. Lines that cannot be read, as after a full disk, are left
    out. Raises UsageError without any check."""
    path = _path(target)
    try:
        lines = read_bounded(path, _MOST).splitlines()
    except FileNotFoundError:
        raise UsageError(f"{target}: no check yet; run: cockpit check {target}") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    checks = []
    for line in lines:
        with suppress(msgspec.MsgspecError, ValueError):
            checks.append(_decoder.decode(line))
    return sorted(checks, key=lambda check: check.wall)


def checked_targets() -> list[CheckedTarget]:
    """Return the profiles and URLs with checks, the last checked first. Files that cannot be read are left out."""
    targets = []
    for path in folder().glob(f"*{_ENDING}"):
        target = unquote(path.stem)
        with suppress(UsageError):
            if _path(target) == path and (checks := past_checks(target)):
                targets.append(CheckedTarget(target, len(checks), checks[-1]))
    return sorted(targets, key=lambda checked: -checked.newest.wall)


def _path(target: str) -> Path:
    name = target if "://" in target else Path(target).stem
    return folder() / f"{quote(name, safe='')[:_LONGEST_NAME]}{_ENDING}"


_decoder = msgspec.json.Decoder(PastCheck)
