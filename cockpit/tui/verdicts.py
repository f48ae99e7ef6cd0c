"""A verdict with all its figures, as lines: what differs, by how much, how surely, and by which rules it was found."""

from __future__ import annotations

from textwrap import wrap

from msgspec.structs import replace

from cockpit.analysis.compare import NOT, SAME, Effect
from cockpit.analysis.steady import GUARD
from cockpit.analysis.verdict import Verdict
from cockpit.analysis.words import (
    change_words,
    figure_words,
    method_lines,
    seen_words,
    unsure,
    value_words,
    verdict_words,
)
from cockpit.model.state import Segment
from cockpit.model.text import neutral
from cockpit.tui.cells import EMPTY, Line, fit
from cockpit.tui.scene import Scene
from cockpit.tui.widgets.runs import server_notes

_MARKS = {"better": "▲", "worse": "▼", SAME: "≈", NOT: "–"}
_ROLES = {"better": "chart", "worse": "warn", SAME: "", NOT: "dim"}
# Cells for a mark and the figure's name, for its values, and for the change with its interval.
_NAME, _VALUES, _CHANGE = 22, 22, 24
# The rule by which the seconds around a change are left out, whether or not there were any here.
RULE = (
    f"never counted: what lies between the request of a change and its effect, {GUARD} s after it and after a row's "
    "beginning, seconds not covered whole or with the generator saturated, and a warm-up of the rate (MSER-5)"
)


def verdict_lines(scene: Scene, row: Segment, width: int) -> list[Line]:
    """All there is to say of a row against what it is compared with."""
    lines = _wrapped(f"{row.number}  {neutral(row.label)}", width, "strong")
    base, verdict = scene.before(row), scene.verdict(row)
    if base is None or verdict is None:
        alone = (
            "there is no other row yet to compare it with: a change under load (t) opens one, or another run (space)"
        )
        why = "a warm-up is compared with nothing: go to another row with ← →" if row.warmup else alone
        return [*lines, EMPTY, *_wrapped(why, width, "dim")]
    chosen = scene.view.baseline == base.number
    known = "the chosen baseline" if chosen else "just before it, same run" if base.run == row.run else "the baseline"
    lines += _wrapped(f"against row {base.number}, {known}: {neutral(base.label)}", width, "dim")
    lines += [EMPTY, *judged(verdict, width)]
    for note in server_notes(row, scene.state):
        lines += _wrapped(f"the server says of {note}", width, "warn")
    repeated = scene.verdicts.repeated(scene.state, row.run)
    if repeated is not None:
        head = f"A-B-A-B: the change made and taken back {repeated.repeats} times in this run"
        lines += [EMPTY, ((fit(head, width).rstrip(), "strong"),), *judged(repeated, width)]
    return [*lines, EMPTY, *_wrapped(RULE, width, "dim")]


def judged(verdict: Verdict, width: int) -> list[Line]:
    """The verdict in words, its figures as a table, and how it was found."""
    plain = replace(verdict, label="", effects=verdict.effects)
    lines = _wrapped(f"{_MARKS[verdict.word]} {verdict_words(plain)}", width, _ROLES[verdict.word] or "strong")
    if verdict.effects:
        head = fit("  figure", _NAME) + fit("before → after", _VALUES) + fit("change (95 %)", _CHANGE) + "verdict"
        lines += [EMPTY, ((fit(head, width).rstrip(), "dim"),)]
        lines += [line for one in verdict.effects for line in _effect(one, width)]
    lines.append(EMPTY)
    for line in method_lines(verdict):
        lines += _wrapped(line, width, "warn" if line.startswith("!") else "dim")
    return lines


def _effect(effect: Effect, width: int) -> list[Line]:
    """A line, or two where the verdict does not fit behind the figures."""
    change = "–" if effect.change is None else change_words(effect)
    same = "not sure" if unsure(effect) else SAME
    verdict = f"{same}{seen_words(effect)}" if effect.word == SAME else effect.word
    if effect.word == NOT and effect.reason:
        verdict = f"{NOT}: {effect.reason}"
    name = fit(f"{_MARKS[effect.word]} {figure_words(effect.name)}", _NAME - 1) + " "
    values = fit(value_words(effect), _VALUES - 1) + " "
    role = _ROLES[effect.word]
    told = name + values + fit(change, _CHANGE - 1) + " " + verdict
    if len(told) <= width and len(change) < _CHANGE:
        return [((told, role),)]
    return [((fit(name + values + change, width).rstrip(), role),), *_wrapped(f"    {verdict}", width, role)]


def _wrapped(text: str, width: int, role: str) -> list[Line]:
    return [((line, role),) for line in wrap(text, max(20, width), subsequent_indent="  ")]
