"""The first steps of a live session, in the place of the verdict until there is one. Pure."""

from __future__ import annotations

import math
from typing import NamedTuple

from cockpit.analysis.rounds import progress
from cockpit.analysis.verdicts.outcome import Outcome
from cockpit.analysis.verdicts.wait import BASELINE, baseline_seconds, baseline_wait
from cockpit.analysis.words.rounds import progress_words
from cockpit.model.knobs import not_yet_active
from cockpit.model.state import Change
from cockpit.model.text import sanitize
from cockpit.session.controls import Mode
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.key_table import AppKey, MainKey, SessionKey
from cockpit.tui.terminal.styled_line import Line, Piece, clip, fit, rule
from cockpit.tui.tuning.changes import inactive_knobs

# Cells of the names of the steps.
_NAME = 20
# Segments whose verdict ends the guide, the newest.
_RECENT = 10


class GuideStep(NamedTuple):
    """A step; `words` is its state, or the key for it."""

    name: str
    done: bool
    words: str


def guide_steps(context: DrawContext) -> tuple[GuideStep, ...]:
    """Return the three steps; () if they are done, or if the session is not live."""
    verdicts = (context.verdict(segment) for segment in context.state.segments[-_RECENT:])
    if context.mode is not Mode.LIVE or any(each and each.outcome is not Outcome.INCONCLUSIVE for each in verdicts):
        return ()
    return _baseline(context), _change(context), GuideStep("read the verdict", False, _verdict_words(context))


def guide_lines(context: DrawContext, width: int, height: int) -> list[Line]:
    """Return a title and a line per step; if the height is too small, the next step first."""
    steps = guide_steps(context)
    if not steps:
        return []
    following = next((at for at, step in enumerate(steps) if not step.done), len(steps))
    lines: list[Line] = [rule((("first steps", "title"),), (), width)]
    for at, step in enumerate(steps):
        sign, role = ("✓", "better_value") if step.done else ("▸", "key") if at == following else (" ", "dim")
        is_next = at == following
        name: Piece = (f"{fit(f'{at + 1} {step.name}', _NAME)}  ", "strong" if is_next else "dim")
        lines.append(clip(((f" {sign} ", role), name, (step.words, "" if is_next else "dim")), width))
    return lines if height >= len(lines) else lines[following + 1 :][:height]


def _baseline(context: DrawContext) -> GuideStep:
    state = context.state
    measured = any(segment.seconds >= BASELINE and not segment.warmup for segment in state.segments)
    left = baseline_wait(state)
    done = bool(state.own_changes) or (measured and not left)
    if done:
        words = ""
    elif left:
        words = f"{baseline_seconds(state)} of {BASELINE} s; about {math.ceil(left)} s more"
    elif state.running is not None:
        words = "the load runs"
    else:
        again = f"a run of {BASELINE} s is needed. " if state.segments else ""
        words = f"{again}{SessionKey.TOGGLE}: start load"
    return GuideStep("measure a baseline", done, words)


def _change(context: DrawContext) -> GuideStep:
    state = context.state
    if state.own_changes:
        change = state.own_changes[-1]
        return GuideStep("change a setting", change.outcome == "applied", _change_words(change, context))
    if state.knobs:
        words = f"{MainKey.TUNE}: type a new value, or {AppKey.COMMAND_LINE}set NAME VALUE"
        return GuideStep("change a setting", False, words)
    words = f"change the server, then {SessionKey.TOGGLE}: next run"
    return GuideStep("change a setting", len({segment.run for segment in state.segments}) > 1, words)


def _change_words(change: Change, context: DrawContext) -> str:
    name = sanitize(change.letter)
    if change.outcome == "written":
        return f"{name} is {not_yet_active(inactive_knobs(change, context.state))}"
    if change.outcome in ("applied", None, ""):
        return f"{name} is {'active' if change.outcome else 'under way'}"
    return f"{name}: {change.outcome}. {MainKey.TUNE}: type another value"


def _verdict_words(context: DrawContext) -> str:
    """Return what a verdict on the newest change still needs."""
    state = context.state
    if (rounds := progress(state, context.now)) is not None:
        return f"{progress_words(rounds)}. {MainKey.ROUNDS}: stop"
    change = state.own_changes[-1] if state.own_changes else None
    if change is None or change.outcome != "applied":
        return "better, worse or equivalent"
    if state.running is None:
        return f"{SessionKey.TOGGLE}: start load to see the effect of {sanitize(change.letter)}"
    segment = state.segment
    verdict = context.verdict(segment) if segment else None
    if verdict is not None and verdict.needs is not None and math.isfinite(verdict.needs):
        return f"in about {math.ceil(verdict.needs)} s of load. {MainKey.COMPARE}: all metrics"
    return f"needs more load, or rounds ({MainKey.ROUNDS})"
