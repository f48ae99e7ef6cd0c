"""The result of a study: its runs, the cells of its table, its verdicts."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.analysis.capacity.result import CapacityResult
from cockpit.analysis.stability import STABLE, Stability
from cockpit.analysis.verdicts.outcome import DIFFERENT, Verdict
from cockpit.analysis.windows import Window
from cockpit.metrics.results import RunResult
from cockpit.model.host.samples import HostFacts
from cockpit.model.study import Study, StudyObservation, StudyRound, StudyRun
from cockpit.study.plan import steps_of


class Contradiction(StrEnum):
    """How the A/A control contradicts a comparison."""

    CONTROL_DIFFERS = "control differs"
    SMALLER_THAN_CONTROL = "smaller than control"


class StudyRunResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run: its place in the study, whether it is `counted`, its result, and the observations around it.

    `session` is the number of the study's session (from 1). Verdicts compare `window`. `cpu` is a series of (seconds
    since the start of the run, % CPU busy) by host. `capacity` is the result of a capacity search.
    """

    place: StudyRun
    session: int
    counted: bool
    result: RunResult
    window: Window
    stability: Stability = STABLE
    observations: tuple[StudyObservation, ...] = ()
    cpu: dict[str, tuple[tuple[float, float], ...]] = {}
    capacity: CapacityResult | None = None


class StudyCell(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of a variant at a load level in a pass, over all rounds.

    `total` merges the counted runs, None without any. `complete`: the cell's steps in all rounds so far are done;
    `last_round` is the last round with such a step. `control`: the variant is the A/A control.
    """

    variant: str
    level: float | None
    pass_name: str
    runs: tuple[StudyRunResult, ...]
    total: RunResult | None
    complete: bool
    last_round: int = 0
    control: bool = False

    @property
    def counted(self) -> tuple[StudyRunResult, ...]:
        return tuple(run for run in self.runs if run.counted)

    @property
    def discarded(self) -> tuple[StudyRunResult, ...]:
        return tuple(run for run in self.runs if not run.counted)

    @property
    def unstable(self) -> tuple[StudyRunResult, ...]:
        return tuple(run for run in self.counted if not run.stability.is_stable)


class StudyVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on the variant `other` vs `first` at a load level in a pass.

    `control`: `other` is the A/A control, so that there is no true difference. `closed`: further rounds do not change
    the verdict. `rounds` is the number of rounds used, without `excluded` ones. About `needed` rounds would conclude
    the comparison, in about `needed_seconds` (None: it is concluded, or unknown).
    """

    first: str
    other: str
    level: float | None
    pass_name: str
    verdict: Verdict
    control: bool = False
    closed: bool = False
    rounds: int = 0
    excluded: int = 0
    needed: int | None = None
    needed_seconds: float | None = None
    contradiction: Contradiction | None = None


class RoundSpread(msgspec.Struct, frozen=True, kw_only=True):
    """The standard deviation, over rounds, of the difference (log scale) between two set-ups of the same variant, with
    its degrees of freedom."""

    deviation: float
    freedom: int


class StudyResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a study so far.

    `done` are the numbers of the completed steps; `wall` is the start (epoch s); `ended`: the study is over, perhaps
    before its last planned round. `hosts` are the hosts that the probe reached. At each load level and pass the verdict
    on the A/A control is first. `spread` is the spread between rounds, from the A/A control; None: unknown. `repeated`
    are the reasons for repeated steps.
    """

    name: str
    question: str
    study: Study
    rounds: tuple[StudyRound, ...]
    done: frozenset[int]
    ended: bool
    wall: float
    environment: dict[str, str]
    hosts: dict[str, HostFacts]
    cells: tuple[StudyCell, ...]
    verdicts: tuple[StudyVerdict, ...]
    spread: RoundSpread | None = None
    repeated: tuple[str, ...] = ()

    @property
    def unstable(self) -> tuple[StudyRunResult, ...]:
        return tuple(run for cell in self.cells for run in cell.unstable)

    @property
    def counted_rounds(self) -> int:
        return max(0, self.complete_rounds - self.study.discard_rounds)

    @property
    def complete_rounds(self) -> int:
        return sum(all(step.number in self.done for step in steps_of(self.study, turn)) for turn in self.rounds)

    @property
    def controls(self) -> tuple[StudyVerdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.control)

    @property
    def control_differs(self) -> bool:
        """Return whether an A/A comparison shows a difference, which must be an artifact."""
        return any(control.verdict.outcome in DIFFERENT for control in self.controls)
