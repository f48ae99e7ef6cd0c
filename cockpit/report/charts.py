"""Charts of HTML reports: SVG that is stretched to the available space, with labels of constant size beside it.

A chart is drawn in 1000 x 100 units at any size; strokes are not stretched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

from cockpit.model.text import sanitize, si

WIDTH, HEIGHT = 1000.0, 100.0
# Maximum number of points of a series: more are not visible. Of each group the largest is kept.
_POINTS = 600
# Axes of at most this many decades have labels within them.
_FEW_DECADES = 2
# Values further apart than this factor get a logarithmic axis.
_LOG_FROM = 20.0
# Minimum distance between labels of bands, as a share of the width.
_LABEL_DISTANCE = 0.04

Point = tuple[float, float | None]


def text(value: str) -> str:
    """Return text of any origin, escaped for HTML and its attributes."""
    return escape(sanitize(value), quote=True)


@dataclass(frozen=True)
class ChartSeries:
    """`points` by ascending x; a y of None is a gap. `colour` is 0 to 7. `fill`: the area down to `floor` (y by x), or
    to the axis, is filled."""

    name: str
    points: Sequence[Point]
    colour: int
    fill: bool = False
    floor: Sequence[Point] = ()
    steps: bool = False
    marks: bool = False


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, with labels at some values; `log`: logarithmic."""

    low: float
    high: float
    labels: tuple[tuple[float, str], ...] = ()
    log: bool = False

    def at(self, value: float) -> float:
        """Return the position of a value, 0 to 1; values outside are moved to the edge."""
        low, high, one = (self.low, self.high, value)
        if self.log:
            low, high, one = math.log(low), math.log(high), math.log(max(value, self.low))
        return min(1.0, max(0.0, (one - low) / (high - low))) if high > low else 0.0


@dataclass(frozen=True)
class TimelineMark:
    """A vertical line at x with the letter `sign` on top, if any, and the tooltip `words`."""

    x: float
    sign: str
    words: str
    kind: str = "change"


@dataclass(frozen=True)
class SvgChart:
    """A chart. `bands` are ranges (from, to, label) in the background. `inside` is SVG drawn below the series."""

    title: str
    x: Axis
    y: Axis
    series: Sequence[ChartSeries] = ()
    signs: Sequence[TimelineMark] = ()
    bands: Sequence[tuple[float, float, str]] = ()
    inside: str = ""
    tall: bool = False
    label: str = field(default="")


def from_zero(highest: float, form: Callable[[float], str] = si, least: float = 1.0) -> Axis:
    """Return an axis from 0 to a round number not below `highest`, with three to five round labels."""
    top = max(highest, least)
    step = 10.0 ** math.floor(math.log10(top / 2))
    step *= next(factor for factor in (1, 2, 5, 10) if top / (step * factor) <= 4.5)
    count = math.ceil(top / step - 1e-9)
    return Axis(0.0, step * count, tuple((step * at, form(step * at)) for at in range(count + 1)))


def between(lowest: float, highest: float, form: Callable[[float], str]) -> Axis:
    """Return an axis over both values that may begin above 0: logarithmic if they are far apart, else with two to six
    round labels."""
    if lowest > 0 and highest / lowest > _LOG_FROM:
        return decades(lowest, highest, form)
    span = (highest - lowest) or abs(highest) / 10 or 1.0
    step = 10.0 ** math.floor(math.log10(span / 2))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 4)
    first, last = math.floor(lowest / step + 1e-9), math.ceil(highest / step - 1e-9)
    if first == last:
        first, last = first - 1, last + 1
    labels = tuple((step * at, form(step * at)) for at in range(first, last + 1))
    return Axis(step * first, step * last, labels)


def decades(lowest: float, highest: float, form: Callable[[float], str]) -> Axis:
    """Return a logarithmic axis over both values, with labels at decades, or at 1, 2 and 5 if the decades are few."""
    first, last = math.floor(math.log10(lowest) + 1e-9), math.ceil(math.log10(highest) - 1e-9)
    few = last - first <= _FEW_DECADES
    every = [mark * 10.0**decade for decade in range(first, last + 2) for mark in ((1, 2, 5) if few else (1,))]
    low = max((value for value in every if value <= lowest * 1.000001), default=every[0])
    high = next((value for value in every if value >= highest * 0.999999 and value > low), every[-1])
    return Axis(low, high, tuple((value, form(value)) for value in every if low <= value <= high), log=True)


def apart(axis: Axis, labels: Iterable[tuple[float, str]], share: float) -> tuple[tuple[float, str], ...]:
    """Return the labels, ascending, that are at least this share of the axis apart."""
    shown: list[tuple[float, str]] = []
    for value, label in labels:
        if not shown or axis.at(value) - axis.at(shown[-1][0]) >= share:
            shown.append((value, label))
    return tuple(shown)


