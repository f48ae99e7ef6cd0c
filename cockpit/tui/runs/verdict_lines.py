"""The full verdict as lines: all effects with intervals, and the method."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from msgspec.structs import replace
from rich.cells import cell_len

from cockpit.analysis.verdicts.outcome import Effect, Verdict
from cockpit.analysis.warnings import alters_reading, segment_warnings
from cockpit.analysis.windows import GUARD
from cockpit.analysis.words.objections import objection_words
from cockpit.analysis.words.rounds import title_words
from cockpit.analysis.words.stacks import profile_lines
from cockpit.analysis.words.timeline import segment_label
from cockpit.analysis.words.verdicts import (
    MARKS,
    basis_lines,
    change_words,
    detectable_words,
    metric_words,
    uses_factors,
    value_words,
    verdict_words,
)
from cockpit.analysis.words.warnings import warning_words
from cockpit.model.state import Segment
from cockpit.model.text import sanitize
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.key_table import CompareKey, MainKey, SessionKey, key_names
from cockpit.tui.runs.details import server_notes
from cockpit.tui.runs.strip_lines import ROLES
from cockpit.tui.terminal.styled_line import EMPTY, Line, fit

# Column titles; two blanks before the first for the mark.
_HEAD = ("  metric", "before → after", "change", "verdict")
# The seconds that comparisons leave out.
RULE = (
    f"not counted: the time from the request of a change to its effect, {GUARD} s after the effect and after the start "
    "of a segment, incomplete seconds, and seconds with the generator saturated"
)


def verdict_lines(context: DrawContext, segment: Segment, width: int) -> list[Line]:
    """Return the answer first: the verdict, its effects and what they compare."""
    base, verdict = context.before(segment), context.verdict(segment)
    name = f"segment {segment.number}: {sanitize(segment_label(segment))}"
    if segment.round and (rounds := _rounds_lines(context, segment, width)):
        return rounds
    if segment.plan.variants and verdict is not None:
        return verdict_details(verdict, width, name)
    if base is None or verdict is None:
        alone = f"a change under load ({MainKey.TUNE}) starts one, or another run ({SessionKey.TOGGLE})"
        others = key_names(CompareKey.LEFT, CompareKey.RIGHT)
        warmup = f"warm-ups are not compared: choose another segment with {others}"
        reason = warmup if segment.warmup else f"no other segment to compare with yet: {alone}"
        return [*_wrapped(name, width, "strong"), EMPTY, *_wrapped(reason, width, "dim")]
    chosen = context.view.baseline == base.number
    default = "just before, same run" if base.run == segment.run else "the baseline"
    relation = "the chosen baseline" if chosen else default
    lines = verdict_details(verdict, width, f"segment {segment.number} vs segment {base.number}, {relation}")
    for warning in segment_warnings(segment):
        role = "warn" if alters_reading(warning) else "dim"
        lines += _wrapped(f"segment {segment.number}: {warning_words(warning)}", width, role)
    for note in server_notes(segment, context.state):
        lines += _wrapped(f"server on {note}", width, "text")
    rounds = _rounds_lines(context, segment, width)
    return [*lines, EMPTY, *rounds] if rounds else lines


def _rounds_lines(context: DrawContext, segment: Segment, width: int) -> list[Line]:
    """Return the verdicts of all rounds in the segment's run."""
    lines: list[Line] = []
    for rounds in (each for each in context.state.rounds if each.begun.run == segment.run):
        verdict = context.verdicts.rounds(context.state, rounds)
        if verdict is not None:
            about = f"{verdict.values[0]} rounds of {title_words(rounds.begun)}"
            lines += [*([EMPTY] if lines else []), *verdict_details(verdict, width, about)]
    return lines


def verdict_details(verdict: Verdict, width: int, about: str = "") -> list[Line]:
    """Return the verdict in words, `about` the comparison, a table of the effects, and the warnings."""
    plain = replace(verdict, label="", effects=verdict.effects)
    lines = _wrapped(f"{MARKS[verdict.outcome]} {verdict_words(plain)}", width, ROLES[verdict.outcome] or "strong")
    lines += _wrapped(about, width, "dim")
    if verdict.effects:
        factors = uses_factors(verdict.effects)
        rows = [_cells(effect, factors) for effect in verdict.rows]
        widths = [max(cell_len(row[at]) for row in (_HEAD, *rows)) + 2 for at in range(3)]
        lines += [EMPTY, ((_aligned(_HEAD, widths, width), "dim"),)]
        for effect, row in zip(verdict.effects, rows, strict=True):
            lines += _effect(row, widths, ROLES[effect.outcome], width)
    lines.append(EMPTY)
    lines += [
        line for words in profile_lines(verdict.profiles, verdict.growing) for line in _wrapped(words, width, "strong")
    ]
    for warning in verdict.warnings:
        lines += _wrapped(f"! {warning_words(warning)}", width, "warn")
    return lines


def method_lines(context: DrawContext, segment: Segment, width: int) -> list[Line]:
    """Return how the verdict on a segment was reached, and the seconds that are not counted."""
    verdict = context.verdict(segment)
    rounds = (each for each in context.state.rounds if each.begun.run == segment.run) if segment.round else ()
    verdicts = [verdict, *(context.verdicts.rounds(context.state, each) for each in rounds)]
    texts = dict.fromkeys(line for each in verdicts if each is not None for line in basis_lines(each))
    return [(("method", "strong"),), *(line for text in (*texts, RULE) for line in _wrapped(text, width, "dim"))]


def _cells(effect: Effect, factors: bool) -> tuple[str, str, str, str]:
    change = "–" if effect.change is None else change_words(effect, factors)
    words = f"{effect.outcome}{detectable_words(effect)}"
    if effect.objection is not None:
        words = f"{effect.outcome}: {objection_words(effect.objection)}"
    return f"{MARKS[effect.outcome]} {metric_words(effect.name)}", value_words(effect), change, words


def _effect(row: Sequence[str], widths: Sequence[int], role: str, width: int) -> list[Line]:
    """Return one line, or two lines if the verdict does not fit behind the numbers."""
    if sum(widths) + cell_len(row[3]) <= width:
        return [((_aligned(row, widths, width), role),)]
    return [((_aligned(row[:3], widths, width), role),), *_wrapped(f"    {row[3]}", width, role)]


def _aligned(row: Sequence[str], widths: Sequence[int], width: int) -> str:
    """Return the cells in columns of the given widths, in at most `width` cells."""
    text = "".join(fit(cell, room) for cell, room in zip(row, widths, strict=False)) + "".join(row[len(widths) :])
    return fit(text, width).rstrip()


def _wrapped(text: str, width: int, role: str) -> list[Line]:
    return [((line, role),) for line in wrap(text, max(20, width), subsequent_indent="  ")]
