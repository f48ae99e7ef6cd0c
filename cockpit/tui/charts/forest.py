"""A forest plot in text: intervals of effects on one scale, worse left of the zero line, better right.

Positions are logarithms of ratios, so that ×2 and ÷2 have the same distance from the zero line. All functions are pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from cockpit.analysis.effects import more_is_better
from cockpit.analysis.verdicts.outcome import Effect
from cockpit.model.text import si
from cockpit.tui.terminal.styled_line import Line, fit, length

# Ends of the scale (ratios). A few fixed values keep the scale stable while effects vary.
_ENDS = (1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 10000.0)
# Intervals are cut at this multiple of the largest effect, so that one wide interval does not squeeze the others.
_FAR = 2.5
# Relative tolerance at the ends of the scale.
_ROUNDING = 1 + 1e-9

ZERO, MARGIN, CROSSING = "│", "┊", "┼"
POINT, IMPRESSION, BAR = "●", "○", "─"
LEFT, RIGHT = "├", "┤"
CUT_LEFT, CUT_RIGHT = "◂", "▸"


class Benefit(NamedTuple):
    """An effect as logarithms of ratios; above 0 is better.

    `low`, `high`: ends of the interval, infinite for a one-sided interval, both None without an interval.
    """

    estimate: float
    low: float | None
    high: float | None
    margin: float


def benefit(effect: Effect) -> Benefit | None:
    """Return the position of an effect on the scale; None if the effect is unknown or not a ratio."""
    if effect.change is None or not effect.relative:
        return None
    up = more_is_better(effect.name)
    estimate, margin = _log(effect.change), math.log1p(effect.margin)
    estimate = estimate if up else -estimate
    if effect.low is None and effect.high is None:
        return Benefit(estimate, None, None, margin)
    low = -math.inf if effect.low is None else _log(effect.low)
    high = math.inf if effect.high is None else _log(effect.high)
    return Benefit(estimate, low, high, margin) if up else Benefit(estimate, -high, -low, margin)


def scale_end(effects: Iterable[Effect]) -> float:
    """Return the ratio at the ends of a scale that shows all effects and their margins."""
    benefits = [each for each in map(benefit, effects) if each is not None]
    largest = max((max(abs(each.estimate), each.margin) for each in benefits), default=0.0)
    ends = [abs(end) for each in benefits for end in (each.low, each.high) if end is not None and math.isfinite(end)]
    needed = math.exp(min(max([largest, *ends]), _FAR * largest, 700.0))
    return next((end for end in _ENDS if end * _ROUNDING >= needed), _ENDS[-1])


def forest_row(effect: Effect, end: float, width: int, role: str) -> Line:
    """Return one row of the plot, `width` cells: zero line, margins of equivalence, and the interval in `role`.

    An estimate without an interval is a ring. An arrow marks an interval that exceeds the scale.
    """
    cells = [(" ", "")] * width
    gain = benefit(effect)
    reach, middle = math.log(end), (width - 1) // 2

    def cell(value: float) -> int:
        return middle + round(max(-1.0, min(1.0, value / reach)) * middle)

    margin = math.log1p(effect.margin)
    if effect.relative and margin < reach:
        # At least a cell from the zero line, so that each row has them.
        for side in (-1, 1):
            cells[middle + side * max(1, cell(margin) - middle)] = (MARGIN, "rule")
    cells[middle] = (ZERO, "rule")
    if gain is None:
        return tuple(cells)
    low, high = (gain.estimate if bound is None else bound for bound in (gain.low, gain.high))
    for at in range(cell(low), cell(high) + 1):
        cells[at] = (CROSSING if at == middle else BAR, role)
    if gain.low is not None:
        cells[cell(low)], cells[cell(high)] = (LEFT, role), (RIGHT, role)
    cells[cell(gain.estimate)] = (IMPRESSION if gain.low is None else POINT, role)
    if low < -reach * _ROUNDING:
        cells[cell(-reach)] = (CUT_LEFT, role)
    if high > reach * _ROUNDING:
        cells[cell(reach)] = (CUT_RIGHT, role)
    return tuple(cells)


def axis(end: float, width: int) -> Line:
    """Return the scale below the rows, labelled with the ratios at its ends."""
    middle = (width - 1) // 2
    left, right = f"{CUT_LEFT} {si(end)}× worse", f"{si(end)}× better {CUT_RIGHT}"
    if max(len(left), len(right)) >= middle:
        left, right = f"{CUT_LEFT} worse", f"better {CUT_RIGHT}"
    if max(len(left), len(right)) >= middle:
        return ((" " * width, ""),)
    pieces: Line = ((fit(left, middle), "dim"), ("=", "dim"))
    return (*pieces, (" " * (2 * middle + 1 - len(right) - length(pieces)), ""), (right, "dim"))


def _log(share: float) -> float:
    return math.log1p(max(share, -0.999999))
