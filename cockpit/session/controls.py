"""Controls of a session: actions, status and tuning. A live source and a replay each have their own; the screen binds
keys to the available actions."""

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
from cockpit.model.load import LoadPlan
from cockpit.model.state import State
from cockpit.model.units import parse_duration


@dataclass(frozen=True)
class Action:
    """One thing to do: `name` for a key to be bound to, `label` for the footer, `run` with the prompt's answer.

    `prompt` is the question to ask first; without one, `run` gets an empty text. `footer` is whether it is worth a
    place in the footer; help lists all. Raises CockpitError if it cannot be done.
    """

    name: str
    label: str
    run: Callable[[str], Awaitable[None]]
    prompt: str = ""
    footer: bool = True


def immediate(step: Callable[[str], object]) -> Callable[[str], Awaitable[None]]:
    """The `run` of an action without waiting."""

    async def run(answer: str) -> None:
        step(answer)

    return run


class Mode(Enum):
    """Kind of a session; LOOKING_BACK: the past of a live one is shown."""

    LIVE = "live"
    STUDY = "study"
    SEARCH = "search"
    REPLAY = "replay"
    LOOKING_BACK = "looking back"


class LoadPhase(Enum):
    """STARTING: the target is asked before a run; ROUNDS: two settings are compared under the load."""

    IDLE = "idle"
    STARTING = "starting"
    RUNNING = "running"
    ROUNDS = "rounds"


class PlaybackPhase(Enum):
    """FOLLOWING: at the end of a recording that is still written."""

    PLAYING = "playing"
    FOLLOWING = "following"
    PAUSED = "paused"
    END = "end"


@dataclass(frozen=True)
class LoadStatus:
    """Status of a live session."""

    plan: LoadPlan
    phase: LoadPhase


@dataclass(frozen=True)
class PlaybackStatus:
    """Status of a replay; `damaged`: parts of the recording are left out."""

    phase: PlaybackPhase
    speed: float = 1.0
    damaged: bool = False


SessionStatus = LoadStatus | PlaybackStatus


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


@dataclass(frozen=True)
class UndoPreview:
    """Effects of the undo of the change `letter`."""

    letter: str
    effect: Preview


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
    def running_rounds(self) -> bool:
        """Whether rounds run."""

    async def refresh(self) -> None:
        """Read the value of every knob again."""

    async def preview(self, values: Mapping[str, str]) -> tuple[Preview, ...]:
        """Return the effects of `apply`, one per host, without a change. Raises ChangeRefused, HostError."""

    async def apply(self, values: Mapping[str, str], confirm_within: float | None = None) -> object:
        """Apply values (knob name -> value), one change per host. Raises ChangeUndone, ChangeRefused, HostError.

        With `confirm_within` (s) a change is rolled back unless `confirm` is called within that time after it became
        active.
        """

    def confirm(self) -> None:
        """Keep the change that waits to be confirmed. Raises ChangeRefused if none does."""

    async def undo(self, letter: str = "") -> None:
        """Undo a change of this session by its letter; without one the newest active one, or the one that waits to be
        confirmed. Raises ChangeRefused, also if a later change has to be undone first.
        """

    async def preview_undo(self, letter: str = "") -> UndoPreview | None:
        """Return the effects of `undo`, without a change; None: the change waits to be confirmed. Raises ChangeRefused,
        HostError."""

    def await_baseline(self, seconds: float) -> None:
        """Extend the run by at least these seconds, for a change that is about to be applied."""

    def release(self) -> None:
        """End the extension: the run ends as planned."""

    async def prove(
        self, values: Mapping[str, str], plan: RoundsPlan, afterwards: Afterwards = Afterwards.CHOSEN
    ) -> Proven:
        """Measure the active values and these in rounds; without any, the last active change.

        The current run continues, or a new one starts. Whatever interrupts it, the values of the start become active.
        Raises ChangeUndone, ChangeRefused, HostError, TargetError.
        """

    def stop_rounds(self) -> None:
        """End the rounds; the values that were active at their start are active again."""

    async def act(self, name: str) -> None:
        """Run an action of the profile. Raises ChangeRefused, HostError."""


class LoadControl(Protocol):
    """The load of a live session: the plan of the next run, and of the active one (None: no run)."""

    @property
    def plan(self) -> LoadPlan: ...

    @property
    def active(self) -> LoadPlan | None: ...

    def set_plan(self, plan: LoadPlan) -> None:
        """Use the plan for the next run; the active run follows its load at once if it can. Raises UsageError."""


class Controls(Protocol):
    """Controls of a session. An implementation overrides the defaults that differ."""

    @property
    def mode(self) -> Mode: ...

    @property
    def status(self) -> SessionStatus: ...

    @property
    def actions(self) -> tuple[Action, ...]: ...

    @property
    def extent(self) -> tuple[float, float] | None:
        """First and last time (s) that can be shown, for a position bar; None if it still grows."""
        return None

    @property
    def position(self) -> float | None:
        """The time shown (s), which the state's own time may lag; None: they are equal."""
        return None

    def end_state(self) -> State | None:
        """Return the state at the end of everything that can be shown; None: the present one."""
        return None

    @property
    def lost(self) -> tuple[str, ...]:
        """Damaged parts of a recording that are left out, one line each."""
        return ()

    @property
    def tuning(self) -> Tuning | None:
        """None: values are read-only."""
        return None

    @property
    def load(self) -> LoadControl | None:
        """None: the load cannot be changed."""
        return None

    @property
    def question(self) -> Question | None:
        """The question of a host that waits for an answer; None: there is none."""
        return None
