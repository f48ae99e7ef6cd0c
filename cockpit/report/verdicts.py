"""Verdicts as the JSON of a run and the lines of its summary have them."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from cockpit.analysis.compare import Word
from cockpit.analysis.verdict import Verdict
from cockpit.analysis.words import method_lines, verdict_line
from cockpit.model.figures import RunResult
from cockpit.model.text import neutral


class EffectJson(msgspec.Struct, frozen=True, kw_only=True):
    """One figure before and after. `change`, `low`, `high` (95 % interval) and `seen` (the smallest change that would
    have been found four times out of five) are shares where `relative` (0.15 is 15 % more), else in the figure's unit.
    `p` is corrected for the number of figures. null: cannot be told."""

    figure: str
    verdict: Word
    reason: str
    before: float | None
    after: float | None
    relative: bool
    change: float | None
    low: float | None
    high: float | None
    seen: float | None
    p: float | None


class VerdictJson(msgspec.Struct, frozen=True, kw_only=True):
    """The rows `after` against the rows `before`, by their numbers in the session. The first effect is the headline.

    `unit` is what a value is: a block of `block_seconds`, or a whole run; `values` are how many a side, in `repeats`
    pairs of windows. `left_out` says what was not counted, a side each. `drift`: share by which what was before moved
    by itself. `needs` seconds more show a difference of 5 %; null: none are needed, or none are enough. `at_least`: the
    generator was saturated on the side that is the faster one all the same; it may be faster still.
    """

    label: str
    verdict: Word
    reason: str
    text: str
    before: list[int]
    after: list[int]
    unit: str
    values: tuple[int, int]
    block_seconds: int
    repeats: int
    left_out: tuple[str, str]
    doubts: list[str]
    drift: float | None
    so_far: bool
    needs: float | None
    at_least: bool
    effects: list[EffectJson]


def verdict_json(verdict: Verdict) -> VerdictJson:
    """The verdict in the shape of the schema."""
    return VerdictJson(
        label=neutral(verdict.label),
        verdict=verdict.word,
        reason=verdict.reason,
        text=verdict_line(verdict),
        before=list(verdict.before),
        after=list(verdict.after),
        unit=verdict.unit,
        values=verdict.blocks,
        block_seconds=verdict.length,
        repeats=verdict.repeats,
        left_out=verdict.left_out,
        doubts=list(verdict.doubts),
        drift=verdict.drift,
        so_far=verdict.so_far,
        needs=None if verdict.needs is None or math.isinf(verdict.needs) else verdict.needs,
        at_least=verdict.at_least,
        effects=[
            EffectJson(
                figure=one.name,
                verdict=one.word,
                reason=one.reason,
                before=one.before,
                after=one.after,
                relative=one.relative,
                change=one.change,
                low=one.low,
                high=one.high,
                seen=one.seen,
                p=one.p,
            )
            for one in verdict.effects
        ],
    )


def said_of(result: RunResult, verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Those that the rows of this run complete: each verdict is told once, with the last of its runs."""
    numbers = {row.number for row in result.segments}
    return tuple(verdict for verdict in verdicts if max(verdict.after, default=0) in numbers)


def verdict_lines(verdicts: Iterable[Verdict]) -> list[str]:
    """A line each, and below it by which rules it was found."""
    lines = []
    for verdict in verdicts:
        lines += [f"  {verdict_line(verdict)}", *(f"    {line}" for line in method_lines(verdict))]
    return ["", *lines] if lines else []
