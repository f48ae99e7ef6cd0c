"""Markers on the timeline, in time order whatever order their events came in."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.model.state import Marker, State


def mark(state: State, marker: Marker) -> State:
    """The state with one marker more."""
    return replace(state, markers=tuple(sorted((*state.markers, marker), key=lambda known: known.t)))
