"""Rounding of event times to microseconds; events with NaN or infinity are rejected."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.tick import Tick

# Decimal places of a time (s).
_DIGITS = 6


def rounded(event: ev.AnyEvent) -> ev.AnyEvent:
    """Return the event with rounded times. Raises ValueError if one of its numbers is NaN or infinite."""
    if not all(map(math.isfinite, _floats(event))):
        raise ValueError(f"{ev.kind(event)}: a number is NaN or infinite")
    t = round(event.t, _DIGITS)
    if isinstance(event, Tick):
        return replace(event, t=t, start=round(event.start, _DIGITS))
    if isinstance(event, ev.HostSample):
        return replace(event, t=t, round_trip=round(event.round_trip, _DIGITS))
    return replace(event, t=t)


def _floats(event: ev.AnyEvent) -> Iterable[float]:
    """Return the time of an event, and its floats that come from a host."""
    if isinstance(event, ev.HostSample):
        reading = event.reading
        return (event.t, event.round_trip, reading.uptime, reading.wall, reading.probe_cpu, *reading.load)
    if isinstance(event, ev.StatusRead):
        return (event.t, *event.values.values())
    return (event.t,)
