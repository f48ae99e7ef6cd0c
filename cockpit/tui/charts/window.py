"""The time range of the charts over time, shared by all of them."""

from __future__ import annotations

import math
from typing import NamedTuple

# Seconds per cell. A cell is two columns of dots, so up to 2 s/cell a column is at most one second. Both columns of 3
# and 5 s cover the whole cell.
SCALES = (0.25, 0.375, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
# Automatic scales: the first one at which the session fits; at the last one the window moves. In small steps, because
# a load with a planned end should fill most of the charts.
_USUAL = SCALES[:8]
# The widest scale that keeps a change and its baseline in view.
_WIDEST = 10.0

# Columns of dots, and minimum seconds, per move of the window; between moves only the newest column changes.
_STEP = 10

# Cells of the labels of the y axis.
AXIS = 5

# Cells between two labels of the time axis by seconds per cell, chosen for round instants.
_LABELS = {
    0.25: 20,
    0.375: 16,
    0.5: 20,
    0.75: 20,
    1.25: 16,
    1.5: 20,
    3.0: 20,
    5.0: 12,
    10.0: 12,
    300.0: 12,
    600.0: 12,
    1800.0: 12,
}
_USUAL_LABELS = 15


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
    def labels(self) -> int:
        """Cells between two labels of the axis."""
        return _LABELS.get(self.span, _USUAL_LABELS)

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
    planned: float = 0.0,
    needed: float | None = None,
) -> ChartWindow:
    """Return a window that contains `now`, from the session's start if it fits; or the cursor, if it is earlier.

    `span` None: the first of the automatic scales at which the session fits, up to the `planned` end of the load if
    that fits at 2 s/cell; a wider one, up to 10 s/cell, if the session since `needed` does not fit.
    """
    if span is None:
        end = max(now, planned) if planned < cells * _USUAL[-1] else now
        span = next((scale for scale in _USUAL if end < int(cells * scale)), _USUAL[-1])
        if needed is not None:
            span = next((scale for scale in SCALES if span <= scale and now - needed < cells * scale), _WIDEST)
            span = min(span, _WIDEST)
    # Move by whole cells and whole seconds.
    unit = next(int(count * span) for count in range(1, 9) if (count * span).is_integer())

    def steps(most: float) -> int:
        return max(unit, min(int(most), int(cells * span)) // unit * unit)

    step = steps(max(_STEP, _STEP * span / 2))
    excess = int(now) + 1 - int(cells * span)
    first = max(0, -(-excess // step) * step) if excess > 0 else 0
    if cursor is not None and cursor < first:
        # Pages of half a window.
        page = steps(cells * span / 2)
        first = int(cursor) // page * page
    return ChartWindow(first, span, cells)


def coarser_scale(window: ChartWindow, now: float) -> float:
    """Return the next wider scale, up to the one that shows the whole session."""
    at = SCALES.index(window.span)
    return SCALES[at] if window.cells * window.span > now else SCALES[min(at + 1, len(SCALES) - 1)]


def finer_scale(window: ChartWindow) -> float:
    return SCALES[max(0, SCALES.index(window.span) - 1)]


def length_words(seconds: float) -> str:
    """Return e.g. `0.5 s`, `20 s`, `5 min`."""
    return f"{seconds:g} s" if seconds < 60 else f"{seconds / 60:g} min"
