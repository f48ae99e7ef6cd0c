"""The verdict on the row looked at, for one glance: the word, effects as a forest plot, and the seconds still needed.

`strip` reads the scene; `strip_lines` and `strip_words` draw what it returns. Reasons, warnings and rules are left to
the compare screen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import wrap
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.analysis.effects import metric_of
from cockpit.analysis.outcome import DIFFERENT, Cause, Design, Effect, Outcome, Verdict
from cockpit.analysis.rounds import progress
from cockpit.analysis.rounds_words import place_words, title_words
from cockpit.analysis.sides import knobs_at
from cockpit.analysis.stretches import between
from cockpit.analysis.windows import counted_range
from cockpit.analysis.words import (
    amount_words,
    change_words,
    detectable_words,
    margin_words,
    metric_words,
    objection_words,
    too_few_words,
)
from cockpit.model.state import RoundsState, Segment, State
from cockpit.model.text import neutral
from cockpit.tui.cells import EMPTY, Line, clip, ends, fit, length, rule
from cockpit.tui.forest import axis, forest_row, scale_end
from cockpit.tui.scene import Scene

MARKS = {
    Outcome.BETTER: "▲",
    Outcome.WORSE: "▼",
    Outcome.EQUIVALENT: "≈",
    Outcome.INCONCLUSIVE: "?",
    Outcome.INVALID: "!",
}
ROLES = {
    Outcome.BETTER: "chart",
    Outcome.WORSE: "warn",
    Outcome.EQUIVALENT: "",
    Outcome.INCONCLUSIVE: "dim",
    Outcome.INVALID: "dim",
}
# Of the word: an outcome that is only likely has the weight of a metric.
_WORD_ROLES = {**dict.fromkeys(Outcome, "strong"), Outcome.BETTER: "better", Outcome.WORSE: "worse"}
# Metrics with a row in the plot, in this order after the headline; failed requests only if their share differs.
_PLOTTED = ("errors", "rate", "p50", "p99", "cpu.per_reply", "cpu.busy", "memory.used")
# Metrics that can decide a verdict whose headline shows no difference.
_DECIDING = ("errors", "rate", "p50", "p99", "cpu.per_reply", "cpu.busy")
_NEXT = {
    Cause.OTHER_LOAD: "end the other load, then run it again",
    Cause.GENERATOR_SATURATED: "less load (-), or more workers (-w)",
    Cause.HOST_LOST: "run it again when the host answers",
    Cause.LOAD_ALTERED: "leave the load as it is, and apply the change again",
    Cause.LOAD_DIFFERS: "choose a row of the same load and press b",
    Cause.RUN_FAILED: "see the run's error (c), then run it again",
    Cause.PARTIAL: "run it again",
    Cause.REQUESTS_FAILED: "undo the change (t, then ^Z)",
}
_AGAIN = "run it again"
_REPEAT = {
    Design.SWITCH: "rounds (r)",
    Design.ROUNDS: "more rounds (r)",
    Design.RUNS: "more runs, or rounds (r)",
    Design.SINGLE_RUNS: "more runs, or rounds (r)",
}
# Cells of the marks, of the widest name, of change and interval, and of a plot that is worth its room.
_MARK, _NAME, _CHANGE, _PLOT = 3, 16, 24, 11
_BAR = 12


class Progress(NamedTuple):
    """Seconds of load after the change that count, and how many more a verdict is expected to take."""

    passed: float
    left: float


class Strip(NamedTuple):
    """A comparison at a glance. `change` and `compared` are its title; `effects` have a row each, the headline first.

    `so_far`: the change of the rate (share) before there is any effect. `progress`: None when no verdict is waited for.
    `next`: what to do when there is none to be expected, or "".
    """

    verdict: Verdict
    change: str
    compared: str
    effects: tuple[Effect, ...]
    so_far: float | None = None
    progress: Progress | None = None
    next: str = ""


def strip(scene: Scene) -> Strip | None:
    """Return the comparison of the row looked at; None when there is nothing to compare it with."""
    row = scene.row
    if row is None:
        return None
    rounds = _rounds_of(scene.state, row)
    if rounds is not None:
        return _rounds_strip(scene, rounds, row)
    base, verdict = scene.before(row), scene.verdict(row)
    if base is None or verdict is None:
        return None
    return Strip(
        verdict=verdict,
        change=_change(scene.state, row, base),
        compared=f"vs row {base.number}",
        effects=_plotted(verdict, _host_of(scene.state, row)) or _expected(verdict, row),
        so_far=_so_far(scene.state, row, base),
        progress=_progress(scene.state, row, verdict),
        next=_next(verdict),
    )


def _rounds_of(state: State, row: Segment) -> RoundsState | None:
    """Return the rounds that the row belongs to, follows, or waits for."""
    if row.end is None and state.proving is not None:
        return state.proving
    before = state.segments[row.number - 2] if row.number > 1 else row
    if not row.round and not (before.round and before.run == row.run and not row.changes):
        return None
    return next((one for one in reversed(state.rounds) if one.begun.t <= row.start), None)


def _rounds_strip(scene: Scene, rounds: RoundsState, row: Segment) -> Strip:
    """Return rounds as far as they are, at least where they are."""
    state = scene.state
    verdict = scene.verdicts.rounds(state, rounds)
    if verdict is None:
        growing = rounds.ended is None
        verdict = Verdict(outcome=Outcome.INCONCLUSIVE, design=Design.ROUNDS, growing=growing)
    where = progress(state, scene.now) if rounds.ended is None else None
    compared = f"{len(rounds.complete)} of {rounds.budget} rounds" if where is None else place_words(where)
    return Strip(
        verdict=verdict,
        change=title_words(rounds.begun),
        compared=compared,
        effects=_plotted(verdict, rounds.begun.host) or _expected(verdict, row),
        progress=None if where is None else Progress(scene.now - rounds.begun.t, max(1.0, where.left)),
        next="" if where is not None else _next(verdict),
    )


def strip_lines(of: Strip, width: int, height: int) -> list[Line]:
    """Return the strip in full if `height` has room for it, else its word and as many effects as fit."""
    lines = full_lines(of, width)
    return lines if len(lines) <= height else _compact_lines(of, width, height)


def full_lines(of: Strip, width: int) -> list[Line]:
    """Return title, word, a row per effect, and the scale."""
    title = rule((("verdict ", "strong"), (of.change, "text")), ((of.compared, "dim"),), width)
    word = _word(of)
    if of.verdict.outcome is Outcome.INVALID:
        lines = [title, *_invalid_lines(of, width, str(of.verdict.outcome))]
    else:
        lines = [title, ends(word, _progress_line(of.progress, width - length(word) - 2), width)]
        lines += [(("   next: ", "dim"), (of.next, ""))] if of.next else []
    rows, room = _rows(of, of.effects, width)
    if not rows:
        return lines
    basis: Line = ((fit(_basis(of.verdict), width - room), "dim"),)
    return [*lines, *rows, (*basis, *axis(scale_end(of.effects), room))]


def _compact_lines(of: Strip, width: int, height: int) -> list[Line]:
    """Return the word in the title, then what to do next, or effects."""
    word = _word(of, short=True)
    asked = of.next and of.verdict.outcome is not Outcome.INVALID
    rest: Line = ((f"next: {of.next}" if asked else of.compared, "dim"),)
    title = rule((*word, ("  ", ""), (of.change, "dim")), _progress_line(of.progress, 24) or rest, width)
    if of.verdict.outcome is Outcome.INVALID:
        return [title, *_invalid_lines(of, width)][:height]
    return [title, *_rows(of, _first(of, height - 1), width)[0]][:height]


def _invalid_lines(of: Strip, width: int, word: str = "") -> list[Line]:
    """Return two lines: `word`, the reason, and what to do next."""
    text = f"{f'{word}: ' if word else ''}{_reason(of.verdict)}; next: {of.next}"
    first, *rest = wrap(text, max(_MARK, width - _MARK))
    mark = MARKS[of.verdict.outcome] if word else ""
    return [((fit(mark, _MARK) + first, "strong"),), clip(((" " * _MARK + " ".join(rest), "strong"),), width)]


def strip_words(of: Strip) -> Line:
    """Return the strip as a single line: mark, word, the deciding effect, and the seconds left."""
    left = f", {_left(of.progress.left)}" if of.progress else ""
    return (*_word(of), (left, ""))


def full_height(of: Strip) -> int:
    """Return the lines of the full form."""
    return 2 + bool(of.next) + (len(of.effects) + 1 if of.effects else 0)


def compact_height(of: Strip, most: int) -> int:
    """Return the lines of the compact form with at most that many effects."""
    return 3 if of.verdict.outcome is Outcome.INVALID else 1 + min(most, len(of.effects))


def _word(of: Strip, short: bool = False) -> Line:
    """Mark and word, and the effect that it rests on unless `short`."""
    verdict = of.verdict
    likely = _likely(of, of.effects[0]) if of.effects else None
    role = ROLES[likely] if likely else _WORD_ROLES[verdict.outcome]
    if likely:
        word = f"{MARKS[likely]}? likely {likely}"
    elif verdict.outcome is Outcome.INCONCLUSIVE and of.progress:
        word = f"{MARKS[verdict.outcome]}  {verdict.outcome} so far"
    else:
        word = f"{MARKS[verdict.outcome]}  {verdict.outcome}{', at least' if verdict.at_least else ''}"
    detail = "" if short else _detail(of)
    return ((word, role), (f": {detail}" if detail else "", "text"))


def _likely(of: Strip, effect: Effect) -> Outcome | None:
    """What an effect leans to, as long as more can be learned by waiting."""
    return effect.likely if of.verdict.growing and effect.outcome is Outcome.INCONCLUSIVE else None


def _detail(of: Strip) -> str:
    """What the word rests on, in a few words."""
    verdict, effect = of.verdict, _deciding(of.verdict)
    if verdict.outcome is Outcome.INVALID:
        return _reason(verdict)
    if effect is None:
        if of.progress is None:
            return too_few_words(verdict)
        return "" if of.so_far is None else f"rate {amount_words(_rate(of.so_far))}"
    name = metric_words(effect.name)
    if verdict.outcome is Outcome.EQUIVALENT:
        return f"{name} {margin_words(effect)}"
    if verdict.outcome is Outcome.INCONCLUSIVE:
        detectable = "" if verdict.growing else detectable_words(effect)
        return f"{name} {amount_words(_without_interval(effect))}{detectable}"
    return f"{name} {amount_words(effect)}"


def _deciding(verdict: Verdict) -> Effect | None:
    """The effect that the outcome comes from: failed requests, the headline, or the first that lends it its own."""
    if verdict.outcome in DIFFERENT:
        alike = [one for one in verdict.effects if one.outcome is verdict.outcome]
        errors = [one for one in alike if one.name == "errors" and one.outcome is Outcome.WORSE]
        for one in (*errors, *alike):
            if one.headline or metric_of(one.name) in _DECIDING:
                return one
    return verdict.headline


def _reason(verdict: Verdict) -> str:
    return "" if verdict.objection is None else objection_words(verdict.objection)


def _rows(of: Strip, effects: Sequence[Effect], width: int) -> tuple[list[Line], int]:
    """A line per effect, and the cells of its plot."""
    hosts = {one.name.partition(".")[0] for one in effects if "." in one.name}
    names = [_name(one, len(hosts) > 1) for one in effects]
    wide = min(_NAME, max(map(len, names), default=0))
    plot = width - _MARK - wide - _CHANGE - 2
    end = scale_end(of.effects)
    lines: list[Line] = []
    for one, name in zip(effects, names, strict=True):
        likely = _likely(of, one)
        role = ROLES[likely or one.outcome]
        mark = f"{MARKS[likely]}?" if likely else MARKS[one.outcome]
        words = "–" if one.change is None else amount_words(one)
        if one.low is not None or one.high is not None:
            words = change_words(one)
        head = f"{fit(mark, _MARK)}{fit(name, wide)} {fit(words, _CHANGE)} "
        lines.append(((head, role), *(forest_row(one, end, plot, role) if plot >= _PLOT else EMPTY)))
    return lines, max(0, plot)


def _name(effect: Effect, with_host: bool) -> str:
    """The metric's name; its host only where there are several."""
    words = metric_words(effect.name)
    return words if with_host or "." not in effect.name else words.rpartition(" ")[2]


