"""Markers of the timeline, as facts; analysis.words.timeline has their signs and texts. `t`: session seconds."""

from __future__ import annotations

from typing import Literal

import msgspec

from cockpit.model.events import ChangeOutcome, RoundSide
from cockpit.model.knobs import Setting
from cockpit.model.load.plan import LoadPlan


class MarkerBase(msgspec.Struct, frozen=True, kw_only=True):
    t: float

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)


class ChangeName(msgspec.Struct, frozen=True, kw_only=True):
    """A change in labels: its letter, its settings, and the letter of the change that it undoes."""

    letter: str
    settings: tuple[Setting, ...]
    undoes: str = ""


class ChangeMarker(MarkerBase, frozen=True, kw_only=True, tag="change"):
    """A change became active (`t`), or ended without that; `outcome` and `ended`: see Change."""

    change: ChangeName
    outcome: ChangeOutcome | None
    ended: float | None
    detail: str = ""


class ActionMarker(MarkerBase, frozen=True, kw_only=True, tag="action"):
    """A host started an action."""

    action: str
    host: str
    number_of_runs: int


class LoadMarker(MarkerBase, frozen=True, kw_only=True, tag="load"):
    """The user changed the load."""

    before: LoadPlan
    after: LoadPlan


class RoundMarker(MarkerBase, frozen=True, kw_only=True, tag="round"):
    """A window of rounds started. `host`: see RoundsBegun.new_on."""

    round: int
    budget: int
    side: RoundSide
    host: str = ""


class NoteMarker(MarkerBase, frozen=True, kw_only=True, tag="note"):
    """A note of the user."""

    text: str


class GapMarker(MarkerBase, frozen=True, kw_only=True, tag="gap"):
    """A host was lost."""

    host: str
    detail: str


class RestartMarker(MarkerBase, frozen=True, kw_only=True, tag="restart"):
    """A server of a host was restarted, shown by the pid of its parent process, or reloaded, shown by the generation of
    its status page."""

    host: str
    server: str
    shown_by: Literal["pid", "generation"]
    old: int
    new: int


class SettingMarker(MarkerBase, frozen=True, kw_only=True, tag="setting"):
    """Another program or person has changed a setting of a host, between `since` and `t`."""

    host: str
    setting: Setting
    since: float


class WorkerMarker(MarkerBase, frozen=True, kw_only=True, tag="worker"):
    """A load generator was lost."""

    machine: str
    detail: str


Marker = (
    ChangeMarker
    | ActionMarker
    | LoadMarker
    | RoundMarker
    | NoteMarker
    | GapMarker
    | RestartMarker
    | SettingMarker
    | WorkerMarker
)
