"""The scales of all plots: ranges, labels at round values, linear or logarithmic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from cockpit.model.text import si

# Values further apart than this factor get a logarithmic axis.
_LOG_FROM = 10.0
# Axes of at most this many decades have labels within them.
_FEW_DECADES = 2


class Axis(msgspec.Struct, frozen=True):
    """An axis from `low` to `high`, with labels at some values; `log`: logarithmic. `form` writes a value."""

    low: float
    high: float
    labels: tuple[tuple[float, str], ...] = ()
    log: bool = False
    form: Callable[[float], str] = si

    def at(self, value: float) -> float:
        """Return the position of a value, 0 to 1; values outside are moved to the edge."""
        low, high, x = self.low, self.high, value
        if self.log:
            low, high, x = math.log(low), math.log(high), math.log(max(value, low))
        return min(1.0, max(0.0, (x - low) / (high - low))) if high > low else 0.0

    def shifted(self, value: float, share: float) -> float:
        """Return the value whose position is further right by a share of the width."""
        if self.log:
            return value * math.pow(self.high / self.low, share)
        return value + share * (self.high - self.low)


PERCENT = Axis(0.0, 100.0, ((0.0, "0%"), (50.0, "50%"), (100.0, "100%")), form=lambda value: f"{value:.0f}%")


def linear(low: float, high: float, form: Callable[[float], str] = si) -> Axis:
    """Return an axis between round numbers around both values, with three to six round labels."""
    span = (high - low) or abs(high) / 10 or 1.0
    step = 10.0 ** math.floor(math.log10(span / 2))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 4.5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if first == last:
        first, last = first - 1, last + 1
    labels = tuple((step * at, form(step * at)) for at in range(first, last + 1))
    return Axis(step * first, step * last, labels, form=form)


def from_zero(highest: float, form: Callable[[float], str] = si, least: float = 1.0) -> Axis:
    return linear(0.0, max(highest, least), form)


def binary(highest: float, form: Callable[[float], str]) -> Axis:
    """Return an axis of bytes from 0, with labels that are round in the largest unit (÷1024) below `highest`."""
    unit = 1024.0 ** math.floor(math.log(max(highest, 1.0), 1024))
    axis = from_zero(highest / unit)
    return Axis(0.0, axis.high * unit, tuple((value * unit, form(value * unit)) for value, _ in axis.labels), form=form)


def between(lowest: float, highest: float, form: Callable[[float], str]) -> Axis:
    """Return an axis over both values that may begin above 0: logarithmic if they are far apart."""
    return (decades if _is_log(lowest, highest) else linear)(lowest, highest, form)


def decades(lowest: float, highest: float, form: Callable[[float], str]) -> Axis:
    """Return a logarithmic axis over both values, with labels at decades, or at 1, 2 and 5 if the decades are few."""
    lowest, highest = max(1e-6, lowest), max(1e-6, highest)
    first, last = math.floor(math.log10(lowest) + 1e-9), math.ceil(math.log10(highest) - 1e-9)
    few = last - first <= _FEW_DECADES
    every = [mark * 10.0**decade for decade in range(first, last + 2) for mark in ((1, 2, 5) if few else (1,))]
    low = max((value for value in every if value <= lowest * 1.000001), default=every[0])
    high = next((value for value in every if value >= highest * 0.999999 and value > low), every[-1])
    return Axis(low, high, tuple((value, form(value)) for value in every if low <= value <= high), True, form)


def at_values(values: Sequence[float], padding: float = 0.0) -> Axis:
    """Return an axis over ascending values with labels at them, and space beside them (a share of the width)."""
    low, high = values[0], values[-1]
    inner = Axis(low, high, log=_is_log(low, high))
    axis = Axis(inner.shifted(low, -padding), inner.shifted(high, padding), log=inner.log)
    labels = apart(axis, ((value, f"{value:g}") for value in values), 0.06)
    return msgspec.structs.replace(axis, labels=labels)


def apart(axis: Axis, labels: Iterable[tuple[float, str]], share: float) -> tuple[tuple[float, str], ...]:
    """Return the labels within the axis, ascending, that are at least this share of it apart; the first ones win."""
    shown: list[tuple[float, str]] = []
    for value, label in labels:
        inside = axis.low <= value <= axis.high
        if inside and all(abs(axis.at(value) - axis.at(near)) >= share for near, _ in shown):
            shown.append((value, label))
    return tuple(sorted(shown))


def _is_log(low: float, high: float) -> bool:
    return low > 0 and high / low > _LOG_FROM
