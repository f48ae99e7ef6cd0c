"""Stability of a run: whether its metrics are stationary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from statistics import NormalDist

import msgspec
import numpy as np

from cockpit.analysis.intervals import Floats
from cockpit.analysis.windows import DiscardReason, Window, discarded_seconds, segment_window
from cockpit.model.load.seconds import LoadSecond
from cockpit.model.state import Segment, State

# A trend counts if its p value is below TREND_P and it moves a metric by at least TREND_SHARE over the window.
TREND_P = 0.002
TREND_SHARE = 0.05
# Longer series are reduced to the medians of this many parts, because the test compares all pairs of values.
_MOST = 600
# Stable rates are within this share of their median.
TOLERANCE = 0.05
# A window is checked in parts of at most LONGEST seconds each, at least three of SHORTEST.
_SHORTEST, _LONGEST = 2, 10
_PARTS = 3
# Standard errors by which the count of random arrivals may differ from its mean.
_STANDARD_ERRORS = 4.0
_NORMAL = NormalDist()


class StabilityKind(StrEnum):
    """Whether a run was stable, and if not, the first reason found."""

    STABLE = "stable"
    TOTALS_ONLY = "no data per second"
    TOO_SHORT = "too short"
    RATE = "rate"
    P99 = "p99"
    RAMP = "the load is a ramp"


class Stability(msgspec.Struct, frozen=True, kw_only=True):
    """The stability of a run. `segment` is the number of the unstable segment; None: there is only one. Too short:
    `seconds` were counted, `needed` are required, `discarded` do not count, by reason. Unstable rate: `rates` in the
    last parts of `seconds` each. Trend of p99: `change` is its relative change from the first second to the last."""

    kind: StabilityKind = StabilityKind.STABLE
    segment: int | None = None
    seconds: int = 0
    needed: int = 0
    discarded: dict[DiscardReason, int] = {}
    rates: tuple[float, ...] = ()
    change: float = 0.0

    @property
    def is_stable(self) -> bool:
        return self.kind is StabilityKind.STABLE


STABLE = Stability()


def run_stability(state: State, segments: Sequence[Segment]) -> Stability:
    """Return the stability of the first unstable segment, else STABLE. Warm-ups are ignored."""
    for segment in segments:
        stability = STABLE if segment.warmup else window_stability(segment_window(state, segment))
        if not stability.is_stable:
            return msgspec.structs.replace(stability, segment=segment.number) if len(segments) > 1 else stability
    return STABLE


def long_enough(window: Window) -> bool:
    """Return whether a window has enough seconds to judge its stability."""
    return len(window.seconds) >= _PARTS * _SHORTEST


def window_stability(window: Window) -> Stability:
    """Return the stability of a window: the rate of its last three parts must agree within 5%, or within four standard
    errors of random arrivals, and under open load p99 must have no trend."""
    seconds = window.seconds
    if window.plan.ramp_to is not None:
        return Stability(kind=StabilityKind.RAMP)
    if any(segment.totals for segment in window.segments):
        return Stability(kind=StabilityKind.TOTALS_ONLY)
    if not long_enough(window):
        discarded, needed = discarded_seconds([window]), _PARTS * _SHORTEST
        return Stability(kind=StabilityKind.TOO_SHORT, seconds=len(seconds), needed=needed, discarded=discarded)
    length = max(_SHORTEST, min(_LONGEST, len(seconds) // _PARTS))
    parts = [seconds[at : at + length] for at in range(len(seconds) % length, len(seconds), length)][-_PARTS:]
    rates = tuple(map(_rate, parts))
    if not is_stable(rates, _PARTS, _chance(window, parts)):
        return Stability(kind=StabilityKind.RATE, seconds=length, rates=rates)
    change = trend(np.array([second.p99 for second in seconds])) if window.plan.open else 0.0
    return Stability(kind=StabilityKind.P99, change=change) if change else STABLE


def _chance(window: Window, parts: Sequence[Sequence[LoadSecond]]) -> float:
    """Return the share by which random arrivals, or bursts, move the rates of parts; 0 for even arrivals."""
    fewest = min(sum(second.completed for second in part) for part in parts)
    uneven = window.plan.open and (window.plan.arrivals == "poisson" or window.plan.burst > 1)
    return _STANDARD_ERRORS * math.sqrt(window.plan.burst / fewest) if uneven and fewest else 0.0


def _rate(part: Sequence[LoadSecond]) -> float:
    covered = sum(second.end - second.start for second in part)
    return sum(second.completed for second in part) / covered if covered else 0.0


def trend(values: Floats) -> float:
    """Return the relative change of a metric from the first value to the last, by its trend; 0: no trend."""
    middle = float(np.median(values)) if len(values) else 0.0
    if len(values) < 5 or middle == 0:
        return 0.0
    if len(values) > _MOST:
        values = np.array([np.median(part) for part in np.array_split(values, _MOST)])
    slope, p = _mann_kendall(values)
    moved = slope * (len(values) - 1) / abs(middle)
    return moved if p < TREND_P and abs(moved) >= TREND_SHARE else 0.0


def _mann_kendall(values: Floats) -> tuple[float, float]:
    """Return the Theil-Sen slope per sample, and the two-sided p value of the Mann-Kendall test; at least three
    values."""
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

    Stable rates are within TOLERANCE of their median, and do not change monotonically by more than half of it in total.
    `chance` is the share by which chance alone moves a rate; neither limit is lower.
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
