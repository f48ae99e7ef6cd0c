"""Validate events that were read: the rest of the program relies on these limits without checking them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
import numpy as np

from cockpit.model.events import AnyEvent, HostSample
from cockpit.model.histogram import EMPTY, HIGHEST_INDEX, Histogram
from cockpit.model.host.samples import HostReading
from cockpit.model.stacks import StackSlice, check_slice

# Maximum duration of a session (s).
LONGEST = 1e8
_INT64_LIMIT = 1 << 63
# Maximum numbers of events of one kind in a recording. Landmarks start a segment, a marker or a part of the report;
# their cost grows with the number of earlier ones. A capacity search sets about ten loads per minute, so 10,000 are
# 16 hours. Numerous kinds come from hosts and from the stages of changes.
MAX_LANDMARKS, MAX_LEVELS, MAX_NUMEROUS = 3_000, 10_000, 200_000
MAX_EVENTS: Mapping[str, int] = {
    "load_adjusted": MAX_LEVELS,
    "capacity_level": MAX_LEVELS,
    "capacity_level_ended": MAX_LEVELS,
    "change_stage": MAX_NUMEROUS,
    "host_changed": MAX_NUMEROUS,
    "tail_changed": MAX_NUMEROUS,
    "knob_read": MAX_NUMEROUS,
    "generator_clock": MAX_NUMEROUS,
    "study_observation": MAX_NUMEROUS,
    "stack_slice": MAX_NUMEROUS,
    "profiler_changed": MAX_NUMEROUS,
}
_process_numbers = attrgetter("pid", "ppid", "start", "utime", "stime", "threads", "vsz", "rss", "shared")
# Limit of the counts of a histogram.
_COUNT_LIMIT = 1 << 60
# Fields that are indexes, counts or times: at least 0, and less than this.
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
    "level": 1_000_000,
    "turn": 1_000_000,
    "times": 1_000_000,
    "wall": 1e11,
}
# Types without limits, and numeric types. Constants, because a tick has 70 values to check.
_ANY, _NUMBERS = (bool, str, bytes), (int, float)
_T = TypeVar("_T")


def checked(value: _T) -> _T:
    """Return an event, or a part of a state, unchanged. Raises ValueError if it is invalid."""
    _check(value, "")
    return value


def checked_event(event: AnyEvent) -> AnyEvent:
    """Return an event of JSON, where integers have any size, unchanged. Raises ValueError if it is invalid."""
    if isinstance(event, HostSample):
        reading = event.reading
        for field in set(reading.__struct_fields__) - {"processes"}:
            _check(getattr(reading, field), "")
        for process in reading.processes:
            numbers = _process_numbers(process)
            if min(numbers) < -_INT64_LIMIT or max(numbers) >= _INT64_LIMIT:
                raise ValueError("a number of a process has more than 64 bits")
    return checked(event)


def is_valid(event: AnyEvent) -> bool:
    try:
        _check(event, "")
    except ValueError:
        return False
    return True


def is_metric(value: object) -> bool:
    """Return whether a value of a summary table is a finite number that is not negative."""
    return isinstance(value, _NUMBERS) and 0 <= value < _INT64_LIMIT


def check_field(name: str, value: float) -> None:
    """Raise ValueError if the value of a field is out of bounds."""
    bound = BOUNDS.get(name)
    if bound is not None and not 0 <= value < bound:
        raise ValueError(f"{name} is out of range")


def check_histogram(histogram: Histogram) -> None:
    """Raise ValueError for invalid or unsorted buckets, or invalid counts."""
    if histogram is EMPTY:
        return
    indices, counts = histogram.indices, histogram.counts
    if len(indices) != len(counts):
        raise ValueError("a histogram has different numbers of buckets and counts")
    if len(indices) and (indices[0] < 0 or indices[-1] > HIGHEST_INDEX or (indices[1:] <= indices[:-1]).any()):
        raise ValueError("a histogram has buckets out of range")
    if (counts < 1).any() or counts.sum(dtype=np.float64) >= _COUNT_LIMIT or not 0 <= histogram.count < _COUNT_LIMIT:
        raise ValueError("a histogram has counts out of range")
    for value in (histogram.total_ns, histogram.min_ns, histogram.max_ns):
        _check_number(value)


def _check_number(value: float) -> None:
    # Without conversion: an integer may be too large for a float.
    if not -_INT64_LIMIT <= value < _INT64_LIMIT:
        raise ValueError("a number does not fit into 64 bits")


def _check(value: Any, name: str) -> None:
    if value is None or isinstance(value, _ANY):
        return
    if isinstance(value, _NUMBERS):
        _check_number(value)
        check_field(name, value)
    elif special := _SPECIAL_CHECKS.get(type(value)):
        special(value)
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            _check(getattr(value, field), field)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check(key, "")
            _check(item, "")
    elif isinstance(value, tuple | list):
        for item in value:
            _check(item, name)


def _check_reading(reading: HostReading) -> None:
    # Skip its kernel counters: a page has thousands, and integers in msgpack have at most 64 bits.
    for number in (reading.uptime, reading.wall, reading.probe_cpu, *reading.load):
        _check_number(number)


def _check_slice(part: StackSlice) -> None:
    check_slice(part)
    _check((part.t, part.start, part.cost), "t")


_SPECIAL_CHECKS: Mapping[type, Callable[[Any], None]] = {
    HostReading: _check_reading,
    Histogram: check_histogram,
    StackSlice: _check_slice,
}