def _without_interval(effect: Effect) -> Effect:
    """The bare change, of a metric on which there is no verdict."""
    return replace(effect, low=None, high=None)


def _rate(change: float) -> Effect:
    return Effect(name="rate", outcome=Outcome.INCONCLUSIVE, change=change)


def _first(of: Strip, most: int) -> Sequence[Effect]:
    """As many effects as have room; the one that decides is among them."""
    deciding = _deciding(of.verdict)
    kept = list(of.effects[:most])
    if kept and deciding in of.effects and deciding not in kept:
        kept[-1] = deciding
    return kept


def _progress_line(progress: Progress | None, room: int) -> Line:
    """A bar and the seconds left, as the room allows."""
    if progress is None:
        return EMPTY
    done = round(_BAR * progress.passed / (progress.passed + progress.left))
    bar: Line = (("━" * done, "chart"), ("·" * (_BAR - done), "rule"))
    words = (f" {_left(progress.left)} to be sure", f" {_left(progress.left)}")
    return next(((*bar, (one, "")) for one in words if _BAR + len(one) <= room), ((words[-1], ""),))


def _left(seconds: float) -> str:
    return f"{math.ceil(seconds)} s more" if seconds < 100 else f"{math.ceil(seconds / 60)} min more"


def _basis(verdict: Verdict) -> str:
    """How many values the verdict rests on."""
    before, after = verdict.values
    if not verdict.effects:
        return ""
    if verdict.design is Design.SWITCH:
        return f"{before * verdict.block} s before, {after * verdict.block} s after"
    return f"{before} rounds" if verdict.design is Design.ROUNDS else f"runs: {before} before, {after} after"


