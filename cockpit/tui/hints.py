"""First-run hints: one line with the next key to press, until it was pressed once or hints are hidden.

A small JSON file keeps the names of the hints that were followed.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import platformdirs

from cockpit.analysis.rounds import progress
from cockpit.analysis.verdicts.outcome import Outcome
from cockpit.analysis.verdicts.wait import baseline_wait
from cockpit.analysis.words.rounds import progress_words
from cockpit.files import read_bounded, write_private
from cockpit.model.knobs import not_yet_active
from cockpit.model.state import Segment
from cockpit.model.text import sanitize
from cockpit.session.controls import Mode
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.key_table import AppKey, MainKey, SessionKey, TuningKey, ViewKey, key_names
from cockpit.tui.tuning.changes import inactive_knobs

# This name in the file hides all hints.
_HIDDEN = "hidden"
_MAX_BYTES = 1 << 20  # of the file


class Hint(NamedTuple):
    """A hint, shown while `applies`; the action `name` ends it."""

    name: str
    words: str | Callable[[DrawContext], str]
    applies: Callable[[DrawContext], bool]

    def text(self, context: DrawContext) -> str:
        return self.words if isinstance(self.words, str) else self.words(context)


def change_hint(context: DrawContext) -> str:
    """Return the stage of the newest change, the time left to its verdict, or the verdict; "" without a change."""
    state = context.state
    if (rounds := progress(state, context.now)) is not None:
        return f"{progress_words(rounds)}. {MainKey.ROUNDS}: stop"
    if not state.own_changes:
        return ""
    change, segment = state.own_changes[-1], state.segment
    name = f"change {sanitize(change.letter)}"
    if not change.outcome:
        if change.confirm_by is not None:
            return f"{name} is rolled back unless you keep it: {MainKey.TUNE}, then {TuningKey.KEEP}"
        stage = next(reversed(tuple(change.stages)), "requested")
        return f"{name} ({stage}): its segment starts when it is active"
    if change.outcome == "written":
        return f"{name} is {not_yet_active(inactive_knobs(change, state))}"
    if change.outcome != "applied":
        return ""
    if segment is None or change.letter not in segment.changes:
        idle = f"{name} is active. {SessionKey.TOGGLE}: start load to see its effect"
        return "" if state.running is not None else idle
    return _of_verdict(context, segment, name)


def _of_verdict(context: DrawContext, segment: Segment, name: str) -> str:
    verdict = context.verdict(segment)
    if verdict is None:
        return ""
    if verdict.outcome not in (Outcome.INCONCLUSIVE, Outcome.INVALID):
        return f"{name} is {verdict.outcome}. {MainKey.COMPARE}: all metrics with intervals"
    if segment.end is None and verdict.needs is not None and math.isfinite(verdict.needs):
        return f"{name}: verdict in about {math.ceil(verdict.needs)} s of load. {MainKey.COMPARE}: all metrics"
    rounds = "" if verdict.outcome is Outcome.INVALID or context.state.studying else f"{MainKey.ROUNDS}: rounds; "
    return f"{name} is {verdict.outcome}. {rounds}{MainKey.COMPARE}: reason and all metrics"


def tuning_hint(context: DrawContext) -> str:
    """Return the hint for the tuning panel, with the seconds of load still needed as a baseline for a change."""
    left = baseline_wait(context.state)
    if left > 0:
        return f"{MainKey.TUNE}: tune; a change waits {math.ceil(left)} s for enough load"
    return f"{MainKey.TUNE}: tuning panel, to see and change settings"


_HINTS = (
    Hint("load", f"{SessionKey.TOGGLE}: start the load, and stop it", lambda context: context.state.runs == 0),
    Hint("compare", change_hint, lambda context: bool(change_hint(context))),
    Hint("tune", tuning_hint, lambda context: context.state.runs > 0 and bool(context.state.knobs)),
    Hint(
        "detail",
        f"{ViewKey.NEXT_DETAIL}: next list below the host; {ViewKey.FOCUS}: focus it",
        # Not during a change.
        lambda context: context.state.runs > 0 and bool(context.hosts) and not change_hint(context),
    ),
    Hint(
        "compare",
        f"{key_names(MainKey.UP, MainKey.DOWN)}: select a segment of the runs table; "
        f"{MainKey.COMPARE}: compare it with the baseline",
        lambda context: len(context.state.segments) > 1,
    ),
    Hint(
        "help",
        f"{MainKey.HELP}: help for the focused pane and every metric; {AppKey.COMMANDS}: search all commands",
        lambda _: True,
    ),
)


def hints_file() -> Path:
    return platformdirs.user_state_path("cockpit") / "hints.json"


class Hints:
    """The hints not followed yet. All are shown again if the file cannot be read or written."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = hints_file() if file is None else file
        self._done = self._read()

    def active(self, context: DrawContext) -> bool:
        """Return whether there can be hints: only keys change it, so that no pane moves by itself."""
        left = any(hint.name not in self._done for hint in _HINTS)
        return left and _HIDDEN not in self._done and context.mode is Mode.LIVE

    def next(self, context: DrawContext) -> str:
        """Return the hint that applies now, or ""."""
        if not self.active(context):
            return ""
        return next(
            (hint.text(context) for hint in _HINTS if hint.name not in self._done and hint.applies(context)), ""
        )

    def done(self, name: str) -> None:
        if any(hint.name == name for hint in _HINTS) and not self._done & {name, _HIDDEN}:
            self._keep(name)

    def hide(self) -> None:
        self._keep(_HIDDEN)

    def _keep(self, name: str) -> None:
        self._done.add(name)
        with contextlib.suppress(OSError):
            write_private(self._file, json.dumps(sorted(self._done)).encode())

    def _read(self) -> set[str]:
        try:
            names = json.loads(read_bounded(self._file, _MAX_BYTES))
        except (OSError, ValueError, RecursionError):
            return set()
        return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
