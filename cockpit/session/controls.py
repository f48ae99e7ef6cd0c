"""What a person can do in a session. A live source and a replay each offer their own `Controls`; the screen binds
whatever it is given and never asks which of the two it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from cockpit.analysis.outcome import Outcome, Verdict
from cockpit.analysis.rounds import FEWEST, MOST, SHORTEST, WINDOW, RoundsPlan
from cockpit.hosts.prompts import Question
from cockpit.model.errors import UsageError
from cockpit.model.events import RoundsOutcome, Side
from cockpit.model.knobs import Setting
from cockpit.model.units import parse_duration


@dataclass(frozen=True)
class Action:
    """One thing to do: `keys` as Textual names them, `label` for the footer, `run` with the prompt's answer.

    `prompt` is the question to ask first; without one, `run` gets an empty text. `footer` is whether it is worth a
    place in the footer; help lists all. Raises CockpitError, one line, when it cannot be done.
    """

    name: str
    keys: tuple[str, ...]
    label: str
    run: Callable[[str], Awaitable[None]]
    prompt: str = ""
    footer: bool = True


@dataclass(frozen=True)
class Preview:
    """Effects of a change on a host: its diff, as `diff -U0` prints it, its cost (see Cost), notes, the settings that
    differ, and the knobs whose value would be written without becoming active."""

    host: str
    diff: str
    cost: str
    notes: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()
    inactive: tuple[str, ...] = ()


class Afterwards(Enum):
    """Which side is active after rounds."""

    CHOSEN = "the new values, unless they are worse"
    RESTORED = "the values of before the rounds"

    def side(self, active: Side, outcome: RoundsOutcome, verdict: Verdict | None) -> Side:
        """Return the side to make active after rounds at whose start `active` was. Rounds that were interrupted, or are
        invalid, change nothing."""
        if self is Afterwards.RESTORED or outcome not in ("verdict", "budget") or verdict is None:
            return active
        if verdict.outcome is Outcome.INVALID:
            return active
        return "before" if verdict.outcome is Outcome.WORSE else "after"


@dataclass(frozen=True)
class Proven:
    """Rounds `number` ended. `active` is the side that is active now, made so by the change `letter` if not "". `why`
    the chosen side could not be made active."""

    number: int
    outcome: RoundsOutcome
    verdict: Verdict | None
    active: Side
    letter: str = ""
    why: str = ""


def rounds_plan(text: str, seed: int = 1) -> RoundsPlan:
    """Read `12 x 15s`: rounds and counted seconds per window; empty: the usual ones. Raises UsageError."""
    if not text.strip():
        return RoundsPlan(seed=seed)
    rounds, sign, window = text.replace("×", "x").partition("x")
    try:
        found = int(rounds), parse_duration(window.strip()) if sign else WINDOW
    except ValueError:
        raise UsageError(f"{text.strip()!r}: write rounds x time, e.g. 12 x 15s") from None
    check_rounds(*found)
    return RoundsPlan(*found, seed=seed)


def check_rounds(rounds: int, seconds: float) -> None:
    """Raises UsageError for rounds that cannot conclude."""
    if not FEWEST <= rounds <= MOST:
        raise UsageError(f"{rounds} rounds: must be {FEWEST} to {MOST}")
    if seconds < SHORTEST:
        raise UsageError(f"{seconds:g} s: a window must have {SHORTEST:.0f} s or more")


class Tuning(Protocol):
    """Reading and changing knobs. The outcome arrives as events; the error, if any, is raised as well."""

    @property
    def proving(self) -> bool:
        """Whether rounds run."""

    async def refresh(self) -> None:
        """Reads every knob's value anew."""

    async def preview(self, values: Mapping[str, str]) -> tuple[Preview, ...]:
        """What `apply` would do, one a host, with nothing touched. Raises ChangeRefused, HostError."""

    async def apply(self, values: Mapping[str, str], confirm_within: float | None = None) -> object:
        """Apply values (knob name -> value), one change per host. Raises ChangeUndone, ChangeRefused, HostError.

        With `confirm_within` (s) it is undone unless `confirm` is called within that time of its coming into force.
        """

    def confirm(self) -> None:
        """Keeps the change that waits for it. Raises ChangeRefused where none does."""

    async def undo(self, letter: str = "") -> None:
        """Takes back a change of this session by its letter; without one the last in force, or the one that waits to
        be confirmed. Raises ChangeRefused, also where a later change has to go first.
        """

    def await_baseline(self, seconds: float) -> None:
        """Let the run in flight go on for at least so many seconds, for a change that is going to be applied."""

    def release(self) -> None:
        """Nothing is awaited any more: the end of the plan takes effect."""

    async def prove(
        self, values: Mapping[str, str], plan: RoundsPlan, afterwards: Afterwards = Afterwards.CHOSEN
    ) -> Proven:
        """Measure the active values and these in rounds; without any, the last active change.

        The run in flight goes on, or one begins. Whatever interrupts it, the values that were active at the start are
        active again. Raises ChangeUndone, ChangeRefused, HostError, TargetError.
        """

    def stop_rounds(self) -> None:
        """End the rounds; the values that were active at their start are active again."""

    async def act(self, name: str) -> None:
        """Runs an action of the profile. Raises ChangeRefused, HostError."""


class Controls(Protocol):
    """What the session offers. `mode` is LIVE or REPLAY, in words."""

    @property
    def mode(self) -> str: ...

    @property
    def condition(self) -> str:
        """A word or two beside the mode, as in `PAUSED` or `×4`; may be empty."""

    @property
    def extent(self) -> tuple[float, float] | None:
        """First and last instant (s) that can be looked at, for a position bar; None where it still grows."""

    @property
    def position(self) -> float | None:
        """The instant looked at (s), which the state's own time may lag; None where it is that."""

    @property
    def lost(self) -> tuple[str, ...]:
        """What of a recording was found damaged so far and is left out, each thing in words of one line."""

    @property
    def actions(self) -> tuple[Action, ...]: ...

    @property
    def tuning(self) -> Tuning | None:
        """None where values can only be looked at."""

    @property
    def question(self) -> Question | None:
        """What a host asks of the person and waits for; None while there is nothing to answer."""