def draw(chart: SvgChart) -> str:
    legend = "".join(f'<span class="key c{one.colour}">{text(one.name)}</span>' for one in chart.series if one.name)
    svg = "".join(
        (*_bands(chart), chart.inside, *_grid(chart), *(_series(one, chart) for one in chart.series), *_signs(chart))
    )
    label = text(chart.label or chart.title)
    return (
        f'<figure class="chart"><figcaption>{text(chart.title)}{legend}</figcaption>'
        f'<div class="plot{" tall" if chart.tall else ""}{" signed" if chart.signs or chart.bands else ""}">'
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f"{svg}</svg>"
        f"{''.join(_labels(chart))}</div></figure>\n"
    )


def thinned(points: Sequence[Point]) -> list[Point]:
    """Return at most `_POINTS` points: of each group the one with the largest y, or a gap if the group has only
    gaps."""
    if len(points) <= _POINTS:
        return list(points)
    size = math.ceil(len(points) / _POINTS)
    groups = (points[at : at + size] for at in range(0, len(points), size))
    return [max(group, key=lambda point: -math.inf if point[1] is None else point[1]) for group in groups]


def xy(chart: SvgChart, x: float, y: float) -> str:
    return f"{_coordinate(WIDTH * chart.x.at(x))} {_coordinate(HEIGHT * (1 - chart.y.at(y)))}"


def _coordinate(number: float) -> str:
    return f"{number:.1f}".rstrip("0").rstrip(".") or "0"


def _series(series: ChartSeries, chart: SvgChart) -> str:
    points = series.points if series.steps else thinned(series.points)
    drawn = []
    for part in _without_gaps(points):
        if series.marks:
            drawn += [f'<path class="s c{series.colour} dot" d="M{xy(chart, x, y)}h0"/>' for x, y in part]
            continue
        line = _stepped(part, chart) if series.steps else "L".join(xy(chart, x, y) for x, y in part)
        if series.fill:
            floor = _floor(series, part, chart)
            drawn.append(f'<path class="f c{series.colour}" d="M{line}L{floor}Z"/>')
        alone = len(part) == 1 and not series.steps
        drawn.append(f'<path class="s c{series.colour}{" dot" if alone else ""}" d="M{line}{"h0" if alone else ""}"/>')
    return "".join(drawn)


def _without_gaps(points: Iterable[Point]) -> list[list[tuple[float, float]]]:
    parts: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is not None:
            parts[-1].append((x, y))
        elif parts[-1]:
            parts.append([])
    return [part for part in parts if part]


def _floor(series: ChartSeries, part: list[tuple[float, float]], chart: SvgChart) -> str:
    below = dict(series.floor)
    return "L".join(xy(chart, x, below.get(x) or chart.y.low) for x, _ in reversed(part))


def _stepped(part: list[tuple[float, float]], chart: SvgChart) -> str:
    pieces = [xy(chart, *part[0])]
    for (_, before), (x, y) in pairwise(part):
        pieces += [xy(chart, x, before), xy(chart, x, y)]
    return "L".join(pieces)


def _grid(chart: SvgChart) -> Iterable[str]:
    lines = [f"M0 {_coordinate(HEIGHT * (1 - chart.y.at(value)))}H{WIDTH:g}" for value, _ in chart.y.labels]
    lines += [f"M{_coordinate(WIDTH * chart.x.at(value))} 0V{HEIGHT:g}" for value, _ in chart.x.labels]
    yield f'<path class="grid" d="{"".join(lines)}"/>'


def _bands(chart: SvgChart) -> Iterable[str]:
    for start, end, _ in chart.bands:
        left, right = WIDTH * chart.x.at(start), WIDTH * chart.x.at(end)
        width = _coordinate(max(0.5, right - left))
        yield f'<rect class="band" x="{_coordinate(left)}" y="0" width="{width}" height="{HEIGHT:g}"/>'


def _signs(chart: SvgChart) -> Iterable[str]:
    for sign in chart.signs:
        yield (
            f'<path class="sign {sign.kind}" d="M{_coordinate(WIDTH * chart.x.at(sign.x))} 0V{HEIGHT:g}">'
            f"<title>{text(sign.words)}</title></path>"
        )


def _labels(chart: SvgChart) -> Iterable[str]:
    """Yield the labels of both axes, of bands and of markers."""
    for value, label in chart.y.labels:
        yield f'<span class="y" style="bottom:{100 * chart.y.at(value):.2f}%">{text(label)}</span>'
    for value, label in chart.x.labels:
        edge = " first" if chart.x.at(value) < 0.04 else " last" if chart.x.at(value) > 0.96 else ""
        yield f'<span class="x{edge}" style="left:{100 * chart.x.at(value):.2f}%">{text(label)}</span>'
    yield from _band_labels(chart)
    for sign in chart.signs:
        if sign.sign:
            at = f"left:{100 * chart.x.at(sign.x):.2f}%"
            yield f'<span class="letter {sign.kind}" style="{at}" title="{text(sign.words)}">{text(sign.sign)}</span>'


def _band_labels(chart: SvgChart) -> Iterable[str]:
    before = -1.0
    for start, _, label in chart.bands:
        at = chart.x.at(start)
        if at >= before + _LABEL_DISTANCE:
            yield f'<span class="row" style="left:{100 * at:.2f}%">{text(label)}</span>'
            before = at
