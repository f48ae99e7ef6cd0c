"""A verdict with all its metrics, as lines: effects with intervals, and the method."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from msgspec.structs import replace
from rich.cells import cell_len

from cockpit.analysis.outcome import Effect, Verdict
from cockpit.analysis.rounds_words import title_words
from cockpit.analysis.warning_words import warning_words
from cockpit.analysis.warnings import segment_warnings
from cockpit.analysis.windows import GUARD
from cockpit.analysis.words import (
    basis_lines,
    change_words,
    detectable_words,
    metric_words,
    objection_words,
    value_words,
    verdict_words,
)
from cockpit.model.state import Segment
from cockpit.model.text import neutral
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.runs.strip_lines import MARKS, ROLES
from cockpit.tui.runs.table import server_notes
from cockpit.tui.terminal.styled_line import EMPTY, Line, fit

# Heads of the table; before the first there is room for a mark. Columns are as wide as their widest cell.
_HEAD = ("  metric", "before → after", "change", "verdict")
# The rule by which the seconds around a change are left out, whether or not there were any here.
RULE = (
    f"never counted: the time between the request of a change and its effect, {GUARD} s after it and after the start "
    "of a row, seconds not covered whole, and seconds with the generator saturated"
)


def verdict_lines(scene: DrawContext, row: Segment, width: int) -> list[Line]:
    """Return the comparison of a segment with its baseline in full."""
    lines = _wrapped(f"{row.number}  {neutral(row.label)}", width, "strong")
    base, verdict = scene.before(row), scene.verdict(row)
    if row.round and (found := _rounds_lines(scene, row, width)):
        return [*lines, *found, EMPTY, *_wrapped(RULE, width, "dim")]
    if base is None or verdict is None:
        alone = (
            "there is no other row yet to compare it with: a change under load (t) opens one, or another run (space)"
        )
        why = "a warm-up is compared with nothing: go to another row with ← →" if row.warmup else alone
        return [*lines, EMPTY, *_wrapped(why, width, "dim")]
    chosen = scene.view.baseline == base.number
    known = "the chosen baseline" if chosen else "just before it, same run" if base.run == row.run else "the baseline"
    lines += _wrapped(f"vs segment {base.number}, {known}: {neutral(base.label)}", width, "dim")
    lines += [EMPTY, *judged(verdict, width)]
    for warning in segment_warnings(row):
        lines += _wrapped(f"row {row.number}: {warning_words(warning)}", width, "warn")
    for note in server_notes(row, scene.state):
        lines += _wrapped(f"server on {note}", width, "warn")
    return [*lines, *_rounds_lines(scene, row, width), EMPTY, *_wrapped(RULE, width, "dim")]


def _rounds_lines(scene: DrawContext, row: Segment, width: int) -> list[Line]:
    """The verdicts of the rounds in the run of the row."""
    lines: list[Line] = []
    for rounds in (one for one in scene.state.rounds if one.begun.run == row.run):
        verdict = scene.verdicts.rounds(scene.state, rounds)
        if verdict is not None:
            head = f"{verdict.values[0]} rounds of {title_words(rounds.begun)}"
            lines += [EMPTY, ((fit(head, width).rstrip(), "strong"),), *judged(verdict, width)]
    return lines


def judged(verdict: Verdict, width: int) -> list[Line]:
    """Return the verdict in words, its metrics as a table, and the method."""
    plain = replace(verdict, label="", effects=verdict.effects)
    lines = _wrapped(f"{MARKS[verdict.outcome]} {verdict_words(plain)}", width, ROLES[verdict.outcome] or "strong")
    if verdict.effects:
        rows = [_cells(one) for one in verdict.effects]
        wide = [max(cell_len(row[at]) for row in (_HEAD, *rows)) + 2 for at in range(3)]
        lines += [EMPTY, ((_straight(_HEAD, wide, width), "dim"),)]
        for one, row in zip(verdict.effects, rows, strict=True):
            lines += _effect(row, wide, ROLES[one.outcome], width)
    lines.append(EMPTY)
    for line in basis_lines(verdict):
        lines += _wrapped(line, width, "dim")
    for warning in verdict.warnings:
        lines += _wrapped(f"! {warning_words(warning)}", width, "warn")
    return lines


def _cells(effect: Effect) -> tuple[str, str, str, str]:
    """Mark and name, values, change with its interval, verdict."""
    change = "–" if effect.change is None else change_words(effect)
    verdict = f"{effect.outcome}{detectable_words(effect)}"
    if effect.objection is not None:
        verdict = f"{effect.outcome}: {objection_words(effect.objection)}"
    return f"{MARKS[effect.outcome]} {metric_words(effect.name)}", value_words(effect), change, verdict


def _effect(row: Sequence[str], wide: Sequence[int], role: str, width: int) -> list[Line]:
    """Return one line, or two if the verdict does not fit behind the numbers."""
    if sum(wide) + cell_len(row[3]) <= width:
        return [((_straight(row, wide, width), role),)]
    return [((_straight(row[:3], wide, width), role),), *_wrapped(f"    {row[3]}", width, role)]


def _straight(row: Sequence[str], wide: Sequence[int], width: int) -> str:
    """The cells in columns of that width, the last one as long as it is; at most `width` cells."""
    told = "".join(fit(cell, room) for cell, room in zip(row, wide, strict=False)) + "".join(row[len(wide) :])
    return fit(told, width).rstrip()


def _wrapped(text: str, width: int, role: str) -> list[Line]:
    return [((line, role),) for line in wrap(text, max(20, width), subsequent_indent="  ")]
