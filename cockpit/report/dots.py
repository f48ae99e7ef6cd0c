"""Dot plots of HTML reports: a table whose last column draws each run of a row as a dot, all rows to one scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from cockpit.report.charts import Axis, between, text

_WIDTH, _HEIGHT = 1000.0, 20.0
# Dots of a row are spread over this part of its height, the first run on top.
_TOP, _BOTTOM = 4.0, 16.0
# Labels at least this share of the width apart are all shown.
_APART = 0.1


class Dot(NamedTuple):
    """The value of a run; one not `counted` is pale. `words` appear under the pointer."""

    value: float
    counted: bool
    words: str


class DotRow(NamedTuple):
    """`total` is the value of all counted runs together, None when there is none."""

    name: str
    dots: Sequence[Dot]
    total: float | None
    colour: int


def dot_plot(head: str, rows: Sequence[DotRow], form: Callable[[float], str]) -> str:
    """Return the rows as an HTML table; `head` is the title of their names, `form` writes a value.

    Empty when no row has a dot."""
    values = [dot.value for row in rows for dot in row.dots]
    if not values:
        return ""
    axis = between(min(values), max(values), form)
    labels = "".join(
        f'<span style="left:{100 * axis.at(value):.2f}%">{text(label)}</span>' for value, label in _apart(axis)
    )
    body = "".join(_row(row, axis, form) for row in rows)
    titles = f'<th class="words">{text(head)}</th><th class="words">counted</th>'
    axis_head = f'<th class="interval"><div>{labels}</div></th>'
    return (
        f'<div class="scroll"><table class="forest dots"><thead><tr>{titles}{axis_head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>\n"
    )


def _row(row: DotRow, axis: Axis, form: Callable[[float], str]) -> str:
    total = "–" if row.total is None else form(row.total)
    return (
        f'<tr><td class="words name">{text(row.name)}</td><td class="words nowrap">{text(total)}</td>'
        f'<td class="interval"><div>{_drawn(row, axis)}</div></td></tr>'
    )


def _drawn(row: DotRow, axis: Axis) -> str:
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


def _apart(axis: Axis) -> list[tuple[float, str]]:
    """The labels that have room beside the one before."""
    shown: list[tuple[float, str]] = []
    for value, label in axis.labels:
        if not shown or axis.at(value) - axis.at(shown[-1][0]) >= _APART:
            shown.append((value, label))
    return shown


def _x(axis: Axis, value: float) -> str:
    return f"{_WIDTH * axis.at(value):.1f}"
