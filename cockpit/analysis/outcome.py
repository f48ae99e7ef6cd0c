"""Conclusions of a comparison: outcomes, effects and verdicts as values. `words` renders them."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.analysis.warnings import RunWarning
from cockpit.analysis.windows import Flaw


class Outcome(StrEnum):
    """The five conclusions there are."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


DIFFERENT = (Outcome.BETTER, Outcome.WORSE)


class Cause(StrEnum):
    """Why a comparison is invalid."""

    OTHER_LOAD = "other load"
    GENERATOR_SATURATED = "generator saturated"
    HOST_LOST = "host lost"
    LOAD_ALTERED = "load altered"
    LOAD_DIFFERS = "load differs"
    RUN_FAILED = "run failed"
    PARTIAL = "partial metrics"
    REQUESTS_FAILED = "requests failed"


class Period(StrEnum):
    """The side of a comparison that an objection is about."""

    BEFORE = "before"
    AFTER = "after"


class Design(StrEnum):
    """The experimental design, which determines what the interval allows for."""

    SWITCH = "one switch under load"
    ROUNDS = "rounds"
    RUNS = "runs"
    SINGLE_RUNS = "one run each"
    TOTALS = "totals of a summary"


class OtherLoad(msgspec.Struct, frozen=True, kw_only=True):
    """CPU that programs other than the server, the load generator and the probe took on a machine, as shares of all its
    CPUs, on both sides of a comparison. `host` "" is the generator's own machine."""

    host: str
    before: float
    after: float


class Objection(msgspec.Struct, frozen=True, kw_only=True):
    """Why a comparison, or one metric of it, is invalid. `share` is of the time, `seconds` are lost ones; `host`
    and `detail` are names as they came from outside. `other`: the other load that is the cause."""

    cause: Cause
    side: Period | None = None
    share: float = 0.0
    seconds: int = 0
    host: str = ""
    detail: str = ""
    other: OtherLoad | None = None


class SpeedAdjustment(msgspec.Struct, frozen=True, kw_only=True):
    """The adjustment of an effect for the CPU's speed. `change`, `low` and `high` are the effect without it (shares).

    `ratio` is the speed after as a share of that before. Of rounds, `spread` is the standard deviation of that ratio
    (share). Of one switch, `slopes` are the ends of the range of slopes that the blocks allow: 0, the metric does not
    follow the speed, 1, in proportion; the interval holds for all of them.
    """

    change: float
    low: float | None
    high: float | None
    ratio: float
    spread: float | None = None
    slopes: tuple[float, float] | None = None


class Effect(msgspec.Struct, frozen=True, kw_only=True, rename={"name": "metric"}):
    """One metric before and after. `change`, `low`, `high` are shares (0.15 is 15% more) when `relative`, else in the
    metric's unit; `level` is the confidence of the interval, the same that the outcome rests on.

    `margin` is the largest change that counts as equivalent, `detectable` the smallest that this comparison would find
    with a probability of 80%. None: unknown; one end alone is None when the interval has no such end, because the
    generator was saturated (`Verdict.at_least`). `likely` is the outcome that an inconclusive effect leans to.
    `speed`: the effect is adjusted for the CPU's speed; None: it is not.
    """

    name: str
    outcome: Outcome
    headline: bool = False
    objection: Objection | None = None
    before: float | None = None
    after: float | None = None
    relative: bool = True
    change: float | None = None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    margin: float = 0.0
    detectable: float | None = None
    speed: SpeedAdjustment | None = None
    likely: Outcome | None = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """`effects` begin with the headline. `before` and `after` are the numbers of the segments compared.

    `values` counts independent values per side: runs, or rounds; of a switch, blocks of `block` seconds. `left_out` are
    the seconds that were not counted, per side. `growing`: the time after the change is not over; `needs` is
    how many seconds more it takes (infinite: the time before is too short; None: unknown or none). `at_least`: the
    generator was saturated on the faster side, which may be faster still. `other_loads` are of each machine on which
    it could be measured.
    """

    outcome: Outcome
    design: Design
    label: str = ""
    objection: Objection | None = None
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    effects: tuple[Effect, ...] = ()
    values: tuple[int, int] = (0, 0)
    block: int = 0
    left_out: tuple[dict[Flaw, int], dict[Flaw, int]] = ({}, {})
    warnings: tuple[RunWarning, ...] = ()
    growing: bool = False
    needs: float | None = None
    at_least: bool = False
    other_loads: tuple[OtherLoad, ...] = ()

    @property
    def headline(self) -> Effect | None:
        return self.effects[0] if self.effects else None

    @property
    def adjusted(self) -> bool:
        """Whether effects are adjusted for the CPU's speed."""
        return any(one.speed is not None for one in self.effects)

    def effect(self, name: str) -> Effect | None:
        return next((one for one in self.effects if one.name == name), None)
