"""Conclusions of a comparison: outcomes, effects and verdicts as values. `words` renders them."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.analysis.warnings import RunWarning
from cockpit.analysis.windows import DiscardReason
from cockpit.model.stacks import StackSource


class Outcome(StrEnum):
    """The conclusion of a comparison, or of one metric of it."""

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
    LOAD_DIFFERS = "load differs"
    RUN_FAILED = "run failed"
    PARTIAL = "partial metrics"
    PROFILED = "profiled on one side only"
    REQUESTS_FAILED = "requests failed"
    SHARED_CPU = "shared CPU"
    SETTING_ALTERED = "setting changed elsewhere"
    TRAFFIC_DRIFTED = "traffic differs"


class Period(StrEnum):
    """The side of a comparison that an objection is about."""

    BEFORE = "before"
    AFTER = "after"


class Design(StrEnum):
    """The experimental design, which determines the sources of noise that an interval covers."""

    SWITCH = "one switch under load"
    ROUNDS = "rounds"
    DUET = "both at the same time"
    RUNS = "runs"
    SINGLE_RUNS = "one run each"
    TOTALS = "totals of a summary"


class OtherLoad(msgspec.Struct, frozen=True, kw_only=True):
    """CPU used by programs other than the server, the load generator and the probe, as shares of all CPUs of a machine,
    on both sides of a comparison. `host` "" is the generator's machine. `slowed` are the largest factors by which it
    can have slowed the server on each side more than on the other; None: it does not matter. `delayed` are those by
    which the run-queue wait of the watched processes can have lengthened latencies, by metric; None: unbounded."""

    host: str
    before: float
    after: float
    slowed: tuple[float, float] | None = None
    delayed: dict[str, tuple[float | None, float | None]] = {}


class Objection(msgspec.Struct, frozen=True, kw_only=True):
    """Why a comparison, or one metric of it, is invalid. `share` is a share of the time, or of the requests; `seconds`
    are seconds without samples. `host` and `detail` are untrusted text. `other` is the other load that is the
    cause."""

    cause: Cause
    side: Period | None = None
    share: float = 0.0
    seconds: int = 0
    host: str = ""
    detail: str = ""
    other: OtherLoad | None = None


class SpeedAdjustment(msgspec.Struct, frozen=True, kw_only=True):
    """The adjustment of an effect for CPU speed. `change`, `low` and `high` are the unadjusted effect (shares).

    `ratio` is the speed after divided by the speed before. `spread` (rounds) is the standard deviation of that ratio.
    `slopes` (one switch) is the confidence set of the metric's slope on CPU speed: 0, independent, to 1, proportional;
    the interval holds for each slope in it.
    """

    change: float
    low: float | None
    high: float | None
    ratio: float
    spread: float | None = None
    slopes: tuple[float, float] | None = None


class Effect(msgspec.Struct, frozen=True, kw_only=True, rename={"name": "metric"}):
    """The effect on one metric. `change`, `low`, `high` are shares (0.15 is 15% more) when `relative`, else in the
    metric's unit; `level` is the confidence level of the interval and of the outcome.

    `margin` is the equivalence margin, `detectable` the minimum detectable effect (power 80%). None: unknown. If only
    one of `low` and `high` is None, the interval is open at that end (`Verdict.at_least`). `likely` is the likely
    outcome of an inconclusive effect. `speed` is the adjustment for CPU speed; None: not adjusted.
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


class FunctionDifference(msgspec.Struct, frozen=True, kw_only=True):
    """How much a function changed, in percentage points of the CPU/request before: by itself (`own`), and with the
    functions that it called (`total`). A change that is not significant is None."""

    function: str
    own: float | None
    total: float | None


class ProfileDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of a host's profile. `change`: of all CPU/request (share); None: too few slices for a test.

    `slices` and `samples` are those of each side; `source` and `hz`: as in StackSlice; `cost`: CPU of the profiler, as
    a share of a core, on the side with more. `functions` and `causes` (system calls, and functions outside of them:
    points) are the significant changes, the largest first.
    """

    host: str
    source: StackSource
    hz: int
    slices: tuple[int, int]
    samples: tuple[int, int]
    cost: float
    change: float | None = None
    functions: tuple[FunctionDifference, ...] = ()
    causes: dict[str, float] = {}


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a comparison. `effects` begin with the headline. `before` and `after` are the numbers of the
    segments compared.

    `values` counts independent values per side: runs, or rounds; of a switch, blocks of `block` seconds. `discarded`
    counts discarded seconds per side, by reason. `growing`: more seconds after the change will follow; `needs` is how
    many are needed for a conclusion (infinite: the baseline is too short; None: unknown or none). `at_least`: the
    effect may be larger than measured, because the generator was saturated on the faster side, or because of other
    load. `other_loads` has each machine on which other load was measured. `reached` is the instant (session s) at which
    a verdict on a change under load became final; None: it is not. `profiles` has the hosts that were profiled on both
    sides.
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
    discarded: tuple[dict[DiscardReason, int], dict[DiscardReason, int]] = ({}, {})
    warnings: tuple[RunWarning, ...] = ()
    growing: bool = False
    needs: float | None = None
    at_least: bool = False
    other_loads: tuple[OtherLoad, ...] = ()
    reached: float | None = None
    profiles: tuple[ProfileDifference, ...] = ()

    @property
    def headline(self) -> Effect | None:
        return self.effects[0] if self.effects else None

    @property
    def rows(self) -> tuple[Effect, ...]:
        """The effects for a table below the verdict: each objection is in it once, that of the verdict never."""
        said, shown = [self.objection], []
        for effect in self.effects:
            shown.append(msgspec.structs.replace(effect, objection=None) if effect.objection in said else effect)
            said.append(effect.objection)
        return tuple(shown)

    @property
    def adjusted(self) -> bool:
        """Whether effects are adjusted for CPU speed."""
        return any(effect.speed is not None for effect in self.effects)

    def effect(self, name: str) -> Effect | None:
        return next((effect for effect in self.effects if effect.name == name), None)
