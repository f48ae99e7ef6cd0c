"""What a change left behind: enough to show it, to record it and to take it back."""

from __future__ import annotations

import msgspec

from cockpit.model.errors import CockpitError
from cockpit.model.knobs import Knob, Setting


class ChangeFailed(CockpitError):
    """A change that could neither be finished nor put back whole; the message says how the host stands and where the
    original bytes are kept."""

    exit_code = 5


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was written. `real` is what `file` leads to; `before` and `after` are SHA-256 of its bytes.

    `backup` is the original, on the same host.
    """

    file: str
    real: str
    before: str
    after: str
    backup: str


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """A directive's arguments as bytes of the file `real`, before and after; None: the directive was not there."""

    knob: Knob
    real: str
    old: bytes | None
    new: bytes | None


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """A change that is in force: test passed, reload accepted, values read back from the files.

    `notes` are remarks for a person, a line each: a directive that stands twice, an undo that found foreign edits.
    """

    host: str
    settings: tuple[Setting, ...]
    files: tuple[FileChange, ...] = ()
    edits: tuple[Edit, ...] = ()
    notes: tuple[str, ...] = ()
