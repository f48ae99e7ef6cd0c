"""Events of a capacity search: open load at one rate after the other."""

from __future__ import annotations

from typing import Literal

from cockpit.model.event import Event
from cockpit.model.recorded import Name


class CapacityBegun(Event, frozen=True, tag="capacity_begun"):
    """A search for the highest arrival rate that holds `limits` starts in run `run`, for at most `longest` seconds."""

    number: int
    run: int
    limits: tuple[Name, ...]
    longest: float


class CapacityLevel(Event, frozen=True, tag="capacity_level"):
    """The measurement of level `level` (from 1) of search `number` starts, at `rate` arrivals/s, until `until`."""

    number: int
    level: int
    rate: float
    until: float


class CapacityLevelEnded(Event, frozen=True, tag="capacity_level_ended"):
    """The measurement of the last level of search `number` ended."""

    number: int


CapacityOutcome = Literal["found", "generator", "lowest", "budget", "stopped", "load ended", "failed"]


class CapacityEnded(Event, frozen=True, tag="capacity_ended"):
    """A search ended. `found`: the capacity has an interval; `generator`: the limits hold as far as the generator can
    send; `lowest`: they fail at the lowest rate; `budget`: they hold at each level within the time; `stopped` by the
    user, `load ended`, `failed` (see `detail`)."""

    number: int
    outcome: CapacityOutcome
    detail: str = ""


CapacityEvent = CapacityBegun | CapacityLevel | CapacityLevelEnded | CapacityEnded
