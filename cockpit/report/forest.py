"""Forest plots and dot plots of HTML reports: tables whose last column draws all rows on one scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from cockpit.analysis.verdicts.outcome import Effect, Outcome
from cockpit.analysis.words.objections import objection_words
from cockpit.analysis.words.verdicts import change_words, value_words
from cockpit.model.text import si
from cockpit.report.charts import Axis, apart, between, text

# Marks a comparison of the same settings.
CONTROL_TAG = ' <small class="tag">same settings</small>'
# Units of the drawing, stretched to the width of its column.
_WIDTH, _HEIGHT, _MIDDLE = 1000.0, 20.0, 10.0
# An interval without a conclusion is drawn up to this multiple of the largest change, so that others stay visible.
_LONGEST = 2.0
# Half width of the scale if nothing changed.
_FLAT = 0.01
# The scale extends beyond its outermost ends by this factor.
_PADDING = 1.08
# Minimum distance between labels of the scale, as a share of its width.
_APART = 0.16
_SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_FACTORS = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000)
_COLOURS = {Outcome.BETTER: "c0", Outcome.WORSE: "c1", Outcome.EQUIVALENT: "c2"}
_ROLES = {Outcome.BETTER: "good", Outcome.WORSE: "bad"}


class ForestRow(NamedTuple):
    """An effect with its name and its sample size as text; `control`: both sides had the same settings."""

    name: str
    effect: Effect
    basis: str = ""
    control: bool = False


class _Scale(NamedTuple):
    """A scale from `low` to `high`: log ratios if `relative`, else differences in the unit of the metric."""

    low: float
    high: float
    relative: bool

    def at(self, value: float) -> float:
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def forest(head: str, rows: Sequence[ForestRow]) -> str:
    """Return the rows as an HTML table; `head` is the title of their names. Effects that do not fit the common scale
    are not drawn."""
    scale = _scale([row.effect for row in rows])
    titles = [head, "verdict", "before → after", "change (95% interval)"]
    has_basis = any(row.basis for row in rows)
    cells = "".join(f'<th class="words">{text(title)}</th>' for title in titles + ["n"] * has_basis)
    axis = f'<th class="interval"><div>{_axis(scale)}</div></th>' if scale else ""
    body = "".join(_row(row, scale, has_basis) for row in rows)
    table = f'<table class="forest"><thead><tr>{cells}{axis}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll">{table}</div>\n'


def outcome_words(effect: Effect) -> str:
    role = _ROLES.get(effect.outcome, "soft")
    reason = f" <small>{text(objection_words(effect.objection))}</small>" if effect.objection else ""
    return f'<span class="{role}">{text(effect.outcome)}</span>{reason}'


def _row(row: ForestRow, scale: _Scale | None, has_basis: bool) -> str:
    effect = row.effect
    cells = [
        f'<td class="words name">{text(row.name)}{CONTROL_TAG if row.control else ""}</td>',
        f'<td class="words outcome">{outcome_words(effect)}</td>',
        f'<td class="words nowrap">{text(value_words(effect))}</td>',
        f'<td class="words nowrap change">{text(change_words(effect))}</td>',
    ]
    cells += [f'<td class="words nowrap basis">{text(row.basis)}</td>'] if has_basis else []
    cells += [f'<td class="interval"><div>{_interval_svg(effect, scale)}</div></td>'] if scale else []
    return f"<tr{' class=control' if row.control else ''}>{''.join(cells)}</tr>"


def _scale(effects: Sequence[Effect]) -> _Scale | None:
    """Return the common scale: of ratios if there are any, else of differences in a single metric; None if nothing can
    be drawn."""
    relative = any(one.relative for one in effects)
    shown = [one for one in effects if one.relative == relative and _is_drawn(one)]
    if not shown or (not relative and len({one.name for one in shown}) > 1):
        return None
    middles = [_at(one, one.change or 0.0) for one in shown]
    margins = [_at(one, end) for one in shown for end in (one.margin, -one.margin)]
    conclusive = [end for one in shown if one.outcome is not Outcome.INCONCLUSIVE for end in _ends(one)]
    longest = _LONGEST * max(map(abs, chain(middles, margins, conclusive)))
    clipped = [min(longest, max(-longest, end)) for one in shown for end in _ends(one)]
    low, high = (pick(chain((0.0,), middles, conclusive, clipped)) for pick in (min, max))
    if low == high:
        low, high = -_FLAT, _FLAT
    padding = (_PADDING - 1) * (high - low)
    return _Scale(low - padding, high + padding, relative)


def _is_drawn(effect: Effect) -> bool:
    return effect.change is not None and effect.outcome is not Outcome.INVALID and bool(_ends(effect))


def _ends(effect: Effect) -> list[float]:
    return [_at(effect, end) for end in (effect.low, effect.high) if end is not None]


def _at(effect: Effect, value: float) -> float:
    return math.log1p(max(value, -0.999_999)) if effect.relative else value


def _interval_svg(effect: Effect, scale: _Scale) -> str:
    if not _is_drawn(effect) or effect.relative != scale.relative:
        return ""
    colour = _COLOURS.get(effect.outcome, "c7")
    low, high = (None if end is None else _at(effect, end) for end in (effect.low, effect.high))
    left = scale.low if low is None else max(low, scale.low)
    right = scale.high if high is None else min(high, scale.high)
    line = f"M{_x(scale, left)} {_MIDDLE:g}H{_x(scale, right)}"
    # Only ends within the scale have a cap.
    caps = "".join(
        f"M{_x(scale, end)} 5V15" for end in (low, high) if end is not None and scale.low <= end <= scale.high
    )
    middle = _x(scale, _at(effect, effect.change or 0.0))
    return (
        f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" preserveAspectRatio="none" aria-hidden="true">'
        f"{_margin(effect, scale)}{_grid(scale)}"
        f'<path class="s {colour}" d="{line}{caps}"/><path class="s {colour} point" d="M{middle} {_MIDDLE:g}h0"/></svg>'
    )


def _margin(effect: Effect, scale: _Scale) -> str:
    low, high = (scale.at(_at(effect, end)) for end in (-effect.margin, effect.margin))
    left, width = _WIDTH * low, _WIDTH * (high - low)
    return f'<rect class="band" x="{left:.1f}" y="0" width="{width:.1f}" height="{_HEIGHT:g}"/>' if width else ""


def _grid(scale: _Scale) -> str:
    lines = "".join(f"M{_x(scale, value)} 0V{_HEIGHT:g}" for value, _ in _labels(scale) if value)
    zero = f'<path class="zero" d="M{_x(scale, 0.0)} 0V{_HEIGHT:g}"/>'
    return f'<path class="grid" d="{lines}"/>{zero}' if lines else zero


def _axis(scale: _Scale) -> str:
    return "".join(
        f'<span style="left:{100 * scale.at(value):.2f}%">{text(label)}</span>' for value, label in _labels(scale)
    )


def _labels(scale: _Scale) -> list[tuple[float, str]]:
    """Return labels at 0 and at round changes, from the outermost inwards, with a minimum distance."""
    chosen = [(0.0, "0")]
    for value, label in _candidates(scale):
        inside = scale.low <= value <= scale.high
        if inside and all(abs(scale.at(value) - scale.at(other)) >= _APART for other, _ in chosen):
            chosen.append((value, label))
    return sorted(chosen)


def _candidates(scale: _Scale) -> Iterable[tuple[float, str]]:
    """Round changes of both directions, the largest first."""
    if not scale.relative:
        top = max(abs(scale.low), abs(scale.high))
        decade = 10.0 ** math.floor(math.log10(top))
        for value in (part * decade for part in (5, 2, 1, 0.5, 0.2, 0.1)):
            yield from ((value, f"+{si(value)}"), (-value, f"−{si(value)}"))
        return
    for factor in reversed(_FACTORS):
        yield from ((math.log(factor), f"×{factor:g}"), (-math.log(factor), f"÷{factor:g}"))
    for share in reversed(_SHARES):
        yield math.log1p(share), f"+{100 * share:g}%"
        yield math.log1p(-share), f"−{100 * share:g}%"


def _x(scale: _Scale | Axis, value: float) -> str:
    return f"{_WIDTH * scale.at(value):.1f}"


# Dots of a row are spread over this part of its height, the first run on top.
_TOP, _BOTTOM = 4.0, 16.0
# Minimum distance between labels of dot plots, as a share of the width.
_DOTS_APART = 0.1


class Dot(NamedTuple):
    """A run. It is pale unless `counted`; `words` is the tooltip."""

    value: float
    counted: bool
    words: str


class DotRow(NamedTuple):
    """A variant. `total` is the value of all counted runs together; None without any."""

    name: str
    dots: Sequence[Dot]
    total: float | None
    colour: int


def dot_plot(rows: Sequence[DotRow], form: Callable[[float], str]) -> str:
    """Return the variants as an HTML table; `form` writes a value. Empty when no row has a dot."""
    values = [dot.value for row in rows for dot in row.dots]
    if not values:
        return ""
    axis = between(min(values), max(values), form)
    labels = "".join(
        f'<span style="left:{100 * axis.at(value):.2f}%">{text(label)}</span>'
        for value, label in apart(axis, axis.labels, _DOTS_APART)
    )
    body = "".join(_dot_row(row, axis, form) for row in rows)
    titles = '<th class="words">variant</th><th class="words">counted</th>'
    axis_head = f'<th class="interval"><div>{labels}</div></th>'
    return (
        f'<div class="scroll"><table class="forest dots"><thead><tr>{titles}{axis_head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>\n"
    )


def _dot_row(row: DotRow, axis: Axis, form: Callable[[float], str]) -> str:
    total = "–" if row.total is None else form(row.total)
    return (
        f'<tr><td class="words name">{text(row.name)}</td><td class="words nowrap">{text(total)}</td>'
        f'<td class="interval"><div>{_dots_svg(row, axis)}</div></td></tr>'
    )


def _dots_svg(row: DotRow, axis: Axis) -> str:
    grid = "".join(f"M{_x(axis, value)} 0V{_HEIGHT:g}" for value, _ in axis.labels)
    total = "" if row.total is None else f'<path class="zero" d="M{_x(axis, row.total)} 0V{_HEIGHT:g}"/>'
    step = (_BOTTOM - _TOP) / max(1, len(row.dots) - 1)
    dots = "".join(
        f'<path class="s c{row.colour} point{"" if dot.counted else " pale"}" '
        f'd="M{_x(axis, dot.value)} {_TOP + step * at:.1f}h0"><title>{text(dot.words)}</title></path>'
        for at, dot in enumerate(row.dots)
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" preserveAspectRatio="none">'
        f'<path class="grid" d="{grid}"/>{total}{dots}</svg>'
    )
