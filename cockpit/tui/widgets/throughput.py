"""Replies a second over time, with changes, gaps, errors and seconds not to be trusted."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from cockpit.model.state import LoadSecond, Marker, Segment, State
from cockpit.model.text import clock, si
from cockpit.tui import braille
from cockpit.tui.cells import EMPTY, Line, centred, right, rule
from cockpit.tui.lines import Lines
from cockpit.tui.scene import Scene
from cockpit.tui.words import how_to_begin

# The window moves by this many seconds at a time: between two moves only the newest column changes.
_STEP = 10

# Columns a second while the session is young enough to fit.
_WIDE = (4, 2)

# Cells for the figures of the y axis and the axis itself.
_AXIS = 6

# On the time axis, under seconds that are not to be trusted, and under those with errors.
_SATURATED = "▒"
_FAILED = "x"

# Above and behind the chart, while a change is carried out: before its reload, and from that until it is in effect.
_ASKED, _RELOADING = "░", "▓"

# Markers that are neither a change nor a note, whose sign is to be explained.
_KINDS = (("gap", "host lost"), ("restart", "restart"), ("worker", "load worker lost"))


class Throughput(Lines):
    """As many seconds as fit, one a column of dots, or more while there are few."""

    def draw(self, scene: Scene, width: int, height: int) -> list[Line]:
        state = scene.state
        if not state.seconds:
            empty = centred([("nothing has been sent yet", "text"), *how_to_begin(scene)], width, height - 1)
            return [rule((("throughput", "strong"),), (), width), *empty]
        window = window_for(scene.now, max(1, width - _AXIS - 1))
        seconds = drawn(scene, window)
        title = rule((("throughput", "strong"),), _figures(scene, seconds, window.first), width)
        # An even number of lines, so that half of the top has a line of its own.
        plot = (height - 4) // 2 * 2
        if plot < 2:
            return [title]
        top = nice_ceiling(max((second.rate for second in seconds), default=0.0))
        columns: list[float | None] = [None] * (window.cells * 2)
        for second in seconds:
            at = (second.second - window.first) * window.dots
            columns[at : at + window.dots] = [second.rate] * window.dots
        rows = braille.area(columns[: window.cells * 2], top, plot)
        bands = bands_of(state)
        signs = _signs([*state.markers, *_open_marks(state)], window)
        shades = _shades(bands, window)
        lines: list[Line] = [((" " * (_AXIS + 1) + _over(shades, signs), "mark"),)]
        for at, row in enumerate(rows):
            lines.append((*_label(at, plot, top), *_with_threads(row, signs, shades)))
        lines.append(((right("0", _AXIS - 1) + " ", "dim"), ("└", "rule"), *_axis(state.segments, seconds, window)))
        lines.append(((" " * (_AXIS + 1) + _times(window), "dim"),))
        return [title, *lines]


class Band(NamedTuple):
    """A change while it was carried out: asked for, its reload begun, in effect (or back). Session seconds."""

    asked: float
    reload: float
    effect: float


def bands_of(state: State) -> list[Band]:
    """Of every change from its request to its effect, and of those that were put back while they were."""
    bands = []
    for change in state.changes:
        over = change.ended or state.t
        effect = over if change.in_force is None else change.in_force
        bands.append(Band(change.begun, min(change.stages.get("tested", effect), effect), effect))
        if (back := change.stages.get("undoing")) is not None:
            bands.append(Band(back, back, over))
    return bands


def _open_marks(state: State) -> list[Marker]:
    """Letters of changes whose own marker does not stand where they came into force, or does not stand yet."""
    return [
        Marker(t=state.t if change.in_force is None else change.in_force, kind="change", sign=change.letter, text="")
        for change in state.changes
        if change.outcome != "applied" and (change.in_force is not None or not change.outcome)
    ]


def _shades(bands: Sequence[Band], window: Window) -> str:
    """A cell each: lightly shaded from a request on, darker from the reload on, blank elsewhere."""
    row = [" "] * window.cells
    for band in bands:
        reload = window.cell(band.reload)
        for at in range(max(0, window.cell(band.asked)), min(window.cell(band.effect), window.cells - 1) + 1):
            row[at] = _RELOADING if at >= reload else _ASKED
    return "".join(row).rstrip()


def _over(shades: str, signs: str) -> str:
    """The letters, and the shades where none stands."""
    width = max(len(shades), len(signs))
    return "".join(
        shade if sign == " " else sign for shade, sign in zip(shades.ljust(width), signs.ljust(width), strict=True)
    )


class Window(NamedTuple):
    """What part of the session is drawn: from second `first` on, `dots` columns a second, two columns a cell."""

    first: int
    dots: int
    cells: int

    @property
    def seconds(self) -> int:
        """How many seconds fit."""
        return self.cells * 2 // self.dots

    def cell(self, t: float) -> int:
        """Where an instant stands; below 0 or from `cells` on it is out of sight."""
        return math.floor((t - self.first) * self.dots) // 2


def window_for(now: float, cells: int) -> Window:
    """A young session is drawn wide; then a second is a column, and the window moves so that `now` is inside."""
    for dots in _WIDE:
        if now < cells * 2 // dots:
            return Window(0, dots, cells)
    over = int(now) + 1 - cells * 2
    return Window(max(0, -(-over // _STEP) * _STEP), 1, cells)


def drawn(scene: Scene, window: Window) -> Sequence[LoadSecond]:
    """The seconds inside the window, without one that has only just begun."""
    everything = scene.state.seconds
    seconds = everything[bisect_left(everything, window.first, key=lambda second: second.second) :]
    inside = [second for second in seconds if second.second < window.first + window.seconds]
    if inside and scene.state.running is not None and inside[-1].end - inside[-1].start < 0.5:
        inside.pop()
    return inside


def nice_ceiling(value: float) -> float:
    """The next even step of a power of ten: a top that holds still while the rate wavers."""
    if value <= 0:
        return 1.0
    power = 10.0 ** (len(str(int(value))) - 1) if value >= 1 else 1.0
    return next((step * power for step in (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8) if step * power >= value), 10 * power)


def _figures(scene: Scene, seconds: Sequence[LoadSecond], first: int) -> Line:
    """The rate now, and what the signs mean that are in sight."""
    said = []
    if any(second.saturated for second in seconds):
        said.append((f"{_SATURATED} saturated  ", "warn"))
    if any(second.failed for second in seconds):
        said.append((f"{_FAILED} errors  ", "warn"))
    if any(band.effect >= first for band in bands_of(scene.state)):
        said.append((f"{_ASKED} change {_RELOADING} reload  ", "mark"))
    signs = {marker.kind: marker.sign for marker in scene.state.markers if marker.t >= first}
    said += [(f"{signs[kind]} {words}  ", "warn") for kind, words in _KINDS if kind in signs]
    now = scene.second
    if now is None:
        return (*said, ("no load now", "dim"))
    return (*said, (si(now.rate), "strong"), (" req/s", "text"))


def _label(at: int, plot: int, top: float) -> Line:
    figure = si(top) if at == 0 else si(top / 2) if plot >= 6 and at == plot // 2 else ""
    return ((right(figure, _AXIS - 1) + " ", "dim"), ("┤" if figure else "│", "rule"))


def _signs(markers: Sequence[Marker], window: Window) -> str:
    """The markers' letters over their instants; of two in one cell the later moves on where there is room."""
    row = [" "] * window.cells
    for marker in markers:
        at = window.cell(marker.t)
        if not 0 <= at < window.cells:
            continue
        while at + 1 < window.cells and row[at] != " ":
            at += 1
        row[at] = marker.sign[:1] or "▸"
    return "".join(row).rstrip()


