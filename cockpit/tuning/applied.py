"""The record of a change: enough to show, record and undo it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from cockpit.model.errors import CockpitError
from cockpit.model.knobs import Knob, Setting


class ChangeFailed(CockpitError):
    """A change that could neither be finished nor rolled back completely; the message has the state of the host and the
    place of the originals."""

    exit_code = 5


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was written. `real` is the target of `file`; `before` and `after` are SHA-256 of its bytes, or
    scripts.ABSENT. `backup` is the original, on the same host."""

    file: str
    real: str
    before: str
    after: str
    backup: str


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """A value's bytes in the file `real`, before and after; None: not set."""

    knob: Knob
    real: str
    old: bytes | None
    new: bytes | None


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    """A live value, before and after; `got` is the value that the host reports ("": `new`)."""

    knob: Knob
    old: str
    new: str
    got: str = ""


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """A confirmed change: test passed, reload accepted, values read back, active but for the `inactive` knobs.

    `notes` are lines for a person: corrections by the server, a directive that is set twice, foreign edits that an undo
    found. `change` is its directory on the host ("": nothing had to be changed).
    """

    host: str
    settings: tuple[Setting, ...]
    files: tuple[FileChange, ...] = ()
    edits: tuple[Edit, ...] = ()
    switches: tuple[Switch, ...] = ()
    notes: tuple[str, ...] = ()
    change: str = ""
    inactive: tuple[Knob, ...] = ()

    @property
    def outcome(self) -> Literal["applied", "written"]:
        """`written`: none of its values is active yet."""
        names = {knob.name for knob in self.inactive}
        return "written" if names and all(setting.knob in names for setting in self.settings) else "applied"


class About(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of a change that its host keeps from the beginning: `who` requested it, `when` (epoch seconds).

    `places` identify the values it changes, independent of knob names; `undoes` is the directory of the change
    that it undoes. `inactive` are the knobs whose value it only writes.
    """

    who: str
    when: float
    settings: tuple[Setting, ...]
    places: tuple[str, ...]
    undoes: str = ""
    inactive: tuple[str, ...] = ()


class PastState(StrEnum):
    """State of a change in a host's history; rolled back: by the host itself, undone: by a later change."""

    APPLIED = "applied"
    UNDONE = "undone"
    ROLLED_BACK = "rolled back"
    ROLLING_BACK = "being rolled back"
    UNDER_WAY = "under way"
    HALF_DONE = "left half done"


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """A change in a host's history, by its directory there; `undone_by` is the name of the change that undid it."""

    change: str
    about: About
    state: PastState
    undone_by: str = ""

    @property
    def name(self) -> str:
        """Short name, the same for as long as the change is kept."""
        return name_of(self.change)

    @property
    def begun(self) -> str:
        """When it began, by the host's clock; sorts as text."""
        return self.change.rpartition("/")[2].partition("-")[0]


def name_of(change: str) -> str:
    return change.rpartition("-")[2]
