"""The record of a change, with all facts to show, record and undo it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from cockpit.model.errors import CockpitError
from cockpit.model.knobs import Knob, Setting


class ChangeFailed(CockpitError):
    """A change that could neither be finished nor rolled back completely; the message has the host's state and the path
    of the original files."""

    exit_code = 5


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was written.

    `real` is the path of `file` behind links; `before` and `after` are the SHA-256 of its bytes, or scripts.ABSENT.
    `backup` is the path of the original on the same host.
    """

    file: str
    real: str
    before: str
    after: str
    backup: str


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """The change of a value in the file `real`: its bytes before and after; None: not set."""

    knob: Knob
    real: str
    old: bytes | None
    new: bytes | None


class LiveEdit(msgspec.Struct, frozen=True, kw_only=True):
    """The change of a live value; `got` is the value that the host reports after it ("": `new`)."""

    knob: Knob
    old: str
    new: str
    got: str = ""


class AppliedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A confirmed change: test passed, reload accepted, values read back, active except for the `inactive` knobs.

    `notes` are shown to the user: corrections by the server, a directive that is set twice, foreign edits found by an
    undo. `change` is the change's directory on the host ("": nothing had to be changed).
    """

    host: str
    settings: tuple[Setting, ...]
    files: tuple[FileChange, ...] = ()
    edits: tuple[Edit, ...] = ()
    live_edits: tuple[LiveEdit, ...] = ()
    notes: tuple[str, ...] = ()
    change: str = ""
    inactive: tuple[Knob, ...] = ()

    @property
    def outcome(self) -> Literal["applied", "written"]:
        """Return `written` if none of the values is active yet, else `applied`."""
        names = {knob.name for knob in self.inactive}
        return "written" if names and all(setting.knob in names for setting in self.settings) else "applied"

    @property
    def knobs(self) -> frozenset[str]:
        """The names of the knobs that it set."""
        return frozenset(setting.knob for setting in self.settings)


class ChangeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a change, stored on its host before it starts.

    `who` requested the change, `when` (epoch s, within the years of a date). `places` identify the changed values,
    independent of knob names. `undoes` is the directory of the undone change, if this one is an undo. `inactive` are
    the names of knobs whose value is written without becoming active.
    """

    who: str
    when: Annotated[float, msgspec.Meta(ge=0, le=2e11)]
    settings: tuple[Setting, ...]
    places: tuple[str, ...]
    undoes: str = ""
    inactive: tuple[str, ...] = ()


class HistoryState(StrEnum):
    """State of a change in a host's history. Rolled back: by the host itself. Undone: by a later change.
    Kept: what its rollback left is accepted.

    Of an unfinished change the new values may be active.
    """

    APPLIED = "applied"
    UNDONE = "undone"
    ROLLED_BACK = "rolled back"
    ROLLING_BACK = "being rolled back"
    UNDER_WAY = "under way"
    INTERRUPTED = "incomplete"
    PARTIAL = "not rolled back completely"
    KEPT = "left as it is"

    @property
    def is_unfinished(self) -> bool:
        return self in (HistoryState.INTERRUPTED, HistoryState.PARTIAL)


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A change in a host's history. `change` is its directory there, `undone_by` the name of the undo. `left`: the
    parts that an incomplete rollback left (file, value, reload)."""

    change: str
    facts: ChangeFacts
    state: HistoryState
    undone_by: str = ""
    left: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The change's short name."""
        return name_of(self.change)

    @property
    def begun(self) -> str:
        """The start of the change by the host's clock, as text that sorts by time."""
        return self.change.rpartition("/")[2].partition("-")[0]


def name_of(change: str) -> str:
    return change.rpartition("-")[2]
