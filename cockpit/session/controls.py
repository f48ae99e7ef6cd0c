"""Controls of a session: actions and status. Live sources and replays implement them; the screen binds keys to
the available actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from cockpit.hosts.ssh.prompts import Question
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State

if TYPE_CHECKING:
    # A replay needs neither.
    from cockpit.session.live_load import LiveLoad
    from cockpit.session.live_tuning import LiveTuning


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
    """Phase of the load. STARTING: the target is checked before a run; ROUNDS: rounds compare two settings;
    ASKING: they wait for the user's permission to switch; CAPACITY: a search sets the rate."""

    IDLE = "idle"
    STARTING = "starting"
    RUNNING = "running"
    ROUNDS = "rounds"
    ASKING = "asking"
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
    def tuning(self) -> LiveTuning | None:
        """None: values are read-only."""
        return None

    @property
    def load(self) -> LiveLoad | None:
        """None: the load cannot be changed."""
        return None

    @property
    def question(self) -> Question | None:
        """The question of a host that waits for an answer; None: no question."""
        return None

    def decline_questions(self) -> None:
        """Decline all questions of hosts, and every later one."""
        return
