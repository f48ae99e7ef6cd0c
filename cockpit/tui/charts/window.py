"""The time range of the charts over time, shared by all of them."""

from __future__ import annotations

import math
from typing import NamedTuple

# Seconds per cell to zoom to. A cell is two columns of dots, so up to 2 s/cell a column is at most one second. Both
# columns of 3 and 5 s cover the whole cell.
SCALES = (0.25, 0.375, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
# The automatic scales without a change: the least at which the session fits; at the last one the window moves. In
# steps of 1/_GROWING s while the end of the load is unknown, so that the scale changes rarely, else of 1/_FILLED s.
_FINEST, _LAST = 0.25, 2.0
_GROWING, _FILLED = 8, 128
# The widest scale that keeps a change and its baseline in view.
_WIDEST = 10.0

# Columns of dots, and minimum seconds, per move of the window; between moves only the newest column changes.
_STEP = 10

# Cells of the labels of the y axis.
AXIS = 5

# Seconds between two labels of the time axis, and the least cells.
_LABELS = (5, 10, 15, 20, 30, 60, 120, 300, 900, 1800, 3600, 7200, 21600)
_APART = 12


class ChartWindow(NamedTuple):
    """A time range: `cells` cells of `span` seconds each, from session second `first` on."""

    first: int
    span: float
    cells: int

    @property
    def seconds(self) -> int:
        return int(self.cells * self.span)

    @property
    def end(self) -> float:
        return self.first + self.cells * self.span

    @property
    def labels(self) -> tuple[int, ...]:
        """The labelled instants of the axis, in session seconds: its start, and round ones."""
        step = next(step for step in _LABELS if step >= _APART * self.span)
        return self.first, *range(self.first // step * step + step, math.ceil(self.end), step)

    def cell(self, t: float) -> int:
        """Return the cell of an instant; outside of 0 to `cells` - 1 it is not visible."""
        return math.floor((t - self.first) / self.span)

    def instant(self, cell: int) -> float:
        return self.first + cell * self.span

    @property
    def scale(self) -> str:
        return f"{length_words(self.span)}/cell"


def window_for(
    now: float,
    cells: int,
    span: float | None = None,
    cursor: float | None = None,
    start: int = 0,
    end: float = 0.0,
    needed: float | None = None,
) -> ChartWindow:
    """Return a window that contains `now`, from `start` on if it fits; or the cursor, if it is earlier.

    `span` None: the first of the automatic scales at which all since `start` fits, up to the known `end` of the load,
    0 if unknown, if that fits at 2 s/cell; a wider one, up to 10 s/cell, if the session since `needed` does not fit.
    """
    if span is None:
        fits = end - start < cells * _LAST
        steps = _FILLED if end and fits else _GROWING
        least = math.ceil((int(max(now, end if fits else now) - start) + 1) * steps / cells) / steps
        if least < _LAST:
            return ChartWindow(start, max(_FINEST, least), cells)
        since = now if needed is None else needed
        span = next((scale for scale in SCALES if scale >= _LAST and now - since < cells * scale), _WIDEST)
        span = min(span, _WIDEST)
    # Move by whole cells and whole seconds.
    unit = next(int(count * span) for count in range(1, 9) if (count * span).is_integer())
    start -= start % unit

    def moves(most: float) -> int:
        return max(unit, min(int(most), int(cells * span)) // unit * unit)

    step = moves(max(_STEP, _STEP * span / 2))
    excess = int(now) + 1 - start - int(cells * span)
    first = start + max(0, -(-excess // step) * step)
    if cursor is not None and cursor < first:
        # Pages of half a window.
        page = moves(cells * span / 2)
        first = start + (int(cursor) - start) // page * page
    return ChartWindow(first, span, cells)


def coarser_scale(window: ChartWindow, length: float) -> float:
    """Return the next wider scale, up to the one that shows `length` s."""
    whole = window.cells * window.span > length
    return window.span if whole else next((scale for scale in SCALES if scale > window.span), window.span)


def finer_scale(window: ChartWindow) -> float:
    return max((scale for scale in SCALES if scale < window.span), default=window.span)


def length_words(seconds: float) -> str:
    """Return e.g. `0.5 s`, `20 s`, `5 min`."""
    return f"{seconds:.3g} s" if seconds < 60 else f"{seconds / 60:g} min"
