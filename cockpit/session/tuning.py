"""Values of tuning: previews of changes, and the options and results of rounds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cockpit.analysis.rounds import FEWEST, MOST, SHORTEST, WINDOW, RoundsPlan
from cockpit.analysis.verdicts.outcome import DIFFERENT, Outcome, Verdict
from cockpit.model.errors import UsageError
from cockpit.model.events import RoundSide, RoundsOutcome
from cockpit.model.knobs import Setting
from cockpit.model.units import parse_duration
from cockpit.tuning.plan import Plan


@dataclass(frozen=True)
class Preview:
    """The effects of a change on a host: `diff` as of `diff -U0`, `cost` (see Cost), `notes`, changed `settings`, and
    the knobs whose values would be written without becoming active (`inactive`). `letter`: the undone change, "": no
    undo."""

    host: str
    diff: str
    cost: str
    notes: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()
    inactive: tuple[str, ...] = ()
    letter: str = ""

    @classmethod
    def of(cls, plan: Plan, letter: str = "") -> Preview:
        inactive = tuple(knob.name for knob in plan.inactive)
        return cls(plan.host, plan.diff, plan.cost, plan.notes, plan.shown_settings, inactive, letter)


class FinalSide(Enum):
    """The side to activate after rounds."""

    CHOSEN = "the new values, unless they are worse"
    PROVEN = "the new values if they are better; undecided: the values of before the rounds"
    RESTORED = "the values of before the rounds"

    def side(self, active: RoundSide, outcome: RoundsOutcome, verdict: Verdict | None) -> RoundSide:
        """Return the side to activate after rounds; `active`: the active side at their start, which stays active if the
        rounds were interrupted or are invalid."""
        if self is FinalSide.RESTORED or outcome not in ("verdict", "budget") or verdict is None:
            return active
        if verdict.outcome is Outcome.INVALID:
            return active
        if self is FinalSide.PROVEN and verdict.outcome not in DIFFERENT:
            return active
        return "before" if verdict.outcome is Outcome.WORSE else "after"


@dataclass(frozen=True)
class RoundsResult:
    """The result of rounds `number`. `active`: the side that is active now; `letter`: the change that activated it, "":
    none was needed; `why`: why the chosen side could not be activated."""

    number: int
    outcome: RoundsOutcome
    verdict: Verdict | None
    active: RoundSide
    letter: str = ""
    why: str = ""


def parse_rounds(text: str, seed: int = 1) -> RoundsPlan:
    """Parse `12 x 15s`: rounds and counted seconds per window, after `alone` on one server; empty: defaults. Raises
    UsageError."""
    rest = text.strip().removeprefix("alone").strip()
    alone = rest != text.strip()
    if not rest:
        return RoundsPlan(seed=seed, alone=alone)
    rounds, sign, window = rest.replace("×", "x").partition("x")
    try:
        parsed = int(rounds), parse_duration(window.strip()) if sign else WINDOW
    except ValueError:
        raise UsageError(f"{text.strip()!r}: write rounds x time, e.g. 12 x 15s") from None
    check_rounds(*parsed)
    return RoundsPlan(*parsed, seed=seed, alone=alone)


def check_rounds(rounds: int, seconds: float) -> None:
    """Raises UsageError if such rounds cannot reach a verdict."""
    if not FEWEST <= rounds <= MOST:
        raise UsageError(f"{rounds} rounds: must be {FEWEST} to {MOST}")
    if seconds < SHORTEST:
        raise UsageError(f"{seconds:g} s: a window must last {SHORTEST:.0f} s or more")
