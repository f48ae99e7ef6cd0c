"""Plots as SVG that is stretched to the available space, with labels of constant size beside it.

A plot is drawn in 1000 x 100 units at any size; strokes are not stretched.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import pairwise

from cockpit.document.model import Flame, FlameBox, Heat, Marks, Plot, PlotSeries, Point
from cockpit.document.scale import Axis, apart
from cockpit.model.text import sanitize

_WIDTH, _HEIGHT = 1000.0, 100.0
# Height of the drawing of a table's row, and the part of it over which its dots are spread, the first one on top.
_ROW, _TOP, _BOTTOM = 20.0, 4.0, 16.0
# Height of a row of a flame graph, and of the baseline of its text, in CSS pixels.
_BOX, _TEXT = 18, 13
# Maximum number of points of a series: more are not visible. Of each group the largest is kept.
_POINTS = 600
# Minimum distances between labels of bands and of rows, as shares of the width.
_BANDS_APART, _ROWS_APART = 0.04, 0.1
# A blue with contrast to white and to nearly black. Its opacity shows the count.
_HEAT = (0x2F, 0x86, 0xD0)


def escaped(text: str) -> str:
    """Return text of any origin, escaped for HTML and its attributes."""
    return escape(sanitize(text), quote=True)


def figure(plot: Plot) -> str:
    legend = "".join(
        f'<span class="key c{each.colour}">{escaped(each.name)}</span>' for each in plot.series if each.name
    )
    svg = "".join(
        (*_bands(plot), _heat(plot), _grid(plot), *(_series(each, plot) for each in plot.series), *_signs(plot))
    )
    tall = "" if plot.kind == "time" and not plot.heat else " tall"
    return (
        f'<figure class="chart"><figcaption>{escaped(plot.title)}{legend}</figcaption>'
        f'<div class="plot{tall}{" signed" if plot.signs or plot.bands else ""}">'
        f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escaped(plot.title)}">{svg}</svg>{"".join(_labels(plot))}</div></figure>\n'
    )


def flame_figure(flame: Flame) -> str:
    """Return a flame graph. Every box has its whole text, cut by the box, so that the browser's search matches it."""
    boxes = "".join(map(_box, flame.boxes))
    title, height = escaped(flame.title), _BOX * (1 + max(box.row for box in flame.boxes))
    svg = f'<svg width="100%" height="{height}" aria-label="{title}">{boxes}</svg>'
    return f'<figure class="flame"><figcaption>{title}</figcaption>{svg}</figure>\n'


def _box(box: FlameBox) -> str:
    left, width = (f"{100 * share:.2f}%" for share in (box.start, box.end - box.start))
    return (
        f'<svg x="{left}" y="{_BOX * box.row}" width="{width}" height="{_BOX - 1}"><title>{escaped(box.words)}</title>'
        f'<rect class="f c{box.colour}" width="100%" height="100%" style="fill-opacity:{box.opacity:.2f}"/>'
        f'<text x="3" y="{_TEXT}">{escaped(box.text)}</text></svg>'
    )


def thinned(points: Sequence[Point]) -> list[Point]:
    """Return at most `_POINTS` points: of each group the one with the largest y, or a gap if the group has only
    gaps."""
    size = math.ceil(len(points) / _POINTS) or 1
    groups = (points[at : at + size] for at in range(0, len(points), size))
    return [max(group, key=lambda point: -math.inf if point[1] is None else point[1]) for group in groups]


def _number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".") or "0"


def _x(axis: Axis, value: float) -> str:
    return _number(_WIDTH * axis.at(value))


def _y(axis: Axis, value: float) -> str:
    return _number(_HEIGHT * (1 - axis.at(value)))


def _left(axis: Axis, value: float) -> str:
    return f"left:{100 * axis.at(value):.2f}%"


def _series(series: PlotSeries, plot: Plot) -> str:
    stepped = plot.kind == "steps"
    drawn = []
    for part in _without_gaps(series.points if stepped else thinned(series.points)):
        places = [f"{_x(plot.x, x)} {_y(plot.y, y)}" for x, y in (_steps(part) if stepped else part)]
        if series.dots or len(part) == 1:
            drawn += [f'<path class="s c{series.colour} dot" d="M{place}h0"/>' for place in places]
            continue
        line = "L".join(places)
        if series.fill:
            below = dict(series.floor)
            floor = "L".join(f"{_x(plot.x, x)} {_y(plot.y, below.get(x) or plot.y.low)}" for x, _ in reversed(part))
            drawn.append(f'<path class="f c{series.colour}" d="M{line}L{floor}Z"/>')
        drawn.append(f'<path class="s c{series.colour}" d="M{line}"/>')
    return "".join(drawn)


def _without_gaps(points: Iterable[Point]) -> list[list[tuple[float, float]]]:
    parts: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is not None:
            parts[-1].append((x, y))
        elif parts[-1]:
            parts.append([])
    return [part for part in parts if part]


