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
    """A file that was written. `real` is what `file` leads to; `before` and `after` are SHA-256 of its bytes, or
    scripts.ABSENT where there was, or is, no such file.

    `backup` is the original, on the same host.
    """

    file: str
    real: str
    before: str
    after: str
    backup: str


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """A value's bytes in the file `real`, before and after; None: it was not there."""

    knob: Knob
    real: str
    old: bytes | None
    new: bytes | None


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    """A value that the host itself holds, before and after; `got` is what the host made of it ("" as `new`)."""

    knob: Knob
    old: str
    new: str
    got: str = ""


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """A change that is in force: test passed, reload accepted, values read back, confirmed.

    `notes` are remarks for a person, a line each: what the server corrected, a directive that stands twice, an undo
    that found foreign edits. `change` is its directory on the host ("" where nothing had to be changed).
    """

    host: str
    settings: tuple[Setting, ...]
    files: tuple[FileChange, ...] = ()
    edits: tuple[Edit, ...] = ()
    switches: tuple[Switch, ...] = ()
    notes: tuple[str, ...] = ()
    change: str = ""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a change on its host from its beginning on: `who` asked for it, `when` (epoch seconds)."""

    who: str
    when: float
    settings: tuple[Setting, ...]
    undoes: str = ""


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """A change in a host's history. `state` is applied, `taken back`, undone, `under way`, or `left half done`."""

    change: str
    about: About
    state: str
