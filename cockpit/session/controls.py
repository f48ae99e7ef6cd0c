"""Controls of a session: actions, status and tuning. Live sources and replays implement them; the screen binds keys to
the available actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from cockpit.analysis.rounds import FEWEST, MOST, SHORTEST, WINDOW, RoundsPlan
from cockpit.analysis.verdicts.outcome import Outcome, Verdict
from cockpit.hosts.ssh.prompts import Question
from cockpit.model.errors import UsageError
from cockpit.model.events import RoundsOutcome, Side
from cockpit.model.knobs import Setting
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.model.units import parse_duration


@dataclass(frozen=True)
class Action:
    """An action of the user: `name` for key bindings, `label` for the footer, `run` to call with the prompt's answer.

    `prompt`: question to ask first, answered with `prefill` unless it is edited; "": none, and `run` gets "".
    `footer`: it is shown in the footer; help lists all. `run` raises CockpitError if the action is not possible.
    """

    name: str
    label: str
    run: Callable[[str], Awaitable[None]]
    prompt: str = ""
    footer: bool = True
    prefill: str = ""


def immediate(step: Callable[[str], object]) -> Callable[[str], Awaitable[None]]:
    """Return the `run` of an action that calls `step` and does not wait."""

    async def run(answer: str) -> None:
        step(answer)

    return run


class Mode(Enum):
    """Kind of a session; LOOKING_BACK: the past of a live session is shown."""

    LIVE = "live"
    STUDY = "study"
    SEARCH = "search"
    REPLAY = "replay"
    LOOKING_BACK = "looking back"


class LoadPhase(Enum):
    """Phase of the load. STARTING: the target is checked before a run; ROUNDS: rounds compare two settings; CAPACITY: a
    search sets the rate."""

    IDLE = "idle"
    STARTING = "starting"
    RUNNING = "running"
    ROUNDS = "rounds"
    CAPACITY = "capacity"


class PlaybackPhase(Enum):
    """Phase of a replay. FOLLOWING: at the end of a recording that is still being written."""

    PLAYING = "playing"
    FOLLOWING = "following"
    PAUSED = "paused"
    END = "end"


@dataclass(frozen=True)
class LoadStatus:
    """Status of a live session; `failure`: why the last start of the load failed, "" if it did not."""

    plan: LoadPlan
    phase: LoadPhase
    failure: str = ""


@dataclass(frozen=True)
class PlaybackStatus:
    """Status of a replay; `damaged`: damaged parts of the recording are left out."""

    phase: PlaybackPhase
    speed: float = 1.0
    damaged: bool = False


SessionStatus = LoadStatus | PlaybackStatus


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


class FinalSide(Enum):
    """The side to activate after rounds."""

    CHOSEN = "the new values, unless they are worse"
    RESTORED = "the values of before the rounds"

    def side(self, active: Side, outcome: RoundsOutcome, verdict: Verdict | None) -> Side:
        """Return the side to activate after rounds; `active`: the active side at their start, which stays active if the
        rounds were interrupted or are invalid."""
        if self is FinalSide.RESTORED or outcome not in ("verdict", "budget") or verdict is None:
            return active
        if verdict.outcome is Outcome.INVALID:
            return active
        return "before" if verdict.outcome is Outcome.WORSE else "after"


@dataclass(frozen=True)
class RoundsResult:
    """The result of rounds `number`. `active`: the side that is active now; `letter`: the change that activated it, "":
    none was needed; `why`: why the chosen side could not be activated."""

    number: int
    outcome: RoundsOutcome
    verdict: Verdict | None
    active: Side
    letter: str = ""
    why: str = ""


def parse_rounds(text: str, seed: int = 1) -> RoundsPlan:
    """Parse `12 x 15s`: rounds and counted seconds per window; empty: defaults. Raises UsageError."""
    if not text.strip():
        return RoundsPlan(seed=seed)
    rounds, sign, window = text.replace("×", "x").partition("x")
    try:
        parsed = int(rounds), parse_duration(window.strip()) if sign else WINDOW
    except ValueError:
        raise UsageError(f"{text.strip()!r}: write rounds x time, e.g. 12 x 15s") from None
    check_rounds(*parsed)
    return RoundsPlan(*parsed, seed=seed)


def check_rounds(rounds: int, seconds: float) -> None:
    """Raises UsageError if such rounds cannot reach a verdict."""
    if not FEWEST <= rounds <= MOST:
        raise UsageError(f"{rounds} rounds: must be {FEWEST} to {MOST}")
    if seconds < SHORTEST:
        raise UsageError(f"{seconds:g} s: a window must last {SHORTEST:.0f} s or more")


class Tuning(Protocol):
    """Reading and changing knobs. Outcomes are emitted as events; errors are also raised."""

    @property
    def running_rounds(self) -> bool:
        """Whether rounds run."""

    async def refresh(self) -> None:
        """Read the value of every knob again."""

    async def preview(self, values: Mapping[str, str]) -> tuple[Preview, ...]:
        """Return the effects of `apply`, one per host, without a change. Raises ChangeRefused, HostError."""

    async def apply(self, values: Mapping[str, str], confirm_within: float | None = None) -> object:
        """Apply values (knob name -> value), one change per host. Raises ChangeRolledBack, ChangeRefused, HostError.

        With `confirm_within` (s), a change is rolled back unless `confirm` is called within that time after it becomes
        active.
        """

    def confirm(self) -> None:
        """Confirm the change that waits for confirmation. Raises ChangeRefused if there is none."""

    async def undo(self, letter: str = "") -> None:
        """Undo a change of this session by its letter ("": the newest active change), or the change that waits for
        confirmation. Raises ChangeRefused, also if a later change must be undone first.
        """

    async def preview_undo(self, letter: str = "") -> Preview | None:
        """Return the effects of `undo`, without a change; None: a change waits for confirmation. Raises ChangeRefused,
        HostError."""

    def await_baseline(self, seconds: float) -> None:
        """Extend the run by at least `seconds`, for the baseline of a change that is about to be applied."""

    def release(self) -> None:
        """End the extension: the run ends as planned."""

    async def compare_in_rounds(
        self, values: Mapping[str, str], plan: RoundsPlan, afterwards: FinalSide = FinalSide.CHOSEN
    ) -> RoundsResult:
        """Compare the active values with `values` in rounds; without values, the two sides of the last active change.

        The current run continues, or a new run starts. If the rounds are interrupted, the values from their start are
        activated again. Raises ChangeRolledBack, ChangeRefused, HostError, TargetError.
        """

    def stop_rounds(self) -> None:
        """Stop the rounds; the values that were active at their start are activated again."""

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
        """First and last time (s) that can be shown, for a position bar; None: the session is live."""
        return None

    @property
    def position(self) -> float | None:
        """The shown time (s), which may be ahead of the state's time; None: both are equal."""
        return None

    def end_state(self) -> State | None:
        """Return the state at the end of the recording; None: the current state."""
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
        """The question of a host that waits for an answer; None: no question."""
        return None