def _with_threads(row: str, signs: str, shades: str) -> Line:
    """The chart's row, with a thread down from every sign and a shade behind every change where the chart leaves the
    cell empty; where it does not, a shaded cell has a ground of its own."""
    width = max(len(signs), len(shades))
    if not width:
        return ((row.rstrip(), "chart"),)
    pieces: list[tuple[str, str]] = []
    start = 0
    for at, (sign, shade) in enumerate(zip(signs.ljust(width), shades.ljust(width), strict=True)):
        if row[at] == " " and (sign != " " or shade != " "):
            piece = ("┊" if sign != " " else shade, "mark")
        elif row[at] != " " and shade != " ":
            piece = (row[at], "band")
        else:
            continue
        pieces += [(row[start:at], "chart"), piece]
        start = at + 1
    return (*pieces, (row[start:].rstrip(), "chart"))


def _axis(segments: Sequence[Segment], seconds: Sequence[LoadSecond], window: Window) -> Line:
    """The time axis: where rows of the table begin, and below which seconds there is something to say."""
    axis = ["─"] * window.cells
    for second in seconds:
        for at in range(window.cell(second.second), max(1, window.dots // 2) + window.cell(second.second)):
            if at >= window.cells:
                break
            if second.saturated:
                axis[at] = _SATURATED
            elif second.failed and axis[at] == "─":
                axis[at] = _FAILED
    for segment in segments:
        at = window.cell(segment.start)
        number = str(segment.number)
        if 0 <= at <= window.cells - len(number):
            axis[at : at + len(number)] = number
    pieces = [(char, "rule" if char == "─" else "warn" if char in (_SATURATED, _FAILED) else "text") for char in axis]
    return tuple(pieces) or EMPTY


def _times(window: Window) -> str:
    """Instants under the axis, at whole seconds: every 10, 15 or 30 of them."""
    row = ""
    for at in range(0, window.cells, 20 if window.dots == _WIDE[0] else 15):
        label = clock(window.first + at * 2 // window.dots)
        if at + len(label) <= window.cells:
            row = row.ljust(at) + label
    return row
