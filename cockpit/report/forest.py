"""Effects as a table whose rows are drawn on one scale: a forest plot."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from cockpit.analysis.verdicts.outcome import Effect, Outcome
from cockpit.analysis.words.objections import objection_words
from cockpit.analysis.words.verdicts import change_words, uses_factors, value_words
from cockpit.document.model import Cell, Dot, Marks, Role, Table
from cockpit.document.scale import Axis, apart
from cockpit.model.text import si

# An interval without a conclusion is drawn up to this multiple of the largest change, so that others stay visible.
_LONGEST = 2.0
# Half width of the scale if nothing changed.
_FLAT = 0.01
# The scale extends beyond its outermost ends by this share.
_PADDING = 0.08
# Minimum distance between labels of the scale, as a share of its width.
_APART = 0.16
_SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_FACTORS = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000)
_COLOURS = {Outcome.BETTER: 0, Outcome.WORSE: 1, Outcome.EQUIVALENT: 2}
_ROLES: dict[Outcome, Role] = {Outcome.BETTER: "good", Outcome.WORSE: "bad"}


class ForestRow(NamedTuple):
    """An effect with its name and its sample size as text; `control`: both sides had the same settings."""

    name: str
    effect: Effect
    basis: str = ""
    control: bool = False


def forest(head: str, rows: Sequence[ForestRow]) -> Table:
    """Return the table; `head` is the title of the names. Effects that do not fit the common scale are not drawn."""
    with_basis = any(row.basis for row in rows)
    titles = (head, "verdict", "before → after", "change (95% interval)", *(("n",) if with_basis else ()))
    axis, factors = _axis([row.effect for row in rows]), uses_factors(row.effect for row in rows)
    cells = [
        (
            name_cell(row.name, control=row.control),
            outcome_cell(row.effect.outcome, row.effect),
            value_words(row.effect),
            change_words(row.effect, factors),
            *((row.basis,) if with_basis else ()),
        )
        for row in rows
    ]
    relative = any(row.effect.relative for row in rows)
    marks = [_marks(row.effect, relative) for row in rows] if axis else []
    return Table(titles, cells, axis, marks)


def name_cell(name: str, *, control: bool) -> Cell:
    return Cell(name, "soft", "same settings") if control else Cell(name)


def role_of(outcome: Outcome) -> Role:
    return _ROLES.get(outcome, "")


def outcome_cell(outcome: Outcome, effect: Effect | None = None) -> Cell:
    """Return the outcome, with the reason why an effect is invalid."""
    objection = effect.objection if effect else None
    return Cell(str(outcome), _ROLES.get(outcome, "soft"), objection_words(objection) if objection else "")


def _marks(effect: Effect, relative: bool) -> Marks:
    if not _is_drawn(effect) or effect.relative != relative:
        return Marks()
    low, high = (None if end is None else _at(effect, end) for end in (effect.low, effect.high))
    return Marks(
        dots=[Dot(_at(effect, effect.change or 0.0))],
        colour=_COLOURS.get(effect.outcome, 7),
        interval=(low, high),
        margin=(_at(effect, -effect.margin), _at(effect, effect.margin)),
        reference=0.0,
    )


def _axis(effects: Sequence[Effect]) -> Axis | None:
    """Return the common axis: of log ratios if there are relative effects, else of differences in a single metric;
    None if nothing can be drawn."""
    relative = any(effect.relative for effect in effects)
    shown = [effect for effect in effects if effect.relative == relative and _is_drawn(effect)]
    if not shown or (not relative and len({effect.name for effect in shown}) > 1):
        return None
    middles = [_at(effect, effect.change or 0.0) for effect in shown]
    margins = [_at(effect, end) for effect in shown for end in (effect.margin, -effect.margin)]
    conclusive = [
        end for effect in shown if effect.outcome is not Outcome.INCONCLUSIVE for end in _interval_ends(effect)
    ]
    longest = _LONGEST * max(map(abs, chain(middles, margins, conclusive)))
    clipped = [min(longest, max(-longest, end)) for effect in shown for end in _interval_ends(effect)]
    low, high = (pick(chain((0.0,), middles, conclusive, clipped)) for pick in (min, max))
    if low == high:
        low, high = -_FLAT, _FLAT
    padding = _PADDING * (high - low)
    axis = Axis(low - padding, high + padding)
    changes = _round_ratios() if relative else _round_differences(max(-axis.low, axis.high))
    return Axis(axis.low, axis.high, apart(axis, chain([(0.0, "0")], changes), _APART))


def _is_drawn(effect: Effect) -> bool:
    return effect.change is not None and effect.outcome is not Outcome.INVALID and bool(_interval_ends(effect))


def _interval_ends(effect: Effect) -> list[float]:
    return [_at(effect, end) for end in (effect.low, effect.high) if end is not None]


def _at(effect: Effect, value: float) -> float:
    return math.log1p(max(value, -0.999_999)) if effect.relative else value


def _round_ratios() -> Iterator[tuple[float, str]]:
    """Yield labels at round changes of both directions, the largest first."""
    for factor in reversed(_FACTORS):
        yield from ((math.log(factor), f"×{factor:g}"), (-math.log(factor), f"÷{factor:g}"))
    for share in reversed(_SHARES):
        yield from ((math.log1p(share), f"+{100 * share:g}%"), (math.log1p(-share), f"−{100 * share:g}%"))


def _round_differences(largest: float) -> Iterator[tuple[float, str]]:
    decade = 10.0 ** math.floor(math.log10(largest))
    for value in (part * decade for part in (5, 2, 1, 0.5, 0.2, 0.1)):
        yield from ((value, f"+{si(value)}"), (-value, f"−{si(value)}"))
