"""Markers on the timeline, in time order whatever order their events came in."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter

from msgspec.structs import replace

from cockpit.model.state import Marker, State


def mark(state: State, marker: Marker) -> State:
    """The state with one marker more."""
    place = bisect_right(state.markers, marker.t, key=attrgetter("t"))
    return replace(state, markers=(*state.markers[:place], marker, *state.markers[place:]))