def _plotted(verdict: Verdict, host: str) -> tuple[Effect, ...]:
    """The effects that have a row: the headline, then in order of _PLOTTED, those of `host` before other hosts."""
    shown = [one for one in verdict.effects if metric_of(one.name) in _PLOTTED]
    shown = [one for one in shown if one.name != "errors" or one.outcome in DIFFERENT]
    shown = [_without_interval(one) if one.outcome is Outcome.INVALID else one for one in shown]

    def order(one: Effect) -> tuple[bool, bool, bool, int]:
        on_host = "." in one.name
        return not one.headline, on_host, on_host and not one.name.startswith(f"{host}."), _place(one)

    return tuple(sorted(shown, key=order))


def _place(effect: Effect) -> int:
    """Hosts' metrics stay in the order in which they were compared."""
    return 0 if "." in effect.name else _PLOTTED.index(effect.name)


def _so_far(state: State, row: Segment, base: Segment) -> float | None:
    """The change of the rate over the whole seconds of a growing row that count; None before there are any."""
    counted = counted_range(state, row)
    seconds = between(state.seconds, counted.start, counted.stop)
    covered = sum(second.end - second.start for second in seconds)
    if row.end is not None or covered <= 0 or base.rate <= 0:
        return None
    return sum(second.completed for second in seconds) / covered / base.rate - 1


