"""First-run hints: one line that says what to press next, until it was pressed once or the hints are hidden.

What was done is kept in a small JSON file of the user's, a list of names.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import platformdirs

from cockpit.analysis.awaited import baseline_wait
from cockpit.analysis.outcome import Outcome
from cockpit.analysis.rounds import progress
from cockpit.analysis.rounds_words import progress_words
from cockpit.files import read_bounded, write_private
from cockpit.model.knobs import not_yet_active
from cockpit.model.state import Segment
from cockpit.model.text import neutral
from cockpit.session.controls import Mode
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.tuning.changes import inactive_knobs

# In the list of what was done: no more hints.
_HIDDEN = "hidden"
_MOST = 1 << 20  # bytes of the file


class Hint(NamedTuple):
    """`name` is the action that makes it go; it is shown while `fits`."""

    name: str
    words: str | Callable[[DrawContext], str]
    fits: Callable[[DrawContext], bool]

    def text(self, scene: DrawContext) -> str:
        """Return its words for this state."""
        return self.words if isinstance(self.words, str) else self.words(scene)


def of_change(scene: DrawContext) -> str:
    """What the newest change waits for, or where its verdict stands; empty where there is neither."""
    state = scene.state
    if (where := progress(state, scene.now)) is not None:
        return f"{progress_words(where)}; r stops them"
    if not state.own_changes:
        return ""
    change, row = state.own_changes[-1], state.segment
    name = f"change {neutral(change.letter)}"
    if not change.outcome:
        if change.confirm_by is not None:
            return f"{name} undoes itself unless it is kept: t, then ^Y"
        stage = next(reversed(tuple(change.stages)), "asked for")
        return f"{name} ({stage}): its row begins once it is in force"
    if change.outcome == "written":
        return f"{name} is {not_yet_active(inactive_knobs(change, state))}"
    if change.outcome != "applied":
        return ""
    if row is None or change.letter not in row.changes:
        return "" if state.running is not None else f"{name} is in force: space runs load to show its effect"
    return _of_verdict(scene, row, name)


def _of_verdict(scene: DrawContext, row: Segment, name: str) -> str:
    verdict = scene.verdict(row)
    if verdict is None:
        return ""
    if verdict.outcome not in (Outcome.INCONCLUSIVE, Outcome.INVALID):
        return f"{name} is {verdict.outcome}; c: all metrics with their intervals"
    if row.end is None and verdict.needs is not None and math.isfinite(verdict.needs):
        return f"{name}: verdict in about {math.ceil(verdict.needs)} s of load; c: all metrics"
    rounds = "" if verdict.outcome is Outcome.INVALID or scene.state.studying else "r: rounds prove it; "
    return f"{name} is {verdict.outcome}; {rounds}c: why, and all metrics"


def to_tune(scene: DrawContext) -> str:
    """Return how to change a setting, and how long a change waits for enough load to compare it with."""
    left = baseline_wait(scene.state)
    if left > 0:
        return f"t tunes; a change waits {math.ceil(left)} s for enough load"
    return "t opens the tuning panel: the settings in force, and what another value would do"


_HINTS = (
    Hint("load", "space starts the load, and stops it: press it now", lambda scene: scene.state.runs == 0),
    Hint("compare", of_change, lambda scene: bool(of_change(scene))),
    Hint(
        "tune",
        to_tune,
        lambda scene: scene.state.runs > 0 and bool(scene.state.knobs),
    ),
    Hint(
        "detail",
        "d goes through what stands below the host's figures; Enter takes the arrows into it",
        # Not while somebody is busy with a change.
        lambda scene: scene.state.runs > 0 and bool(scene.hosts) and not of_change(scene),
    ),
    Hint(
        "compare",
        "↑ ↓ choose a row of the runs table; c tells how sure the difference between two of them is",
        lambda scene: len(scene.state.segments) > 1,
    ),
    Hint("help", "? explains what is in focus and every figure; ^P finds what there is to do by name", lambda _: True),
)


def hints_file() -> Path:
    """In the user's state directory; it may not exist yet."""
    return platformdirs.user_state_path("cockpit") / "hints.json"


class Hints:
    """What is still to be hinted at. A file that cannot be read or written only means that hints come again."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = hints_file() if file is None else file
        self._done = self._read()

    def next(self, scene: DrawContext) -> str:
        """The hint that fits now; empty where there is none."""
        if _HIDDEN in self._done or scene.mode is not Mode.LIVE:
            return ""
        return next((hint.text(scene) for hint in _HINTS if hint.name not in self._done and hint.fits(scene)), "")

    def done(self, name: str) -> None:
        """The person has found that one out."""
        if any(hint.name == name for hint in _HINTS) and not self._done & {name, _HIDDEN}:
            self._keep(name)

    def hide(self) -> None:
        """No more of them, ever."""
        self._keep(_HIDDEN)

    def _keep(self, name: str) -> None:
        self._done.add(name)
        with contextlib.suppress(OSError):
            write_private(self._file, json.dumps(sorted(self._done)).encode())

    def _read(self) -> set[str]:
        try:
            found = json.loads(read_bounded(self._file, _MOST))
        except (OSError, ValueError, RecursionError):
            return set()
        return {name for name in found if isinstance(name, str)} if isinstance(found, list) else set()
