"""Whether a run is stable, so that its metrics hold for more than the time of their measurement."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cockpit.analysis.steady import settled, trend
from cockpit.analysis.windows import Window, row_window
from cockpit.model.state import LoadSecond, Segment, State
from cockpit.model.text import si

# A window is checked in parts of at most LONGEST seconds each, at least three of SHORTEST.
_SHORTEST, _LONGEST = 2, 10
_PARTS = 3
# Standard errors by which the count of random arrivals differs from its mean by chance.
_ERRORS = 4.0


def unsteady(state: State, rows: Sequence[Segment]) -> str:
    """Return why segments are unstable, the first reason found; empty if all are stable. Warm-ups are ignored."""
    for row in rows:
        why = window_unsteady(row_window(state, row)) if not row.warmup else ""
        if why:
            return f"row {row.number}: {why}" if len(rows) > 1 else why
    return ""


def long_enough(window: Window) -> bool:
    """Return whether a window has enough seconds to judge its stability."""
    return len(window.seconds) >= _PARTS * _SHORTEST


def window_unsteady(window: Window) -> str:
    """Return why a window is not stable, "" if it is: the rate of its last three parts must agree within 5%, or within
    four standard errors of random arrivals, and under open load p99 must have no trend."""
    seconds = window.seconds
    if not long_enough(window):
        left_out = f" ({window.left_out} left out)" if window.left_out else ""
        return f"too short: {len(seconds)} s counted{left_out}, needs {_PARTS * _SHORTEST} s"
    length = max(_SHORTEST, min(_LONGEST, len(seconds) // _PARTS))
    parts = [seconds[at : at + length] for at in range(len(seconds) % length, len(seconds), length)]
    rates = [_rate(part) for part in parts]
    if not settled(rates, _PARTS, _chance(window, parts[-_PARTS:])):
        last = ", ".join(si(rate) for rate in rates[-_PARTS:])
        return f"rate was {last} req/s in its last {_PARTS} parts of {length} s"
    moved = trend(np.array([second.p99 for second in seconds])) if window.plan.open else 0.0
    return f"p99 {'rose' if moved > 0 else 'fell'} by {100 * abs(moved):.0f}%" if moved else ""


def _chance(window: Window, parts: Sequence[Sequence[LoadSecond]]) -> float:
    """Return the share by which the rates of parts may be off because arrivals are random."""
    fewest = min(sum(second.completed for second in part) for part in parts)
    random = window.plan.open and window.plan.arrivals == "poisson"
    return _ERRORS / math.sqrt(fewest) if random and fewest else 0.0


def _rate(part: Sequence[LoadSecond]) -> float:
    covered = sum(second.end - second.start for second in part)
    return sum(second.completed for second in part) / covered if covered else 0.0