def _expected(verdict: Verdict, row: Segment) -> tuple[Effect, ...]:
    """Rows without values, as long as a growing verdict has none: the strip is as high from the start."""
    if not verdict.growing or verdict.outcome is Outcome.INVALID:
        return ()
    timed = ("p99", "rate", "p50") if row.plan.open else ("rate", "p50", "p99")
    cost = "cpu.busy" if row.plan.open else "cpu.per_reply"
    names = [*timed, *(f"{host}.{metric}" for host in row.hosts for metric in (cost, "memory.used"))]
    return tuple(Effect(name=name, outcome=Outcome.INCONCLUSIVE) for name in names)


def _change(state: State, row: Segment, base: Segment) -> str:
    """What was changed between two rows; the row's label if it names its changes, or if no setting differs."""
    before, after = (knobs_at(state, one.start) for one in (base, row))
    differing = [name for name in after if name in before and before[name] != after[name]]
    if row.changes or not differing:
        return neutral(row.label)
    return neutral(", ".join(f"{name} {before[name] or 'unset'} → {after[name] or 'unset'}" for name in differing))


def _host_of(state: State, row: Segment) -> str:
    """The host that the row's changes were made on; "" for none."""
    return next((change.host for change in state.changes if change.letter in row.changes), "")


def _progress(state: State, row: Segment, verdict: Verdict) -> Progress | None:
    """How far a growing verdict is, by whole seconds."""
    if verdict.needs is None or math.isinf(verdict.needs) or row.end is not None:
        return None
    passed = len(counted_range(state, row))
    return Progress(passed, max(1.0, verdict.needs - (passed - verdict.values[1] * verdict.block)))


def _next(verdict: Verdict) -> str:
    """What to do when waiting does not help."""
    if verdict.outcome is Outcome.INVALID:
        return _NEXT.get(verdict.objection.cause, _AGAIN) if verdict.objection else _AGAIN
    waits = verdict.growing and verdict.needs is not None and math.isfinite(verdict.needs)
    return _REPEAT[verdict.design] if verdict.outcome is Outcome.INCONCLUSIVE and not waits else ""
