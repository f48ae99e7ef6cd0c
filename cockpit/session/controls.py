"""What a person can do in a session. A live source and a replay each offer their own `Controls`; the screen binds
whatever it is given and never asks which of the two it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from cockpit.model.errors import UsageError
from cockpit.model.units import parse_duration
from cockpit.session.asking import Question


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
    """What a change would do on a host: its diff, as `diff -U0` prints it, what it costs (see Cost), and remarks."""

    host: str
    diff: str
    cost: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Flipped:
    """A change was made and taken back `pairs` times within the run `run`; `why` it was not as often as asked for."""

    run: int
    pairs: int
    why: str = ""


# Pairs of windows of an A-B-A-B and seconds a window where nobody says; shorter windows tell nothing.
PAIRS, WINDOW, SHORTEST = 3, 30.0, 15.0


def flip_plan(text: str) -> tuple[int, float]:
    """Pairs and seconds a window of `3 x 30s`; empty: as usual. Raises UsageError."""
    pairs, sign, window = text.replace("×", "x").partition("x")
    if not text.strip():
        return PAIRS, WINDOW
    try:
        found = int(pairs), parse_duration(window.strip())
    except ValueError:
        raise UsageError(f"{text.strip()!r}: write pairs x time, as 3 x 30s") from None
    if not sign or found[0] < 2 or found[1] < SHORTEST:
        raise UsageError(f"{text.strip()!r}: it takes 2 pairs or more of windows of {SHORTEST:.0f} s or more")
    return found


class Tuning(Protocol):
    """Reading and changing knobs. The outcome arrives as events; the error, if any, is raised as well."""

    @property
    def flipping(self) -> str:
        """Where `flip` stands, in words; empty while it does not run."""

    async def refresh(self) -> None:
        """Reads every knob's value anew."""

    async def preview(self, values: Mapping[str, str]) -> tuple[Preview, ...]:
        """What `apply` would do, one a host, with nothing touched. Raises ChangeRefused, HostError."""

    async def apply(self, values: Mapping[str, str], confirm_within: float | None = None) -> None:
        """Applies values (knob name -> value), one change per host. Raises ChangeUndone, ChangeRefused, HostError.

        With `confirm_within` (s) it is undone unless `confirm` is called within that time of its coming into force.
        """

    def confirm(self) -> None:
        """Keeps the change that waits for it. Raises ChangeRefused where none does."""

    async def undo(self, letter: str = "") -> None:
        """Takes back a change of this session by its letter; without one the last in force, or the one that waits to
        be confirmed. Raises ChangeRefused, also where a later change has to go first.
        """

    async def flip(self, values: Mapping[str, str], pairs: int, seconds: float) -> Flipped:
        """Under a run of its own makes the change and takes it back `pairs` times, each window `seconds` long.

        Whatever happens, the values of before come back. Raises ChangeUndone, ChangeRefused, HostError, TargetError.
        """

    def stop_flipping(self) -> None:
        """Ends that run; what is changed is taken back."""

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
