"""Rounds instants of events to microseconds, and rejects NaN and infinity."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec.structs import replace

from cockpit.model import events as ev

# Digits of a time (s).
_DIGITS = 6


def rounded(event: ev.AnyEvent) -> ev.AnyEvent:
    """Round the instants of an event. Raises ValueError if a number of it is NaN or infinite."""
    if not all(map(math.isfinite, _floats(event))):
        raise ValueError(f"a number of {ev.kind(event)} is not finite")
    t = round(event.t, _DIGITS)
    if isinstance(event, ev.Tick):
        return replace(event, t=t, start=round(event.start, _DIGITS))
    if isinstance(event, ev.HostSample):
        return replace(event, t=t, round_trip=round(event.round_trip, _DIGITS))
    return replace(event, t=t)


def _floats(event: ev.AnyEvent) -> Iterable[float]:
    """The time of an event, and its floats from a host."""
    if isinstance(event, ev.HostSample):
        reading = event.reading
        return (event.t, event.round_trip, reading.uptime, reading.wall, reading.probe_cpu, *reading.load)
    if isinstance(event, ev.StatusRead):
        return (event.t, *event.values.values())
    return (event.t,)