def _steps(part: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    yield part[0]
    for (_, before), (x, y) in pairwise(part):
        yield from ((x, before), (x, y))


def _grid(plot: Plot) -> str:
    lines = [f"M0 {_y(plot.y, value)}H{_WIDTH:g}" for value, _ in plot.y.labels]
    lines += [f"M{_x(plot.x, value)} 0V{_HEIGHT:g}" for value, _ in plot.x.labels]
    return f'<path class="grid" d="{"".join(lines)}"/>'


def _bands(plot: Plot) -> Iterator[str]:
    for start, end, _ in plot.bands:
        width = _WIDTH * max(0.0005, plot.x.at(end) - plot.x.at(start))
        yield f'<rect class="band" x="{_x(plot.x, start)}" y="0" width="{_number(width)}" height="{_HEIGHT:g}"/>'


def _signs(plot: Plot) -> Iterator[str]:
    for sign in plot.signs:
        line = f'<path class="sign {sign.kind}" d="M{_x(plot.x, sign.x)} 0V{_HEIGHT:g}">'
        yield f"{line}<title>{escaped(sign.words)}</title></path>"


def _labels(plot: Plot) -> Iterator[str]:
    """Yield the labels of both axes, of bands and of markers."""
    for value, label in plot.y.labels:
        yield f'<span class="y" style="bottom:{100 * plot.y.at(value):.2f}%">{escaped(label)}</span>'
    for value, label in plot.x.labels:
        edge = " first" if plot.x.at(value) < 0.04 else " last" if plot.x.at(value) > 0.96 else ""
        yield f'<span class="x{edge}" style="{_left(plot.x, value)}">{escaped(label)}</span>'
    for start, label in apart(plot.x, ((start, label) for start, _, label in plot.bands), _BANDS_APART):
        yield f'<span class="row" style="{_left(plot.x, start)}">{escaped(label)}</span>'
    for sign in plot.signs:
        if sign.sign:
            title = f'style="{_left(plot.x, sign.x)}" title="{escaped(sign.words)}"'
            yield f'<span class="letter {sign.kind}" {title}>{escaped(sign.sign)}</span>'


def _heat(plot: Plot) -> str:
    heat = plot.heat
    if heat is None:
        return ""
    top, bottom = (_HEIGHT * (1 - plot.y.at(value)) for value in (heat.high, heat.low))
    return (
        f'<image class="heat" x="0" y="{top:.2f}" width="{_WIDTH:g}" height="{bottom - top:.2f}" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{base64.b64encode(_png(heat)).decode()}"/>'
    )


def _png(heat: Heat) -> bytes:
    """Return a PNG of one colour; its first line is at the top, the highest bucket."""
    raw = b"".join(b"\0" + line for line in reversed(heat.lines))
    head = struct.pack(">IIBBBBB", len(heat.lines[0]), len(heat.lines), 8, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", head),
        (b"PLTE", bytes(_HEAT) * 256),
        (b"tRNS", bytes(range(256))),
        (b"IDAT", zlib.compress(raw, 9)),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in (*chunks, (b"IEND", b""))
    )


def axis_labels(axis: Axis) -> str:
    """Return the labels of the common axis of a table's rows."""
    labels = apart(axis, axis.labels, _ROWS_APART)
    return "".join(f'<span style="{_left(axis, value)}">{escaped(label)}</span>' for value, label in labels)


def row_svg(axis: Axis, marks: Marks) -> str:
    """Return the drawing of a table's row; empty without anything to draw."""
    if not marks.dots:
        return ""
    grid = "".join(f"M{_x(axis, value)} 0V{_ROW:g}" for value, _ in axis.labels)
    reference = marks.reference
    zero = "" if reference is None else f'<path class="zero" d="M{_x(axis, reference)} 0V{_ROW:g}"/>'
    marked = "".join((zero, _interval(axis, marks), *_dots(axis, marks)))
    return (
        f'<svg viewBox="0 0 {_WIDTH:g} {_ROW:g}" preserveAspectRatio="none">'
        f'{_margin(axis, marks)}<path class="grid" d="{grid}"/>{marked}</svg>'
    )


def _margin(axis: Axis, marks: Marks) -> str:
    if marks.margin is None:
        return ""
    left, right = (_WIDTH * axis.at(end) for end in marks.margin)
    width = _number(right - left)
    return f'<rect class="band" x="{_number(left)}" y="0" width="{width}" height="{_ROW:g}"/>' if right > left else ""


def _interval(axis: Axis, marks: Marks) -> str:
    """Return a line; only ends within the axis have a cap."""
    if marks.interval is None:
        return ""
    low, high = marks.interval
    left, right = _x(axis, axis.low if low is None else low), _x(axis, axis.high if high is None else high)
    caps = "".join(f"M{_x(axis, end)} 5V15" for end in (low, high) if end is not None and axis.low <= end <= axis.high)
    return f'<path class="s c{marks.colour}" d="M{left} {_ROW / 2:g}H{right}{caps}"/>'


def _dots(axis: Axis, marks: Marks) -> Iterator[str]:
    last = len(marks.dots) - 1
    for number, dot in enumerate(marks.dots):
        y = _TOP + (_BOTTOM - _TOP) * number / last if last else _ROW / 2
        path = f'class="s c{marks.colour} point{" pale" if dot.pale else ""}" d="M{_x(axis, dot.value)} {_number(y)}h0"'
        yield f"<path {path}><title>{escaped(dot.words)}</title></path>" if dot.words else f"<path {path}/>"
