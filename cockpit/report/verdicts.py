"""Verdicts as the JSON of a run and the lines of its summary have them."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from cockpit.analysis.outcome import Cause, Design, Effect, Objection, OtherLoad, Outcome, Verdict
from cockpit.analysis.words import method_lines, objection_words, verdict_line
from cockpit.model.figures import RunResult
from cockpit.model.text import neutral


class EffectJson(msgspec.Struct, frozen=True, kw_only=True):
    """One metric before and after. `change` with its interval `low` to `high`, `margin` (the largest change that counts
    as equivalent) and `detectable` (the smallest that would be found with a probability of 80%) are shares when
    `relative` (0.15 is 15% more), else in the metric's unit. `level` is the confidence of the interval; the outcome
    rests on the same interval. null: unknown; one of `low` and `high` alone: the interval has no such end."""

    metric: str
    outcome: Outcome
    objection: str
    before: float | None
    after: float | None
    relative: bool
    change: float | None
    low: float | None
    high: float | None
    level: float
    margin: float
    detectable: float | None


class VerdictJson(msgspec.Struct, frozen=True, kw_only=True):
    """The segments `after` vs the segments `before`, by their numbers in the session. The first effect is the headline.

    `cause` is why a verdict is invalid, `objection` in words. `values` are independent values per side: rounds,
    runs, or blocks of `block_seconds`. `left_out`: excluded time per side. `growing`: the load after the change still
    runs; `needs` more seconds of it are expected to conclude, null: unknown. `at_least`: the generator was saturated on
    the faster side, which may be faster still. `other_loads` are of each machine on which it was measured.
    """

    label: str
    outcome: Outcome
    design: Design
    cause: Cause | None
    objection: str
    text: str
    before: list[int]
    after: list[int]
    values: tuple[int, int]
    block_seconds: int
    left_out: tuple[str, str]
    warnings: list[str]
    growing: bool
    needs: float | None
    at_least: bool
    other_loads: tuple[OtherLoad, ...]
    effects: list[EffectJson]


def verdict_json(verdict: Verdict) -> VerdictJson:
    """Return the verdict in the shape of the schema."""
    return VerdictJson(
        label=neutral(verdict.label),
        outcome=verdict.outcome,
        design=verdict.design,
        cause=verdict.objection.cause if verdict.objection else None,
        objection=_objection(verdict.objection),
        text=verdict_line(verdict),
        before=list(verdict.before),
        after=list(verdict.after),
        values=verdict.values,
        block_seconds=verdict.block,
        left_out=verdict.left_out,
        warnings=list(verdict.warnings),
        growing=verdict.growing,
        needs=None if verdict.needs is None or math.isinf(verdict.needs) else verdict.needs,
        at_least=verdict.at_least,
        other_loads=verdict.other_loads,
        effects=[_effect_json(one) for one in verdict.effects],
    )


def _effect_json(one: Effect) -> EffectJson:
    return EffectJson(
        metric=one.name,
        outcome=one.outcome,
        objection=_objection(one.objection),
        before=one.before,
        after=one.after,
        relative=one.relative,
        change=one.change,
        low=one.low,
        high=one.high,
        level=one.level,
        margin=one.margin,
        detectable=one.detectable,
    )


def _objection(objection: Objection | None) -> str:
    return "" if objection is None else objection_words(objection)


def said_of(result: RunResult, verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Return the verdicts completed by segments of this run: each verdict is listed once, with the last of its runs."""
    numbers = {row.number for row in result.segments}
    return tuple(verdict for verdict in verdicts if max(verdict.after, default=0) in numbers)


def verdict_lines(verdicts: Iterable[Verdict]) -> list[str]:
    """A line each, and below it by which rules it was found."""
    lines = []
    for verdict in verdicts:
        lines += [f"  {verdict_line(verdict)}", *(f"    {line}" for line in method_lines(verdict))]
    return ["", *lines] if lines else []
