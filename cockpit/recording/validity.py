"""Whether an event that was read can have happened: what the rest of the program relies on without looking."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
import numpy as np

from cockpit.model.events import AnyEvent
from cockpit.model.histogram import HIGHEST_INDEX, Histogram
from cockpit.model.hosts import HostReading, ProcessCounters

# No session lasts so long (s).
LONGEST = 1e8
_INT = 1 << 63
# Fields by which something is numbered or counted out: from 0 to less than this.
BOUNDS: Mapping[str, float] = {
    "t": LONGEST,
    "start": LONGEST,
    "begin": LONGEST,
    "end": LONGEST,
    "second": LONGEST,
    "until": LONGEST,
    "run": 100_000,
    "runs": 100_000,
    "worker": 100_000,
    "workers": 100_000,
    "stage": 100_000,
    "tail": 10_000,
    "page": 1 << 40,
    "number": 1 << 40,
    "step": 1_000_000,
    "steps": 1_000_000,
    "round": 1_000_000,
    "turn": 1_000_000,
    "times": 1_000_000,
    "wall": 1e11,
}
# Their fields of these names are what a host's kernel says, in its own units.
UNBOUNDED: tuple[type, ...] = (HostReading, ProcessCounters)
_T = TypeVar("_T")


def checked(value: _T) -> _T:
    """The event, or part of a state. Raises ValueError for one that cannot have happened."""
    _check(value, "")
    return value


def is_valid(event: AnyEvent) -> bool:
    try:
        _check(event, "")
    except ValueError:
        return False
    return True


def check_field(name: str, least: float, most: float) -> None:
    """Raises ValueError for values of a field that lie outside its bounds."""
    bound = BOUNDS.get(name)
    if bound is not None and not (least >= 0 and most < bound):
        raise ValueError(f"{name} is out of range")


def check_histogram(histogram: Histogram) -> None:
    """Raises ValueError for buckets that no histogram has, or that are not in order."""
    indices = histogram.indices
    if len(indices) and (indices[0] < 0 or indices[-1] > HIGHEST_INDEX or (np.diff(indices) <= 0).any()):
        raise ValueError("a histogram has buckets out of range")


def _check(value: Any, name: str) -> None:
    if isinstance(value, bool | str | bytes) or value is None:
        return
    if isinstance(value, int | float):
        if not math.isfinite(value) or not -_INT <= value < _INT:
            raise ValueError(f"{name} is no number of 64 bits")
        check_field(name, value, value)
    elif isinstance(value, msgspec.Struct):
        bounded = not isinstance(value, UNBOUNDED)
        for field in value.__struct_fields__:
            _check(getattr(value, field), field if bounded else "")
    elif isinstance(value, dict):
        for key, one in value.items():
            _check(key, "")
            _check(one, "")
    elif isinstance(value, Histogram):
        check_histogram(value)
    elif isinstance(value, tuple | list):
        for one in value:
            _check(one, name)
