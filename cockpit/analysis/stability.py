"""Stability of a run: whether its metrics hold for more than the time of their measurement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from statistics import NormalDist

import msgspec
import numpy as np

from cockpit.analysis.intervals import Floats
from cockpit.analysis.windows import Flaw, Window, left_out, segment_window
from cockpit.model.load_seconds import LoadSecond
from cockpit.model.state import Segment, State

# A trend counts if it is this unlikely by chance and moves a metric by this share over the window.
TREND_P = 0.002
TREND_SHARE = 0.05
# A longer series is tested by the medians of this many parts: the test compares each pair of values.
_MOST = 600
# Share of their median within which stable rates lie.
TOLERANCE = 0.05
# A window is checked in parts of at most LONGEST seconds each, at least three of SHORTEST.
_SHORTEST, _LONGEST = 2, 10
_PARTS = 3
# Standard errors by which the count of random arrivals differs from its mean by chance.
_ERRORS = 4.0
_NORMAL = NormalDist()


class StabilityKind(StrEnum):
    """Whether a run was stable, and if not, the first reason found."""

    STABLE = "stable"
    TOTALS_ONLY = "no data per second"
    TOO_SHORT = "too short"
    RATE = "rate"
    P99 = "p99"


class Stability(msgspec.Struct, frozen=True, kw_only=True):
    """`segment` is the number of the unstable one of several segments, None: there is one. Of a run that was too short,
    `seconds` count, `needed` do not suffice, and others were `left_out`. An unstable rate was `rates` in the last parts
    of `seconds` each; p99 changed by the share `change` from the first second to the last."""

    kind: StabilityKind = StabilityKind.STABLE
    segment: int | None = None
    seconds: int = 0
    needed: int = 0
    left_out: dict[Flaw, int] = {}
    rates: tuple[float, ...] = ()
    change: float = 0.0

    @property
    def is_stable(self) -> bool:
        return self.kind is StabilityKind.STABLE


STABLE = Stability()


def run_stability(state: State, segments: Sequence[Segment]) -> Stability:
    """Return the stability of segments, of the first unstable one if there is one. Warm-ups are ignored."""
    for segment in segments:
        found = STABLE if segment.warmup else window_stability(segment_window(state, segment))
        if not found.is_stable:
            return msgspec.structs.replace(found, segment=segment.number) if len(segments) > 1 else found
    return STABLE


def long_enough(window: Window) -> bool:
    """Return whether a window has enough seconds to judge its stability."""
    return len(window.seconds) >= _PARTS * _SHORTEST


def window_stability(window: Window) -> Stability:
    """Return the stability of a window: the rate of its last three parts must agree within 5%, or within four standard
    errors of random arrivals, and under open load p99 must have no trend."""
    seconds = window.seconds
    if any(segment.totals for segment in window.segments):
        return Stability(kind=StabilityKind.TOTALS_ONLY)
    if not long_enough(window):
        counted, needed = len(seconds), _PARTS * _SHORTEST
        return Stability(kind=StabilityKind.TOO_SHORT, seconds=counted, needed=needed, left_out=left_out([window]))
    length = max(_SHORTEST, min(_LONGEST, len(seconds) // _PARTS))
    parts = [seconds[at : at + length] for at in range(len(seconds) % length, len(seconds), length)][-_PARTS:]
    rates = tuple(map(_rate, parts))
    if not is_stable(rates, _PARTS, _chance(window, parts)):
        return Stability(kind=StabilityKind.RATE, seconds=length, rates=rates)
    change = trend(np.array([second.p99 for second in seconds])) if window.plan.open else 0.0
    return Stability(kind=StabilityKind.P99, change=change) if change else STABLE


def _chance(window: Window, parts: Sequence[Sequence[LoadSecond]]) -> float:
    """Return the share by which the rates of parts may be off because arrivals are random."""
    fewest = min(sum(second.completed for second in part) for part in parts)
    random = window.plan.open and window.plan.arrivals == "poisson"
    return _ERRORS / math.sqrt(fewest) if random and fewest else 0.0


def _rate(part: Sequence[LoadSecond]) -> float:
    covered = sum(second.end - second.start for second in part)
    return sum(second.completed for second in part) / covered if covered else 0.0


def trend(values: Floats) -> float:
    """Return the relative trend of a metric from the first value to the last (fell: below 0); 0: no trend."""
    middle = float(np.median(values)) if len(values) else 0.0
    if len(values) < 5 or middle == 0:
        return 0.0
    if len(values) > _MOST:
        values = np.array([np.median(part) for part in np.array_split(values, _MOST)])
    slope, p = _mann_kendall(values)
    moved = slope * (len(values) - 1) / abs(middle)
    return moved if p < TREND_P and abs(moved) >= TREND_SHARE else 0.0


def _mann_kendall(values: Floats) -> tuple[float, float]:
    """Return Theil and Sen's slope per sample, and the two-sided p value of no trend; at least three values."""
    n = len(values)
    first, second = np.triu_indices(n, 1)
    rises = values[second] - values[first]
    score = abs(int((rises > 0).sum()) - int((rises < 0).sum()))
    ties = np.unique(values, return_counts=True)[1]
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    slope = float(np.median(rises / (second - first)))
    if variance <= 0:
        return slope, 1.0
    return slope, min(1.0, 2 * _NORMAL.cdf(-max(0, score - 1) / math.sqrt(variance)))


def is_stable(values: Sequence[float], k: int = 3, chance: float = 0.0) -> bool:
    """Return whether the last `k` rates (of runs or of parts of a run, oldest first) are stable.

    They are if they lie within TOLERANCE of their median, and do not all go the same way by more than half of it in
    all. `chance` is the share by which a rate may be off by chance alone; neither limit is lower.
    """
    if k < 2:
        raise ValueError("at least two values must agree")
    if len(values) < k:
        return False
    last = np.asarray(values[-k:], dtype=np.float64)
    middle = float(np.median(last))
    if middle <= 0:
        return bool((last == middle).all())
    if float(np.abs(last / middle - 1).max()) > max(TOLERANCE, chance):
        return False
    steps = np.diff(last)
    one_way = k > 2 and bool((steps > 0).all() or (steps < 0).all())
    return not (one_way and abs(float(last[-1] - last[0])) / middle > max(TOLERANCE / 2, chance))
